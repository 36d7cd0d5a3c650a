// Joining, leaving and watching groups; see groups.hpp.
#include "actor/groups.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include <smarm/group.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/shared_state.hpp"
#include "sched/driver.hpp"
#include "sched/lookup.hpp"

namespace smarm {

namespace detail {

namespace {

group_table& table() noexcept { return shared().groups; }

group_key key_of(const runtime_core* runtime, std::string_view scope, std::string_view group) {
  return {{runtime, std::string(scope)}, std::string(group)};
}

// Tells the watchers of a group of a change. Table locked. LIMIT: without memory for an event a
// watcher misses it, rather than that the change fails.
void tell(group_table& groups, const group_key& key, group_event::what kind, pid who) noexcept {
  const auto watchers = groups.watchers.find(key.scope);
  if (watchers == groups.watchers.end()) return;
  for (const group_watcher& watcher : watchers->second) {
    if (!watcher.group.empty() && watcher.group != key.group) continue;
    try {
      send(watcher.who, group_event{watcher.ref, kind, key.scope.scope, key.group, {who}});
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
}

// Takes one membership out of both lists; false: there is none. Table locked.
bool take_out(group_table& groups, const group_key& key, pid who) noexcept {
  const auto members = groups.groups.find(key);
  if (members == groups.groups.end()) return false;
  const auto member = std::ranges::find(members->second, who);
  if (member == members->second.end()) return false;
  members->second.erase(member);
  if (members->second.empty()) groups.groups.erase(members);
  const auto mine = groups.of.find(who);
  if (mine == groups.of.end()) return true;
  const auto one = std::ranges::find(mine->second, key);
  if (one != mine->second.end()) mine->second.erase(one);
  if (mine->second.empty()) groups.of.erase(mine);
  return true;
}

// Puts one membership into both lists, or into none where there is no memory. Table locked.
void put_in(group_table& groups, const group_key& key, pid who) {
  std::vector<pid>& members = groups.groups[key];
  try {
    std::vector<group_key>& mine = groups.of[who];
    mine.push_back(key);
    try {
      members.push_back(who);
    } catch (...) {
      mine.pop_back();
      if (mine.empty()) groups.of.erase(who);
      throw;
    }
  } catch (...) {
    if (members.empty()) groups.groups.erase(key);
    throw;
  }
}

// Tells the box that its exit must come here; false: the actor has ended.
bool mark(pid who) {
  return with_box(who, [](actor_box& box) { box.is_in_groups = true; });
}

std::uint64_t begin_watch(group_table& groups, const scope_key& scope, std::string_view group) {
  const std::uint64_t ref = ++groups.last_ref;
  groups.watchers[scope].push_back({self(), ref, std::string(group)});
  (void)mark(self());  // its box was made before: this cannot fail, and the caller lives
  return ref;
}

template <class Gone>
bool take_watchers(group_table& groups, Gone gone) noexcept {
  bool any = false;
  for (auto at = groups.watchers.begin(); at != groups.watchers.end();) {
    any = std::erase_if(at->second, gone) > 0 || any;
    at = at->second.empty() ? groups.watchers.erase(at) : std::next(at);
  }
  return any;
}

}  // namespace

void forget_groups(pid gone) noexcept {
  group_table& groups = table();
  const std::lock_guard guard(groups.lock);
  take_watchers(groups, [gone](const group_watcher& one) { return one.who == gone; });
  const auto mine = groups.of.find(gone);
  if (mine == groups.of.end()) return;
  const std::vector<group_key> left = std::move(mine->second);
  groups.of.erase(mine);
  for (const group_key& key : left) {
    if (take_out(groups, key, gone)) tell(groups, key, group_event::what::left, gone);
  }
}

}  // namespace detail

bool join_group(std::string_view group, pid who, std::string_view scope) {
  // The box is made before the lock is taken, so that what follows fails as a whole or not at all.
  if (!detail::with_box(who, [](detail::actor_box&) {})) return false;
  const detail::runtime_core* const runtime = detail::runtime_of(who);
  if (runtime == nullptr) return false;
  const detail::group_key key = detail::key_of(runtime, scope, group);
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  detail::put_in(groups, key, who);
  if (!detail::mark(who)) {
    detail::take_out(groups, key, who);
    return false;
  }
  detail::tell(groups, key, group_event::what::joined, who);
  return true;
}

bool join_group(std::string_view group) { return join_group(group, self()); }

bool leave_group(std::string_view group, pid who, std::string_view scope) {
  const detail::runtime_core* const runtime = detail::runtime_of(who);
  if (runtime == nullptr) return false;
  const detail::group_key key = detail::key_of(runtime, scope, group);
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  if (!detail::take_out(groups, key, who)) return false;
  detail::tell(groups, key, group_event::what::left, who);
  return true;
}

bool leave_group(std::string_view group) { return leave_group(group, self()); }

std::vector<pid> group_members(std::string_view group, std::string_view scope) {
  const detail::runtime_core* const runtime = detail::current_runtime();
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  std::vector<pid> all;
  const auto add = [&all](const std::vector<pid>& members) {
    std::ranges::copy_if(members, std::back_inserter(all),
                         [](pid who) { return detail::find_slot(who) != nullptr; });
  };
  if (runtime != nullptr) {
    const auto found = groups.groups.find(detail::key_of(runtime, scope, group));
    if (found != groups.groups.end()) add(found->second);
    return all;
  }
  for (const auto& [key, members] : groups.groups) {
    if (key.scope.scope == scope && key.group == group) add(members);
  }
  return all;
}

std::vector<std::string> which_groups(std::string_view scope) {
  const detail::runtime_core* const runtime = detail::current_runtime();
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  std::vector<std::string> names;
  for (const auto& [key, members] : groups.groups) {
    const bool is_seen = runtime == nullptr || key.scope.runtime == runtime;
    if (is_seen && key.scope.scope == scope) names.push_back(key.group);
  }
  return names;
}

std::pair<std::uint64_t, std::vector<pid>> watch_group(std::string_view group,
                                                       std::string_view scope) {
  (void)detail::self_box("watch_group");
  const detail::group_key key = detail::key_of(detail::current_runtime(), scope, group);
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  const auto members = groups.groups.find(key);
  std::vector<pid> now = members == groups.groups.end() ? std::vector<pid>() : members->second;
  return {detail::begin_watch(groups, key.scope, group), std::move(now)};
}

std::pair<std::uint64_t, std::vector<std::pair<std::string, std::vector<pid>>>> watch_scope(
    std::string_view scope) {
  (void)detail::self_box("watch_scope");
  const detail::scope_key key{detail::current_runtime(), std::string(scope)};
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  std::vector<std::pair<std::string, std::vector<pid>>> now;
  for (const auto& [group, members] : groups.groups) {
    if (group.scope == key) now.emplace_back(group.group, members);
  }
  return {detail::begin_watch(groups, key, {}), std::move(now)};
}

bool unwatch_group(std::uint64_t ref) {
  const pid me = self();
  detail::group_table& groups = detail::table();
  const std::lock_guard guard(groups.lock);
  return detail::take_watchers(
      groups, [&](const detail::group_watcher& one) { return one.who == me && one.ref == ref; });
}

}  // namespace smarm
