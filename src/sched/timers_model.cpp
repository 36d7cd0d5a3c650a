// The timer wheel under the checker: cancel against fire, and who is told of the earliest deadline.
//
// Proves, for one or two timers and two or three threads:
//   - a timer fires or is cancelled, once, and who cancels learns which;
//   - after cancel the wheel is through with the node: it may be gone at once;
//   - the waiter of a timer that fires is woken, whether or not it has parked yet;
//   - the earliest deadline is slept towards by one of two that park, whoever of them armed it;
//   - earliest() is never later than an armed deadline for whoever is ordered after its insertion;
//   - an actor's standing timer, two or three waits of which meet the wheel that looks at it: each
//     wait that is not over is woken at its deadline and not before, however the wheel has moved
//     the timer meanwhile, and after retire it may go at once;
//   - an alarm is called, or disarmed, or dropped with the run: one of them, and freed once.
// Actors are model threads (tests/model/actors.hpp).
// Outside: the dealing down of the upper levels (timers_test.cpp has it: no concurrency in it),
// batches of more than 64.
#include <array>
#include <memory>
#include <optional>

#include "sched/coordinator.hpp"
#include "sched/timers.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::stage;

constexpr std::int64_t soon = 100;

PROTOCOL(timers_cancel_against_fire) {
  stage here;
  timers wheel;
  auto alarm = std::make_unique<timer>(soon, waker());
  model::expect(wheel.insert(*alarm), "it is the earliest");
  bool cancelled = false;
  std::size_t fired = 0;
  model::parallel(
      [&] {
        cancelled = wheel.cancel(*alarm);
        alarm.reset();
      },
      [&] { fired = wheel.fire_due(soon); });
  model::expect(fired == (cancelled ? 0U : 1U), "fired or cancelled");
  model::expect(wheel.size() == 0 && wheel.earliest() == never_ns, "nothing is left");
}

PROTOCOL(timers_two_fire_at_once) {
  stage here;
  timers wheel;
  timer first(soon, waker());
  timer second(soon + 1, waker());
  model::expect(wheel.insert(first) && !wheel.insert(second));
  std::size_t fired[2] = {};
  model::parallel([&] { fired[0] = wheel.fire_due(soon + 1); },
                  [&] { fired[1] = wheel.fire_due(soon); });
  model::expect(fired[0] + fired[1] == 2, "each fires once");
  model::expect(fired[1] <= 1, "and none before its time, though they share a tick");
  model::expect(wheel.size() == 0 && wheel.earliest() == never_ns, "nothing is left");
}

// The deadlines of what is left, on another level of the wheel, show when the earliest has fired.
PROTOCOL(timers_next_is_the_earliest) {
  stage here;
  timers wheel;
  constexpr std::int64_t later = 5'000'000;
  timer first(soon, waker());
  timer second(later, waker());
  timer third(later * 2, waker());
  timer fourth(later * 3, waker());
  model::expect(wheel.insert(first) && !wheel.insert(second) && !wheel.insert(third));
  model::parallel([&] { model::expect(wheel.fire_due(soon) == 1, "one is due"); },
                  [&] {
                    model::expect(!wheel.insert(fourth), "others are before it");
                    model::expect(wheel.cancel(third), "it is not due");
                  });
  model::expect(wheel.earliest() == later, "the second one is the earliest");
  model::expect(wheel.cancel(second) && wheel.cancel(fourth), "they are not due");
  model::expect(wheel.earliest() == never_ns, "nothing is left");
}

// What a scheduler that has announced its park sleeps towards, as picker::choose_wake_time has it.
std::int64_t choose_wake_time(coordinator& sleepers, const timers& wheel, unsigned self) {
  std::int64_t until = never_ns;
  for (;;) {
    const std::int64_t earliest = wheel.earliest();
    if (earliest == never_ns || !sleepers.take_keeper(self, earliest)) return until;
    until = earliest;
    if (wheel.earliest() >= earliest) return until;
  }
}

// A scheduler arms an earlier timer and parks without running anything, so it calls no rearm: it
// takes the keeper's role over, or the keeper has seen the timer.
PROTOCOL(timers_earlier_one_is_slept_towards) {
  stage here;
  timers wheel;
  coordinator sleepers(2, 2);
  timer late(soon * 2, waker());
  timer early(soon, waker());
  model::expect(wheel.insert(late));
  std::array<std::int64_t, 2> until{};
  model::parallel(
      [&] {
        sleepers.prepare_park(0, false);
        until[0] = choose_wake_time(sleepers, wheel, 0);
      },
      [&] {
        model::expect(wheel.insert(early), "it is the earliest");
        sleepers.prepare_park(1, false);
        until[1] = choose_wake_time(sleepers, wheel, 1);
      });
  model::expect(until[0] == soon || until[1] == soon, "one sleeps towards it");
  model::expect(wheel.cancel(early) && wheel.cancel(late));
}

// One is inserted and another cancelled while a third thread fires what is due.
PROTOCOL(timers_insert_against_cancel_and_fire) {
  stage here;
  timers wheel;
  timer first(soon, waker());
  timer second(soon / 2, waker());
  model::expect(wheel.insert(first));
  bool cancelled[2] = {};
  std::size_t fired = 0;
  model::parallel([&] { cancelled[0] = wheel.cancel(first); },
                  [&] {
                    static_cast<void>(wheel.insert(second));
                    model::expect(wheel.earliest() <= soon / 2 || wheel.size() == 0 ||
                                      wheel.earliest() == never_ns,
                                  "never later than what was armed, unless it has fired");
                    cancelled[1] = wheel.cancel(second);
                  },
                  [&] { fired = wheel.fire_due(soon); });
  model::expect(fired + cancelled[0] + cancelled[1] == 2, "each fired or was cancelled");
  model::expect(wheel.size() == 0);
}

PROTOCOL(timers_sleep_to_the_deadline) {
  stage here(true);
  actor sleeper;
  wait_outcome outcome{};
  model::parallel(
      [&] {
        here.run(sleeper, [&] {
          outcome = park(begin_wait(), wait_reason::sleep, deadline::from_ns(soon));
        });
      },
      [&] { here.fire_due(soon); });
  model::expect(outcome == wait_outcome::timed_out, "nobody else wakes it");
}

// The wake and the deadline come together, and a second wait follows: neither reaches it.
PROTOCOL(timers_wake_against_deadline) {
  stage here(true);
  actor sleeper;
  std::optional<waker> wake;
  atomic<int> opened{0};
  model::cell<int> news{0};
  model::parallel(
      [&] {
        here.run(sleeper, [&] {
          const waker mine = begin_wait();
          wake = mine;
          opened.store(1, release);
          if (park(mine, wait_reason::sleep, deadline::from_ns(soon)) == wait_outcome::woken) {
            model::expect(news.read() == 1, "what the waker wrote");
          }
          const waker next = begin_wait();
          model::expect(!sleeper.state.consume_notification(), "the next wait has no wake yet");
          next.wake();
          static_cast<void>(park(next, wait_reason::sleep));
        });
      },
      [&] {
        opened.await([](int now) { return now == 1; }, acquire);
        news.write(1);
        wake->wake();
      },
      [&] { here.fire_due(soon); });
}

PROTOCOL(timers_stop_against_deadline) {
  stage here(true);
  actor sleeper;
  ending how{};
  model::parallel(
      [&] {
        how = here.run(sleeper, [&] {
          static_cast<void>(park(begin_wait(), wait_reason::sleep, deadline::from_ns(soon)));
        });
      },
      [&] { here.fire_due(soon); }, [&] { under_model::stop(sleeper); });
  static_cast<void>(how);
}

// What an actor does with its standing timer on one thread, while another fires what is due at
// `at_ns`, once it has been told to. `waits` sets the timer to one wait after the other; of the
// last one, which ends at `deadline_ns`, it returns the waker.
template <class Waits>
void against_fire(Waits waits, std::int64_t at_ns, std::int64_t deadline_ns) {
  stage here;
  timers wheel;
  actor owner;
  std::optional<standing_timer> node;
  atomic<int> begun{0};
  waker last;
  model::parallel(
      [&] {
        here.run(owner, [&] {
          const waker first = begin_wait();
          node.emplace(first);
          last = waits(wheel, *node, first, begun);
        });
      },
      [&] {
        begun.await([](int now) { return now == 1; }, acquire);
        wheel.fire_due(at_ns);
      });
  model::expect(at_ns >= deadline_ns || !node->has_fired(last), "no wait ends before its time");
  model::expect(at_ns >= deadline_ns || wheel.earliest() > at_ns, "nobody looks for it meanwhile");
  if (!node->has_fired(last)) {
    model::expect(wheel.earliest() <= deadline_ns, "somebody will look in time");
    wheel.fire_due(deadline_ns);
  }
  model::expect(node->has_fired(last), "each wait ends at its time");
  model::expect(wheel.size() == 0 && wheel.earliest() == never_ns, "nothing is left");
}

// It comes to the deadline of a wait that is over, and the next wait begins: it finds the timer
// out, or is found by the wheel.
PROTOCOL(timers_standing_next_wait_against_fire) {
  against_fire(
      [](timers& wheel, standing_timer& node, const waker& first, atomic<int>& begun) {
        model::expect(wheel.want(node, first, soon), "it is the earliest");
        begun.store(1, release);
        const waker second = begin_wait();
        static_cast<void>(wheel.want(node, second, soon * 2));
        return second;
      },
      soon, soon * 2);
}

// The next wait ends before what the timer stands at, and the wheel comes to that.
PROTOCOL(timers_standing_earlier_wait_against_fire) {
  against_fire(
      [](timers& wheel, standing_timer& node, const waker& first, atomic<int>& begun) {
        static_cast<void>(wheel.want(node, first, soon * 2));
        begun.store(1, release);
        const waker second = begin_wait();
        static_cast<void>(wheel.want(node, second, soon));
        return second;
      },
      soon * 2, soon);
}

// The wheel moves it on to what the second wait wanted, while the third wants less.
PROTOCOL(timers_standing_moved_on_against_an_earlier_wait) {
  against_fire(
      [](timers& wheel, standing_timer& node, const waker& first, atomic<int>& begun) {
        static_cast<void>(wheel.want(node, first, soon));
        const waker second = begin_wait();
        model::expect(!wheel.want(node, second, soon * 3), "it stands before that");
        begun.store(1, release);
        const waker third = begin_wait();
        static_cast<void>(wheel.want(node, third, soon * 2));
        return third;
      },
      soon, soon * 2);
}

// It was moved on, has fired and stands anew, later than the next wait's deadline: what it stood at
// before must not be taken for that.
PROTOCOL(timers_standing_armed_anew) {
  against_fire(
      [](timers& wheel, standing_timer& node, const waker& first, atomic<int>& begun) {
        static_cast<void>(wheel.want(node, first, soon));
        const waker second = begin_wait();
        static_cast<void>(wheel.want(node, second, soon * 2));
        model::expect(wheel.fire_due(soon) == 0, "it is moved on");
        model::expect(wheel.fire_due(soon * 2) == 1 && node.has_fired(second), "it is due");
        const waker third = begin_wait();
        model::expect(wheel.want(node, third, soon * 4), "it is the earliest");
        begun.store(1, release);
        const waker fourth = begin_wait();
        static_cast<void>(wheel.want(node, fourth, soon * 3));
        return fourth;
      },
      soon * 2, soon * 3);
}

PROTOCOL(timers_standing_retire_against_fire) {
  stage here;
  timers wheel;
  actor owner;
  std::unique_ptr<standing_timer> node;
  atomic<int> begun{0};
  model::parallel(
      [&] {
        here.run(owner, [&] {
          const waker first = begin_wait();
          node = std::make_unique<standing_timer>(first);
          static_cast<void>(wheel.want(*node, first, soon));
          begun.store(1, release);
          wheel.retire(*node);
          node.reset();
        });
      },
      [&] {
        begun.await([](int now) { return now == 1; }, acquire);
        wheel.fire_due(soon);
      });
  model::expect(wheel.size() == 0 && wheel.earliest() == never_ns, "nothing is left");
}

// The whole of it: the actor parks in its second wait, and is woken.
PROTOCOL(timers_standing_wakes_who_parks) {
  stage here;
  timers wheel;
  actor owner;
  std::optional<standing_timer> node;
  atomic<int> begun{0};
  bool has_fired = false;
  model::parallel(
      [&] {
        here.run(owner, [&] {
          const waker first = begin_wait();
          node.emplace(first);
          static_cast<void>(wheel.want(*node, first, soon));
          begun.store(1, release);
          const waker second = begin_wait();
          static_cast<void>(wheel.want(*node, second, soon * 2));
          begun.store(2, release);
          static_cast<void>(park(second, wait_reason::sleep));
          has_fired = node->has_fired(second);
        });
      },
      [&] {
        begun.await([](int now) { return now >= 1; }, acquire);
        wheel.fire_due(soon);
        begun.await([](int now) { return now == 2; }, acquire);
        wheel.fire_due(soon * 2);
      });
  model::expect(has_fired, "nobody else wakes it");
}

// what_became counts what an alarm has met.
struct what_became {
  int expired = 0;
  int dropped = 0;
  int freed = 0;
};

struct counted_alarm final : alarm {
  explicit counted_alarm(std::int64_t at, what_became& to) noexcept : alarm(at), to_(to) {}
  ~counted_alarm() override {
    static_cast<void>(calls_.read());
    ++to_.freed;
  }
  void on_expiry() noexcept override { to_.expired += count(); }
  void on_dropped() noexcept override { to_.dropped += count(); }

 private:
  int count() noexcept {
    calls_.write(calls_.read() + 1);
    return 1;
  }

  what_became& to_;
  model::cell<int> calls_{0};
};

PROTOCOL(timers_alarm_disarmed_against_expiry) {
  stage here;
  timers wheel;
  what_became of;
  auto* const mine = new counted_alarm(soon, of);
  model::expect(wheel.arm(*mine) && wheel.is_armed(*mine), "it is the earliest");
  bool disarmed = false;
  std::size_t fired = 0;
  model::parallel(
      [&] {
        disarmed = wheel.disarm(*mine);
        model::expect(!wheel.is_armed(*mine) || disarmed, "one of the two");
        mine->drop_reference();
      },
      [&] { fired = wheel.fire_due(soon); });
  model::expect(fired == (disarmed ? 0U : 1U) && of.expired == (disarmed ? 0 : 1),
                "one of the two");
  model::expect(of.freed == 1 && wheel.size() == 0 && wheel.earliest() == never_ns, "none is left");
}

// The run ends: its alarms are dropped, while another thread takes one back; a timer stays.
PROTOCOL(timers_alarm_disarmed_against_the_end) {
  stage here;
  timers wheel;
  what_became of[2];
  auto* const mine = new counted_alarm(soon, of[0]);
  auto* const other = new counted_alarm(soon, of[1]);
  timer stays(soon * 2, waker());
  model::expect(wheel.arm(*mine) && !wheel.insert(stays) && !wheel.arm(*other), "armed");
  other->drop_reference();
  bool disarmed = false;
  model::parallel(
      [&] {
        disarmed = wheel.disarm(*mine);
        mine->drop_reference();
      },
      [&] { wheel.drop_alarms(); });
  model::expect(of[0].dropped == (disarmed ? 0 : 1) && of[0].freed == 1, "one of the two");
  model::expect(of[1].dropped == 1 && of[1].freed == 1, "the other is dropped");
  model::expect(of[0].expired + of[1].expired == 0, "none is called");
  model::expect(wheel.size() == 1 && wheel.earliest() == soon * 2, "a timer is none");
  model::expect(wheel.cancel(stays) && wheel.earliest() == never_ns, "it is there");
}

}  // namespace
}  // namespace smarm::detail
