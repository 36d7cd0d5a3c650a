// message_alarm is a timer that sends: an alarm in the runtime's wheel with a message, or a source
// of them.
//
// An alarm fires once, so a repeated one arms another, and the reference that people hold follows:
// they share the state.
//
// The protocol: expiry against cancel against the end of the destination
//   A timer to a pid is known to that actor's box, whose end ends it. Whoever ends it sets over_
//   and takes armed_, under lock_, and then takes the ring out of the wheel. The wheel says
//   whether it was still there: so exactly one, a cancel, the end of the destination, or the
//   expiry, has the ring and with it the message. An expiry that finds over_ set arms no other.
//
// Invariants
//   1. armed_ is null where the timer is over, or not started.
//   2. what_ is used by whoever has taken the ring out of the wheel, until another one is armed;
//      before the first is armed, by start. When over_ is set, that one destroys it.
//   3. The message is never destroyed with a lock held: its destructor may send, cancel and arm.
//   4. References: of whoever holds the timer; of each ring; of the box that it is known to.
// Threads: cancel, read and start by actors of the runtime; the rest as said.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <smarm/timer.hpp>

#include "base/atomic.hpp"
#include "base/intrusive_list.hpp"
#include "base/raw_mutex.hpp"
#include "sched/timers.hpp"

namespace smarm::detail {

class runtime_core;

// The link is by which the destination's box knows it: guarded by the lock of that actor's slot as
// long as it lives, and then its exit's.
class message_alarm final : public list_link {
 public:
  message_alarm(runtime_core& runtime, std::int64_t period_ns, timer_target to,
                std::unique_ptr<message_source> what) noexcept;

  void add_reference() noexcept {
    references_.fetch_add(1, relaxed);  // relaxed: whoever copies a reference already holds one
  }
  void drop_reference() noexcept {
    // acq_rel: every use by the other holders happens before the deletion by the last one.
    if (references_.fetch_sub(1, acq_rel) == 1) delete this;
  }

  // start arms the first alarm, once; to an actor that has ended it arms none. Throws
  // std::bad_alloc.
  void start(std::int64_t deadline_ns);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> cancel();
  [[nodiscard]] std::optional<std::chrono::nanoseconds> read();

  // end_with_destination is called by the exit of the actor to whose box it was known, once, and
  // drops the box's reference. PARKS: where the message's destructor does.
  void end_with_destination() noexcept;

 private:
  // ring is the alarm in the wheel.
  class ring final : public alarm {
   public:
    ring(std::int64_t deadline_ns, message_alarm& of) noexcept : alarm(deadline_ns), of_(of) {
      of_.add_reference();
    }
    void on_expiry() noexcept override { of_.expire(*this); }
    void on_dropped() noexcept override { of_.end_with_run(); }

   private:
    ~ring() override { of_.drop_reference(); }
    message_alarm& of_;
  };
  struct ring_dropper {
    void operator()(ring* held) const noexcept { held->drop_reference(); }
  };
  using ring_ref = std::unique_ptr<ring, ring_dropper>;

  ~message_alarm() = default;

  // taken is what somebody has who ends the timer.
  struct taken {
    std::unique_ptr<message_source> unsent;  // null: an expiry has it
    ring_ref last;                           // null: it was over
  };
  [[nodiscard]] taken take() noexcept;

  // make_known tells the destination's box, where it goes to a pid; false: that actor has ended.
  // Throws std::bad_alloc.
  [[nodiscard]] bool make_known();
  // forget takes it back, if it is still known there; false: the actor has ended.
  bool forget() noexcept;

  void expire(const ring& fired) noexcept;
  void end_with_run() noexcept;
  [[nodiscard]] bool reaches_somebody() const noexcept;
  [[nodiscard]] bool is_of_caller() const noexcept;

  runtime_core& runtime_;
  const std::int64_t period_ns_;
  const timer_target to_;
  std::unique_ptr<message_source> what_;  // see invariant 2
  // Guards armed_ and over_, and that armed_ stands in the wheel. Taken before the wheel's lock, so
  // no leaf; never together with a slot's, nor at a park, nor while a message is sent or destroyed.
  outer_mutex lock_;
  ring_ref armed_;
  bool over_ = false;
  atomic<std::uint32_t> references_{1};
};

// What an alarm needs of its runtime; in timer.cpp, and the models have their own. arm_in is
// called by the runtime's schedulers and their actors; wheel_of by any thread.
void arm_in(runtime_core& runtime, alarm& what) noexcept;
[[nodiscard]] timers& wheel_of(runtime_core& runtime) noexcept;

}  // namespace smarm::detail
