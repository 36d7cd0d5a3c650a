// Names under the checker: register and whereis against the exit.
//
// Proves:
//   - whoever has seen the down of an actor finds its name free and may take it;
//   - an actor that is given a name while it ends leaves no entry behind: the name can be taken.
// The table is std::map under the modelled lock. Actors are model threads (tests/model/actors.hpp).
// Outside: two runtimes, threads that are no actors.
#include <smarm/mailbox.hpp>
#include <smarm/registry.hpp>

#include "sched/driver.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::finish;
using under_model::stage;

// What publish_queued publishes in production: whose actor it is.
void settle_in_runtime(actor& who, std::uint32_t number) {
  stage::introduce(who, number);
  under_model::with_box(who);
  under_model::run_as(&who);
  who.owner.store(detail::current_runtime(), detail::relaxed);
  under_model::run_as(nullptr);
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
  model::expect(registered_names().empty(), "nothing is left behind");
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
  model::expect(registered_names().empty(), "nothing is left behind");
}

}  // namespace
}  // namespace smarm
