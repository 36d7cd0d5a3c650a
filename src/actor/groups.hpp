// group_table is who is in which group, and who watches; what an actor's end needs of it.
//
// Invariants
//   1. `of` lists, for each actor, the groups it is in, once for each membership; `groups` lists
//   the
//      same by group. A group or an actor with nothing is not listed.
//   2. An event is sent under the lock that guards the change, so each watcher hears of changes in
//      their order, and a watch that begins sees each change either in the members it gets or as an
//      event.
//   3. is_in_groups in an actor's box tells the exit that it is a member or a watcher; see
//      registry.cpp for why setting it after the entry is enough.
// Threads: any, under the lock: an outer_mutex, since a send takes a slot's.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <smarm/pid.hpp>

#include "base/raw_mutex.hpp"

namespace smarm::detail {

class runtime_core;

struct scope_key {
  const runtime_core* runtime;
  std::string scope;
  friend auto operator<=>(const scope_key&, const scope_key&) = default;
};

struct group_key {
  scope_key scope;
  std::string group;
  friend auto operator<=>(const group_key&, const group_key&) = default;
};

struct group_watcher {
  pid who;
  std::uint64_t ref;
  std::string group;  // empty: every group of the scope
};

struct group_table {
  outer_mutex lock;
  std::map<group_key, std::vector<pid>> groups;
  std::map<pid, std::vector<group_key>> of;
  std::map<scope_key, std::vector<group_watcher>> watchers;
  std::uint64_t last_ref = 0;
};

// forget_groups takes an actor that has ended out of all its groups, and its watches away. By its
// exit. Never parks.
void forget_groups(pid gone) noexcept;

}  // namespace smarm::detail
