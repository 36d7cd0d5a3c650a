// Groups: many actors under one name, to find them all, and to hear who comes and goes.
//
//   smarm::join_group("workers");                       // the calling actor
//   for (smarm::pid who : smarm::group_members("workers")) smarm::send(who, job{});
//
// An actor may be in many groups, and in one several times; it leaves them all when it ends, before
// the down of it comes to those who have watched it since it lived. Who begins to watch it later is
// told at once that it is gone, maybe before the events of its groups are. A group without members
// does not exist. Scopes keep the groups of different users apart; the empty scope is everybody's.
// Groups belong to a runtime, as names do.
//
// Source: OTP 25, pg(3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/pid.hpp>

namespace smarm {

// group_event is what who watches a group receives, in the order in which it happened.
struct group_event {
  enum class what : std::uint8_t { joined, left };
  std::uint64_t ref = 0;  // of the watch
  what kind = what::joined;
  std::string scope = {};
  std::string group = {};
  std::vector<pid> who = {};
};

// join_group adds an actor, once more if it is a member already; without a pid, the caller. False:
// no such actor. Any thread (with a pid); never parks; no stop point. Throws std::bad_alloc.
bool join_group(std::string_view group, pid who, std::string_view scope = {});
bool join_group(std::string_view group);

// leave_group takes one membership away; false: it was not a member. Any thread; never parks.
bool leave_group(std::string_view group, pid who, std::string_view scope = {});
bool leave_group(std::string_view group);

// group_members are the members in the order in which they joined, each as often as it did.
[[nodiscard]] std::vector<pid> group_members(std::string_view group, std::string_view scope = {});

// which_groups are the names of the groups that have members, sorted.
[[nodiscard]] std::vector<std::string> which_groups(std::string_view scope = {});

// watch_group sends the caller a group_event for each change of that group from now on, and returns
// the watch's number with the members of this moment: nothing is missed or told twice in between.
// watch_scope does so for all groups of a scope. The watch ends with the caller or by
// unwatch_group. Misuse on a thread that is no actor.
[[nodiscard]] std::pair<std::uint64_t, std::vector<pid>> watch_group(std::string_view group,
                                                                     std::string_view scope = {});
[[nodiscard]] std::pair<std::uint64_t, std::vector<std::pair<std::string, std::vector<pid>>>>
watch_scope(std::string_view scope = {});

// unwatch_group ends a watch of the caller's: events that came before it stay in the mailbox.
// False: there was none.
bool unwatch_group(std::uint64_t ref);

}  // namespace smarm
