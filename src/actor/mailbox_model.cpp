// The mailbox and the monitors that deliver into it under the checker, by their public face.
//
// Proves, for one receiver and one or two who send:
//   - a message that was sent is received, or left to be destroyed once: no receive sleeps on it;
//   - a receive that gives up leaves the message for the next one;
//   - a message sent while the receiver ends is refused, or destroyed with it, before the news;
//   - what one sender sends comes in its order;
//   - what does not fit stays, in its order, and wakes nobody for good;
//   - a bounded mailbox takes no more than its bound from two at once;
//   - a monitor tells once, and never after demonitor;
//   - nothing comes by an alias after unalias, after its one message, or after its monitor.
// Actors are model threads (tests/model/actors.hpp); their exit is tests/model/exits.hpp.
// Outside: three senders and more, predicates that throw.
#include <utility>

#include <smarm/channel.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/select.hpp>

#include "sched/exit_hook.hpp"
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

PROTOCOL(mailbox_order_of_one_sender) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] {
          model::expect(receive<int>() == 1 && receive<int>() == 2, "in their order");
        });
        finish(receiver, exit_reason::normal());
      },
      [&] {
        send(who, 1);
        send(who, 2);
      });
}

PROTOCOL(mailbox_what_does_not_fit_against_receive) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  with_box(receiver);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] {
          model::expect(receive<long>() == 2, "the one that fits");
          model::expect(receive<int>() == 1, "what did not fit stayed");
        });
        finish(receiver, exit_reason::normal());
      },
      [&] {
        send(who, 1);
        send(who, 2L);
      });
}

// The receiver's walk, one step after the other: which is taken, and what stays in which order.
PROTOCOL(mailbox_oldest_that_fits) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  here.run(receiver, [&] {
    const pid who = receiver.who();
    const auto now = deadline::from_ns(0);
    model::expect(mailbox_size() == 0, "nothing is there");
    send(who, 1);
    send(who, 2);
    send(who, 3L);
    model::expect(receive_until<long>(now).value_or(0) == 3, "the last one");
    send(who, 4);
    send(who, 5L);
    model::expect(mailbox_size() == 4, "four are left");
    const auto even = [](const int& value) { return value % 2 == 0; };
    model::expect(receive(when(even, [](int value) { return value; })) == 2,
                  "the first even one, from the middle");
    const auto by_either = [&] {
      return receive([](long value) { return static_cast<int>(value) * 10; },
                     [](int value) { return value; }, after(now, [] { return -1; }));
    };
    model::expect(by_either() == 1, "the oldest first");
    send(who, 6);
    model::expect(by_either() == 4, "and so on");
    send(who, '7');
    model::expect(receive<char>() == '7', "one that came behind what is kept");
    model::expect(by_either() == 50 && by_either() == 6, "which is there as it was");
    model::expect(by_either() == -1 && mailbox_size() == 0, "and then none");
  });
  finish(receiver, exit_reason::normal());
}

PROTOCOL(mailbox_bounded_against_two_senders) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  const pid who = receiver.who();
  here.run(receiver, [&] {
    limit_mailbox(1);
    delivery first{};
    delivery second{};
    model::parallel([&] { first = send(who, 1); }, [&] { second = send(who, 2); });
    under_model::run_as(&receiver);
    model::expect((first == delivery::sent) != (second == delivery::sent), "one has room");
    model::expect((first == delivery::full) != (second == delivery::full), "the other is told");
    model::expect(receive<int>() == (first == delivery::sent ? 1 : 2), "what was sent");
    model::expect(send(who, 3) == delivery::sent, "there is room again");
    auto ends = channel<int>();
    const int chosen =
        select(on(ends.rx, [](auto) { return 0; }), on_message([](int value) { return value; }));
    model::expect(chosen == 3 && send(who, 4) == delivery::sent, "for whoever takes it");
  });
  finish(receiver, exit_reason::normal());
}

PROTOCOL(mailbox_of_two_that_make_it) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  const pid who = receiver.who();
  model::parallel([&] { model::expect(send(who, 1) == delivery::sent, "it lives"); },
                  [&] { model::expect(send(who, 2) == delivery::sent, "it lives"); });
  here.run(receiver, [] { model::expect(receive<int>() + receive<int>() == 3, "both"); });
  finish(receiver, exit_reason::normal());
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

// The receiver makes no mailbox itself: the sender's is the first hook that it has.
PROTOCOL(mailbox_first_message_against_exit) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  const pid who = receiver.who();
  model::parallel(
      [&] {
        here.run(receiver, [] {});
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

// The answer comes before the end: there is no down.
PROTOCOL(mailbox_reply_ends_the_monitor) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  with_box(watcher);
  const pid who = child.who();
  here.run(watcher, [&] {
    auto [watch, to] = monitor_with_alias(who, alias_use::reply_demonitor);
    model::parallel(
        [&] {
          under_model::run_as(&watcher);
          const bool replied = receive([](int) { return true; }, [](const down&) { return false; });
          model::expect(replied, "the reply");
          under_model::run_as(nullptr);
        },
        [&, to = to] {
          here.run(child, [&] { send(to, 7); });
          finish(child, exit_reason::shutdown());
        });
    model::expect(mailbox_size() == 0, "after it no down comes");
    model::expect(send(to, 8) == delivery::no_such_actor, "and nothing else");
  });
  finish(watcher, exit_reason::normal());
}

PROTOCOL(mailbox_unalias_against_send) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  here.run(receiver, [&] {
    const alias kept = make_alias();
    const alias once = make_alias(alias_use::reply);
    bool was_in_use = false;
    std::size_t messages = 0;
    delivery sent{};
    model::parallel(
        [&] {
          under_model::run_as(&receiver);
          was_in_use = unalias(once);
          messages = mailbox_size();
          under_model::run_as(nullptr);
        },
        [&] { sent = send(once, 7); });
    model::expect((sent == delivery::sent) != was_in_use, "used, or taken back");
    model::expect(mailbox_size() == messages, "none comes after unalias");
    model::expect(send(once, 8) == delivery::no_such_actor, "nor later");
    model::expect(send(kept, 9) == delivery::sent && send(kept, 9) == delivery::sent, "as often");
    model::expect(!unalias(alias{{}, kept.id}) && unalias(kept) && !unalias(kept), "once");
    model::expect(mailbox_size() == messages + 2, "all are there");
  });
  finish(receiver, exit_reason::normal());
}

PROTOCOL(mailbox_alias_ends_with_its_monitor) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  with_box(watcher);
  const pid who = child.who();
  here.run(watcher, [&] {
    const alias other = make_alias();
    auto [watch, to] = monitor_with_alias(who, alias_use::any);
    bool taken_off = false;
    model::parallel(
        [&, &watch = watch, to = to] {
          under_model::run_as(&watcher);
          taken_off = watch.demonitor();
          model::expect(send(to, 7) == delivery::no_such_actor, "it has gone with the monitor");
          under_model::run_as(nullptr);
        },
        [&] {
          here.run(child, [] {});
          finish(child, exit_reason::shutdown());
        });
    model::expect(!taken_off || mailbox_size() == 0, "and no down comes");
    model::expect(send(other, 8) == delivery::sent, "the other stands");
  });
  finish(watcher, exit_reason::normal());
}

PROTOCOL(mailbox_flush_takes_its_own_down) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  const pid who = child.who();
  here.run(watcher, [&] {
    const monitor_ref first = monitor(who, to_mailbox);
    monitor_ref second = monitor(who, to_mailbox);
    monitor_ref third = monitor(who, to_mailbox);
    send(watcher.who(), 1);
    here.run(child, [] {});
    finish(child, exit_reason::shutdown());
    under_model::run_as(&watcher);
    model::expect(mailbox_size() == 4, "three downs and a message");
    model::expect(!second.demonitor_and_flush() && mailbox_size() == 3, "its own is gone");
    model::expect(!third.demonitor_and_flush() && mailbox_size() == 2, "and the next one's");
    send(watcher.who(), 2L);
    model::expect(receive<long>() == 2, "what came behind what is kept");
    model::expect(receive<down>().ref == first.id(), "the first one's is there");
    model::expect(receive<int>() == 1, "and the message");
    model::expect(mailbox_size() == 0, "no more");
  });
  finish(watcher, exit_reason::normal());
}

// An alias for many messages leaves the monitor in place, and goes with it.
PROTOCOL(mailbox_down_ends_the_alias) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(watcher, 1);
  stage::introduce(child, 2);
  const pid who = child.who();
  here.run(watcher, [&] {
    auto [watch, to] = monitor_with_alias(who, alias_use::any);
    model::expect(send(to, 7) == delivery::sent && send(to, 8) == delivery::sent, "as often");
    here.run(child, [] {});
    finish(child, exit_reason::shutdown());
    under_model::run_as(&watcher);
    model::expect(receive<down>().ref == watch.id(), "the monitor stood");
    model::expect(receive<int>() == 7 && receive<int>() == 8, "the messages");
    model::expect(send(to, 9) == delivery::no_such_actor, "and no more");
  });
  finish(watcher, exit_reason::normal());
}

// noted is a message that says when it is destroyed.
struct noted {
  explicit noted(bool& to) noexcept : gone(&to) {}
  noted(noted&& from) noexcept : gone(std::exchange(from.gone, nullptr)) {}
  noted& operator=(noted&&) = delete;
  ~noted() {
    if (gone != nullptr) *gone = true;
  }

  bool* gone;
};

struct last_look final : detail::exit_hook {
  explicit last_look(const bool& at) noexcept : at_(at) {}
  void on_exit(pid, const exit_reason&) noexcept override {
    model::expect(at_, "before anybody is told of the end");
  }

 private:
  const bool& at_;
};

PROTOCOL(mailbox_what_is_left_goes_before_the_news) {
  stage here;
  actor receiver;
  stage::introduce(receiver, 1);
  bool gone = false;
  auto* const hook = new last_look(gone);
  model::expect(detail::add_exit_hook(receiver.who(), *hook), "it lives");
  hook->drop_reference();
  send(receiver.who(), noted(gone));
  here.run(receiver, [] {});
  finish(receiver, exit_reason::normal());
  model::expect(gone, "destroyed");
}

}  // namespace
}  // namespace smarm
