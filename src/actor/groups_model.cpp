// Groups under the checker: joining, leaving and watching against the exit of a member or a
// watcher.
//
// Proves, for one member, one watcher and one other:
//   - an actor that is added while it ends is not left in the group, by whoever comes second; who
//     watches hears of both or of neither;
//   - a membership that is taken away while its actor ends is told of once;
//   - a watch that begins meanwhile has each change in the members it gets or as an event, not in
//     both and not in neither;
//   - who has monitored an actor that lived finds it in no group behind its down, and was told
//     before;
//   - of a watcher that ends nothing is left, whoever joins meanwhile.
// The table is std::map under the modelled lock. Actors are model threads (tests/model/actors.hpp);
// their exit is tests/model/exits.hpp. What came is counted when all is over, but where the receive
// is a part of it. Outside: scopes, two runtimes, memory that is missing.
#include <cstddef>
#include <vector>

#include <smarm/group.hpp>
#include <smarm/mailbox.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::finish;
using under_model::settle_in_runtime;
using under_model::stage;

// watch_as begins a watch of the actor's, which does not run yet, and returns the members it gets.
std::vector<pid> watch_as(actor& watcher) {
  under_model::run_as(&watcher);
  std::vector<pid> members = watch_group("group").second;
  under_model::run_as(nullptr);
  return members;
}

struct told {
  std::size_t joined = 0;
  std::size_t left = 0;
};

// hear is the watcher's next event, which is there already; false: there is none.
bool hear(told& so_far) {
  const auto event = receive_until<group_event>(deadline::from_ns(0));
  if (!event) return false;
  ++(event->kind == group_event::what::joined ? so_far.joined : so_far.left);
  return true;
}

// end_of is the watcher's whole life: it takes what has come, and ends.
told end_of(stage& here, actor& watcher, bool was_member = false) {
  told all;
  here.run(watcher, [&] {
    while (hear(all)) {
      model::expect(all.left <= all.joined + (was_member ? 1 : 0),
                    "nobody leaves who is not in it");
    }
  });
  finish(watcher, exit_reason::normal());
  return all;
}

void end_at_once(stage& here, actor& who) {
  here.run(who, [] {});
  finish(who, exit_reason::normal());
}

// group_members leaves those out who have ended; this does not.
void expect_nothing_left() {
  const detail::group_table& groups = detail::shared().groups;
  model::expect(groups.groups.empty() && groups.of.empty(), "no member is left behind");
  model::expect(groups.watchers.empty(), "no watcher is left behind");
}

PROTOCOL(groups_join_against_exit) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  model::expect(watch_as(watcher).empty());
  const pid who = child.who();
  bool joined = false;
  model::parallel([&] { joined = join_group("group", who); }, [&] { end_at_once(here, child); });
  model::expect(group_members("group").empty() && which_groups().empty(), "it has ended");
  const told all = end_of(here, watcher);
  model::expect(all.joined == (joined ? 1 : 0) && all.left == all.joined, "both or neither");
  expect_nothing_left();
}

PROTOCOL(groups_leave_against_exit) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  model::expect(join_group("group", who) && watch_as(watcher) == std::vector{who});
  model::parallel([&] { static_cast<void>(leave_group("group", who)); },
                  [&] { end_at_once(here, child); });
  const told all = end_of(here, watcher, true);
  model::expect(all.joined == 0 && all.left == 1, "it leaves once");
  expect_nothing_left();
}

PROTOCOL(groups_watch_against_exit) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  model::expect(join_group("group", child.who()));
  std::size_t members = 0;
  model::parallel([&] { members = watch_as(watcher).size(); }, [&] { end_at_once(here, child); });
  const told all = end_of(here, watcher, members == 1);
  model::expect(all.joined == 0 && all.left == members, "a member leaves, and nobody else");
  expect_nothing_left();
}

PROTOCOL(groups_watch_against_join) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  std::size_t members = 0;
  model::parallel([&] { members = watch_as(watcher).size(); },
                  [&] { model::expect(join_group("group", who), "it lives"); });
  model::expect(group_members("group") == std::vector{who}, "it is in it");
  const told all = end_of(here, watcher, members == 1);
  model::expect(members + all.joined == 1 && all.left == 0, "a member, or told of");
  end_at_once(here, child);
  expect_nothing_left();
}

PROTOCOL(groups_leaving_against_down) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  model::expect(join_group("group", who) && watch_as(watcher) == std::vector{who});
  under_model::run_as(&watcher);
  static_cast<void>(monitor(who, to_mailbox));
  under_model::run_as(nullptr);
  model::parallel(
      [&] {
        here.run(watcher, [&] {
          static_cast<void>(receive<down>());
          told all;
          model::expect(hear(all) && all.left == 1, "told before the down");
          model::expect(group_members("group").empty(), "and out of it");
        });
        finish(watcher, exit_reason::normal());
      },
      [&] { end_at_once(here, child); });
  expect_nothing_left();
}

PROTOCOL(groups_end_of_the_watcher_against_join) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  model::expect(watch_as(watcher).empty());
  model::parallel([&] { model::expect(join_group("group", who), "it lives"); },
                  [&] { end_at_once(here, watcher); });
  end_at_once(here, child);
  expect_nothing_left();
}

PROTOCOL(groups_end_of_the_watcher_against_end_of_the_member) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  model::expect(join_group("group", child.who()) && watch_as(watcher).size() == 1);
  model::parallel([&] { end_at_once(here, child); }, [&] { end_at_once(here, watcher); });
  expect_nothing_left();
}

}  // namespace
}  // namespace smarm
