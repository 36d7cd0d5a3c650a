// The names of actors: one table for the process, keyed by runtime and name.
//
// Invariants
//   1. An entry whose actor has ended counts as none: so a name is free from the moment its actor
//      is not found any more, which comes before its downs; the exit takes the entry out.
//   2. has_name in the actor's box tells the exit that there is an entry. It is set under the
//      slot's lock once the entry stands: an exit that does not see it was earlier, and register,
//      which then finds the actor gone, takes the entry out itself.
// Lock: one outer_mutex, taken before a slot's and never held at a park. No leaf, because the table
// allocates.
#include <algorithm>
#include <mutex>
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/registry.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/names.hpp"
#include "actor/shared_state.hpp"
#include "base/raw_mutex.hpp"
#include "sched/driver.hpp"

namespace smarm {

namespace detail {

namespace {

name_table& table() noexcept { return shared().names; }

bool lives(pid who) noexcept { return find_slot(who) != nullptr; }

// The entry of that name which the caller sees, or end. Table locked.
auto find_entry(name_table& names, std::string_view name) {
  const runtime_core* const runtime = current_runtime();
  if (runtime != nullptr) return names.by_name.find(name_view{runtime, name});
  auto at = names.by_name.lower_bound(name_view{nullptr, name});
  while (at != names.by_name.end() && at->first.name == name && !lives(at->second)) ++at;
  return at != names.by_name.end() && at->first.name == name ? at : names.by_name.end();
}

}  // namespace

pid pid_of_name(std::string_view name) noexcept {
  name_table& names = table();
  const std::lock_guard guard(names.lock);
  const auto found = find_entry(names, name);
  return found != names.by_name.end() && lives(found->second) ? found->second : pid{};
}

void forget_name(pid gone) noexcept {
  name_table& names = table();
  const std::lock_guard guard(names.lock);
  const auto mine = names.by_pid.find(gone);
  if (mine == names.by_pid.end()) return;
  const auto same = [&](const auto& entry) { return entry.second == gone; };
  const auto from = names.by_name.lower_bound(name_view{nullptr, mine->second});
  const auto found = std::find_if(from, names.by_name.end(), same);
  if (found != names.by_name.end()) names.by_name.erase(found);
  names.by_pid.erase(mine);
}

}  // namespace detail

std::string_view to_string(registry_error error) noexcept {
  switch (error) {
    case registry_error::name_taken:
      return "the name is taken";
    case registry_error::already_named:
      return "the actor has a name already";
    case registry_error::no_such_actor:
      return "no such actor";
    case registry_error::bad_name:
      return "not a name";
  }
  return "unknown";
}

std::expected<void, registry_error> register_name(std::string_view name, pid who) {
  using detail::table;
  if (name.empty() || name == "undefined") return std::unexpected(registry_error::bad_name);
  detail::name_table& names = table();
  const detail::runtime_core* const runtime = detail::runtime_of(who);
  if (runtime == nullptr) return std::unexpected(registry_error::no_such_actor);
  // Made before the lock is taken for good: a box may have to be allocated.
  if (!detail::with_box(who, [](detail::actor_box&) {})) {
    return std::unexpected(registry_error::no_such_actor);
  }
  const std::lock_guard guard(names.lock);
  if (names.by_pid.contains(who)) return std::unexpected(registry_error::already_named);
  const auto taken = names.by_name.find(detail::name_view{runtime, name});
  if (taken != names.by_name.end()) {
    if (detail::lives(taken->second)) return std::unexpected(registry_error::name_taken);
    // Its actor has ended, and the exit is on its way here.
    names.by_pid.erase(taken->second);
    names.by_name.erase(taken);
  }
  const auto entry = names.by_name.emplace(detail::name_key{runtime, std::string(name)}, who).first;
  try {
    names.by_pid.emplace(who, name);
  } catch (...) {
    names.by_name.erase(entry);
    throw;
  }
  if (detail::with_box(who, [](detail::actor_box& box) { box.has_name = true; })) return {};
  names.by_pid.erase(who);
  names.by_name.erase(entry);
  return std::unexpected(registry_error::no_such_actor);
}

std::expected<void, registry_error> register_name(std::string_view name) {
  return register_name(name, self());
}

bool unregister_name(std::string_view name) {
  detail::name_table& names = detail::table();
  const std::lock_guard guard(names.lock);
  const auto found = detail::find_entry(names, name);
  if (found == names.by_name.end()) return false;
  const bool lived = detail::lives(found->second);
  names.by_pid.erase(found->second);
  names.by_name.erase(found);
  return lived;
}

std::optional<pid> whereis(std::string_view name) {
  const pid found = detail::pid_of_name(name);
  return found.is_valid() ? std::optional(found) : std::nullopt;
}

std::string name_of(pid who) {
  detail::name_table& names = detail::table();
  const std::lock_guard guard(names.lock);
  const auto found = names.by_pid.find(who);
  return found != names.by_pid.end() && detail::lives(who) ? found->second : std::string();
}

std::vector<std::string> registered_names() {
  detail::name_table& names = detail::table();
  const std::lock_guard guard(names.lock);
  const detail::runtime_core* const runtime = detail::current_runtime();
  std::vector<std::string> all;
  for (const auto& [key, who] : names.by_name) {
    if ((runtime == nullptr || key.runtime == runtime) && detail::lives(who)) {
      all.push_back(key.name);
    }
  }
  return all;
}

}  // namespace smarm
