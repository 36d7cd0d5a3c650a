// A timer that sends under the checker: its expiry against a cancel against the end of the actor
// that it goes to, and its start against that end.
//
// Proves, for one timer, one cancel, one exit, and one or two looks of a scheduler: one of the
// three has the message, and it is destroyed, once, or lies in the mailbox; a cancel that tells
// what was left has kept it from being sent, and one that tells nothing has not; when the
// destination has ended, and whoever met it is through, the message is gone although the timer is
// still held, the wheel is empty, and the box knows of none; an interval arms no more. Everything
// is freed, once.
//
// The exit here does what scheduler::publish_end does to hooks; actors are model threads
// (tests/model/actors.hpp).
//
// Outside: several timers to one actor; timers to names, which no exit ends.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <smarm/detail/envelope.hpp>
#include <smarm/timer.hpp>

#include "actor/actor_box.hpp"
#include "actor/message_alarm.hpp"
#include "sched/driver.hpp"
#include "sched/timers.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/parcel.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {

namespace {

// The wheel of the running model; made anew in each execution.
timers* the_wheel = nullptr;

}  // namespace

timers& wheel_of(runtime_core&) noexcept { return *the_wheel; }
void arm_in(runtime_core&, alarm& what) noexcept { (void)the_wheel->arm(what); }

namespace {

using under_model::actor;
using under_model::finish;
using under_model::parcel;
using under_model::stage;

constexpr std::int64_t soon = 1'000'000;

// counted is a message whose copies are counted: what is made must be destroyed. The counts are
// atomic so that two may come and go at once.
struct counts {
  atomic<int> made{0};
  atomic<int> destroyed{0};
  [[nodiscard]] int alive() const noexcept { return made.load(relaxed) - destroyed.load(relaxed); }
};

class counted {
 public:
  explicit counted(counts& to) : to_(&to), what_(std::make_unique<parcel>(7)) { note_made(); }
  counted(const counted& from) : to_(from.to_), what_(std::make_unique<parcel>(7)) { note_made(); }
  counted(counted&& from) noexcept = default;
  counted& operator=(const counted&) = delete;
  counted& operator=(counted&&) = delete;
  ~counted() {
    // relaxed: a count, read when all is over
    if (what_ != nullptr) to_->destroyed.fetch_add(1, relaxed);
  }

 private:
  void note_made() const noexcept { to_->made.fetch_add(1, relaxed); }  // relaxed: as above

  counts* to_;
  std::unique_ptr<parcel> what_;
};

// scene is a stage with a timer to an actor, and one who may cancel it.
class scene {
 public:
  scene() {
    the_wheel = &wheel;
    stage::introduce(destination, 1);
    stage::introduce(caller, 2);
  }
  scene(const scene&) = delete;
  scene& operator=(const scene&) = delete;
  ~scene() { the_wheel = nullptr; }

  // make gives a timer, held by the caller of make; of a period, or for one message.
  void make(std::int64_t period_ns) {
    std::unique_ptr<message_source> what;
    if (period_ns == 0) {
      what = std::make_unique<one_message<counted>>(envelope_of(counted(messages)));
    } else {
      what = std::make_unique<repeated_message<counted>>(counted(messages));
    }
    under_model::run_as(&caller);
    timer.reset(
        new message_alarm(*current_runtime(), period_ns, destination.who(), std::move(what)));
    under_model::run_as(nullptr);
  }
  void start(std::int64_t period_ns = 0) {
    make(period_ns);
    timer->start(soon);
  }

  void end_destination() {
    here.run(destination, [] {});
    finish(destination, exit_reason::killed());
  }
  void cancel() {
    here.run(caller, [this] { left = timer->cancel(); });
  }
  // arrived counts what lies in the mailbox of a destination that lives.
  [[nodiscard]] std::size_t arrived() {
    std::size_t found = 0;
    (void)with_box(destination.who(), [&](actor_box& box) { found = box.appended; });
    return found;
  }
  void expect_all_gone() const {
    model::expect(messages.alive() == 0, "the message is gone, though the timer is held");
    expect_quiet();
  }
  void expect_quiet() const {
    model::expect(wheel.size() == 0, "none is armed");
    model::expect(!timer->is_linked(), "no box knows of it");
  }

  stage here;
  timers wheel;
  actor destination;
  actor caller;
  counts messages;
  alarm_ref timer;
  std::optional<std::chrono::nanoseconds> left;
};

PROTOCOL(timer_expiry_against_cancel) {
  scene s;
  s.start();
  model::parallel([&] { s.cancel(); }, [&] { s.wheel.fire_due(soon); });
  const std::size_t arrived = s.arrived();
  model::expect(arrived == (s.left ? 0 : 1), "it is sent, or the cancel tells what was left");
  model::expect(s.messages.alive() == static_cast<int>(arrived), "what is not sent is destroyed");
  s.expect_quiet();
  s.end_destination();
  s.expect_all_gone();
}

PROTOCOL(timer_expiry_against_exit) {
  scene s;
  s.start();
  model::parallel([&] { s.end_destination(); }, [&] { s.wheel.fire_due(soon); });
  s.expect_all_gone();
}

PROTOCOL(timer_cancel_against_exit) {
  scene s;
  s.start();
  model::parallel([&] { s.end_destination(); }, [&] { s.cancel(); });
  s.expect_all_gone();
}

PROTOCOL(timer_expiry_against_cancel_against_exit) {
  scene s;
  s.start();
  model::parallel([&] { s.end_destination(); }, [&] { s.cancel(); },
                  [&] { s.wheel.fire_due(soon); });
  s.expect_all_gone();
}

// Whoever holds the timer lets go of it while it ends.
PROTOCOL(timer_exit_against_a_holder_that_goes) {
  scene s;
  s.start();
  model::parallel([&] { s.end_destination(); }, [&] { s.timer.reset(); });
  model::expect(s.messages.alive() == 0 && s.wheel.size() == 0, "nothing is left");
}

PROTOCOL(timer_start_against_exit) {
  scene s;
  s.make(0);
  model::parallel([&] { s.end_destination(); }, [&] { s.timer->start(soon); });
  s.expect_all_gone();
}

// It may fire before its start has returned.
PROTOCOL(timer_start_against_exit_against_expiry) {
  scene s;
  s.make(0);
  model::parallel([&] { s.end_destination(); }, [&] { s.timer->start(soon); },
                  [&] { s.wheel.fire_due(soon); });
  s.expect_all_gone();
}

// An interval arms its next alarm, or what ends it has come first.
PROTOCOL(timer_interval_against_exit) {
  scene s;
  s.start(soon);
  model::parallel([&] { s.end_destination(); }, [&] { s.wheel.fire_due(soon); });
  s.expect_all_gone();
}

PROTOCOL(timer_interval_against_cancel) {
  scene s;
  s.start(soon);
  model::parallel([&] { s.cancel(); }, [&] { s.wheel.fire_due(soon); });
  model::expect(s.left.has_value(), "it ends the interval, also in the middle of a tick");
  model::expect(s.messages.alive() == static_cast<int>(s.arrived()), "the source is gone");
  s.expect_quiet();
  s.end_destination();
  s.expect_all_gone();
}

PROTOCOL_WITH(timer_interval_against_cancel_against_exit, SAMPLED_IN_THE_SUITE) {
  scene s;
  s.start(soon);
  model::parallel([&] { s.end_destination(); }, [&] { s.cancel(); },
                  [&] { s.wheel.fire_due(soon); });
  s.expect_all_gone();
}

// Two schedulers look, one after the other's next alarm: the source is one's at a time.
PROTOCOL(timer_interval_of_two_expiries_against_exit) {
  scene s;
  s.start(soon);
  model::parallel([&] { s.end_destination(); }, [&] { s.wheel.fire_due(soon); },
                  [&] { s.wheel.fire_due(soon * 8); });
  s.expect_all_gone();
}

}  // namespace
}  // namespace smarm::detail
