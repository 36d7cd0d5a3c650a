// Names under the checker: register and whereis against the exit.
//
// Proves:
//   - whoever has seen the down of an actor finds its name free and may take it;
//   - an actor that is given a name while it ends leaves no entry behind: the name can be taken;
//   - of two that want a name one gets it; an actor has one name, and unregister frees it;
//   - a name that is taken back while its actor ends is free once.
// The table is std::map under the modelled lock. Actors are model threads (tests/model/actors.hpp).
// Outside: two runtimes, threads that are no actors.
#include <smarm/mailbox.hpp>
#include <smarm/registry.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::finish;
using under_model::settle_in_runtime;
using under_model::stage;

// registered_names leaves those out who have ended; this does not.
void expect_nothing_left() {
  const detail::name_table& names = detail::shared().names;
  model::expect(names.by_name.empty() && names.by_pid.empty(), "nothing is left behind");
}

PROTOCOL(registry_release_against_down) {
  stage here;
  const under_model::shared_actors shared;
  actor watcher;
  actor child;
  settle_in_runtime(watcher, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  model::parallel(
      [&] {
        here.run(watcher, [&] {
          const monitor_ref watch = monitor(who, to_mailbox);
          static_cast<void>(receive<down>());
          model::expect(!whereis("name").has_value(), "free once the down is seen");
          model::expect(register_name("name").has_value(), "and to be had");
        });
        finish(watcher, exit_reason::normal());
      },
      [&] {
        here.run(child, [] { static_cast<void>(register_name("name")); });
        finish(child, exit_reason::normal());
      });
  model::expect(registered_names().empty());
  expect_nothing_left();
}

PROTOCOL(registry_register_against_exit) {
  stage here;
  const under_model::shared_actors shared;
  actor giver;
  actor child;
  settle_in_runtime(giver, 1);
  settle_in_runtime(child, 2);
  const pid who = child.who();
  model::parallel(
      [&] {
        here.run(giver, [&] {
          static_cast<void>(register_name("name", who));
          const monitor_ref watch = monitor(who, to_mailbox);
          static_cast<void>(receive<down>());
          model::expect(!whereis("name").has_value(), "a dead actor has no name");
          model::expect(register_name("name").has_value(), "its name can be taken");
        });
        finish(giver, exit_reason::normal());
      },
      [&] {
        here.run(child, [] {});
        finish(child, exit_reason::normal());
      });
  model::expect(registered_names().empty());
  expect_nothing_left();
}

// Nobody takes the name afterwards: who gave it, or the exit, has to take it back.
PROTOCOL(registry_register_against_exit_alone) {
  stage here;
  const under_model::shared_actors shared;
  actor child;
  settle_in_runtime(child, 1);
  const pid who = child.who();
  model::parallel([&] { static_cast<void>(register_name("name", who)); },
                  [&] {
                    here.run(child, [] {});
                    finish(child, exit_reason::normal());
                  });
  expect_nothing_left();
}

PROTOCOL(registry_two_for_one_name) {
  stage here;
  const under_model::shared_actors shared;
  actor first;
  actor second;
  settle_in_runtime(first, 1);
  settle_in_runtime(second, 2);
  const pid who = first.who();
  const pid other = second.who();
  std::expected<void, registry_error> got[2];
  model::parallel([&] { got[0] = register_name("name", who); },
                  [&] { got[1] = register_name("name", other); });
  model::expect(got[0].has_value() != got[1].has_value(), "one of them");
  const pid winner = got[0] ? who : other;
  const pid loser = got[0] ? other : who;
  model::expect((got[0] ? got[1] : got[0]).error() == registry_error::name_taken, "and is told");
  model::expect(whereis("name") == winner && name_of(winner) == "name", "it is there");
  model::expect(name_of(loser).empty() && !whereis("another").has_value(), "and nothing else");
  const auto second_name = register_name("another", winner);
  model::expect(!second_name && second_name.error() == registry_error::already_named, "one name");
  model::expect(register_name("another", loser).has_value(), "names differ");
  model::expect(whereis("another") == loser && registered_names().size() == 2, "each is found");
  model::expect(unregister_name("another") && whereis("name") == winner, "each by itself");
  model::expect(unregister_name("name") && !unregister_name("name"), "it is freed once");
  model::expect(!whereis("name").has_value() && name_of(winner).empty(), "and free");
  model::expect(register_name("name", loser).has_value(), "for the other one");
  for (actor* const each : {&first, &second}) {
    here.run(*each, [] {});
    finish(*each, exit_reason::normal());
  }
  model::expect(registered_names().empty());
  expect_nothing_left();
}

PROTOCOL(registry_unregister_against_exit) {
  stage here;
  const under_model::shared_actors shared;
  actor other;
  actor child;
  settle_in_runtime(other, 1);
  settle_in_runtime(child, 2);
  const pid who = other.who();
  static_cast<void>(register_name("name", child.who()));
  model::parallel(
      [&] {
        static_cast<void>(unregister_name("name"));
        model::expect(register_name("name", who).has_value(), "it is free");
      },
      [&] {
        here.run(child, [] {});
        finish(child, exit_reason::normal());
      });
  model::expect(whereis("name") == who, "the end of the one leaves the other's name alone");
  here.run(other, [] {});
  finish(other, exit_reason::normal());
  model::expect(registered_names().empty());
  expect_nothing_left();
}

}  // namespace
}  // namespace smarm
