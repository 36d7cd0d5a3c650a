// The mailbox and the monitors that deliver into it under the checker, by their public face.
//
// Proves, for one receiver and one or two who send:
//   - a message that was sent is received, or left to be destroyed once: no receive sleeps on it;
//   - a receive that gives up leaves the message for the next one;
//   - a message sent while the receiver ends is refused, or destroyed with it;
//   - a monitor tells once, and never after demonitor.
// Actors are model threads (tests/model/actors.hpp); their exit is tests/model/exits.hpp.
// Outside: patterns (they are the receiver's alone), aliases but for one, bounds.
#include <smarm/mailbox.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::finish;
using under_model::stage;
using under_model::with_box;

constexpr std::int64_t soon = 100;

PROTOCOL(mailbox_send_against_receive) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] { model::expect(receive<int>() == 7, "the message"); });
        finish(receiver, exit_reason::normal());
      },
      [&] { send(who, 7); });
}

PROTOCOL(mailbox_two_senders) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] {
          const int first = receive<int>();
          const int second = receive<int>();
          model::expect(first + second == 3 && first != second, "both, once");
        });
        finish(receiver, exit_reason::normal());
      },
      [&] { send(who, 1); }, [&] { send(who, 2); });
}

PROTOCOL(mailbox_deadline_against_send) {
  stage here(true);
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] {
          if (!receive_until<int>(deadline::from_ns(soon))) {
            model::expect(receive<int>() == 7, "it comes to the next receive");
          }
        });
        finish(receiver, exit_reason::normal());
      },
      [&] { send(who, 7); }, [&] { here.fire_due(soon); });
}

PROTOCOL_WITH(mailbox_stop_against_send, SAMPLED_IN_THE_SUITE) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] { static_cast<void>(receive<int>()); });
        finish(receiver, exit_reason::stopped());
      },
      [&] { send(who, 7); }, [&] { under_model::stop(receiver); });
}

PROTOCOL(mailbox_exit_against_send) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] { static_cast<void>(mailbox_size()); });
        finish(receiver, exit_reason::normal());
      },
      [&] { send(who, 7); });
}

PROTOCOL(mailbox_monitor_against_exit) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  with_box(watcher);
  const pid who = child.who();
  model::parallel(
      [&] {
        here.run(watcher, [&] {
          const monitor_ref watch = monitor(who, to_mailbox);
          const down gone = receive<down>();
          model::expect(gone.ref == watch.id() && gone.who == who, "of this monitor");
          model::expect(gone.reason.is_shutdown() || gone.reason == exit_reason::noproc());
          model::expect(mailbox_size() == 0, "one down");
        });
        finish(watcher, exit_reason::normal());
      },
      [&] {
        here.run(child, [] {});
        finish(child, exit_reason::shutdown());
      });
}

PROTOCOL(mailbox_demonitor_against_exit) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  with_box(watcher);
  const pid who = child.who();
  here.run(watcher, [&] {
    monitor_ref watch = monitor(who, to_mailbox);
    model::parallel(
        [&] {
          under_model::run_as(&watcher);
          static_cast<void>(watch.demonitor_and_flush());
          under_model::run_as(nullptr);
        },
        [&] {
          here.run(child, [] {});
          finish(child, exit_reason::shutdown());
        });
    model::expect(mailbox_size() == 0, "no down is left, and none comes");
  });
  finish(watcher, exit_reason::normal());
}

PROTOCOL(mailbox_reply_alias_against_down) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  with_box(watcher);
  const pid who = child.who();
  here.run(watcher, [&] {
    auto [watch, to] = monitor_with_alias(who, alias_use::reply_demonitor);
    delivery result = delivery::full;
    model::parallel(
        [&] {
          here.run(child, [&, to = to] { result = send(to, 7); });
          finish(child, exit_reason::shutdown());
        },
        [&, to = to] { static_cast<void>(send(to, 8)); });
    const std::size_t messages = mailbox_size();
    model::expect(messages == 1 || messages == 2, "one reply; a down only where it came before");
    model::expect(receive_until<int>(deadline::from_ns(0)).has_value(), "the reply");
    model::expect(!receive_until<int>(deadline::from_ns(0)).has_value(), "and no second one");
    static_cast<void>(result);
  });
  finish(watcher, exit_reason::normal());
}

}  // namespace
}  // namespace smarm
