// shared_state is what the actors of a process share in this layer: the locks of pairs, the names,
// the groups.
//
// One object, and apart from the code that uses it, because under the model checker each execution
// has one of its own (tests/model/exits.hpp).
// Threads: as each part says.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <smarm/pid.hpp>

#include "actor/groups.hpp"
#include "base/raw_mutex.hpp"
#include "sched/lookup.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class runtime_core;

// The lock of a pair of actors; many pairs share one. Never held at a park.
class pair_locks {
 public:
  [[nodiscard]] outer_mutex& of(pid left, pid right) noexcept {
    return locks_[(left.index ^ right.index) % stripes];
  }

 private:
  static constexpr std::size_t stripes = 64;
  std::array<outer_mutex, stripes> locks_;
};

struct name_key {
  const runtime_core* runtime;
  std::string name;
};

struct name_view {
  const runtime_core* runtime;
  std::string_view name;
};

struct name_order {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& left, const B& right) const noexcept {
    const std::string_view mine = left.name;
    const std::string_view others = right.name;
    if (mine != others) return mine < others;
    return std::less<>{}(left.runtime, right.runtime);
  }
};

// See registry.cpp. The lock guards both maps.
struct name_table {
  outer_mutex lock;
  std::map<name_key, pid, name_order> by_name;
  std::map<pid, std::string> by_pid;
};

struct shared_state {
  pair_locks pairs;
  name_table names;
  group_table groups;
};

[[nodiscard]] shared_state& shared() noexcept;

// runtime_of is whose names and groups are an actor's; null: nobody lives there.
[[nodiscard]] inline const runtime_core* runtime_of(pid who) noexcept {
  slot* const found = find_slot(who);
  // relaxed: behind find_slot's acquire, as there
  return found == nullptr ? nullptr : found->owner.load(relaxed);
}

}  // namespace smarm::detail
