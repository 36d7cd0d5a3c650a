// One protocol for every wait: begin_wait, register, park; the other side calls waker::wake.
//
// A primitive (channel, mutex, join, fd, blocking job ...) that has to wait
//   1. takes its own lock and looks at its state: nothing to wait for, no wait;
//   2. in the same critical section calls begin_wait() and stores the waker where the other side
//      will find it;
//   3. leaves the critical section and calls park();
//   4. reads its own state: the wake is precise, so it never registers again "to be safe".
// However park is left (woken, timed out, or by the exception of a stop) the primitive withdraws
// its registration if the other side has not taken it; a scope guard does it. A waker that was
// taken and is called late does nothing: it belongs to a wait epoch that has passed.
//
// Invariants
//   1. The wait epoch is the identity of a wait. waker::wake acts at most once for each
//      begin_wait, whoever calls how many copies.
//   2. Only request_stop wakes without naming an epoch, and a stop is final.
//   3. No raw_mutex is held at park or at wake (wake may take a run queue's lock).
//
// Threads: begin_wait and park belong to the waiting actor, or to a foreign thread, which they
// block. wake may be called by any thread, also after the runtime has ended.
#pragma once

#include <cstdint>

#include <smarm/deadline.hpp>

#include "fiber/current.hpp"
#include "sched/slot.hpp"
#include "sched/wait_reason.hpp"

namespace smarm::detail {

class thread_parker;

// waker is where to deliver the wake of one wait. A value of two words; copying it is free.
class waker {
 public:
  // An empty waker wakes nobody.
  constexpr waker() noexcept = default;

  // wake makes the waiter runnable if it still is in the wait that this waker is of. Never parks,
  // never throws. The caller holds no raw_mutex.
  void wake() const noexcept;

  // wake_last as wake, for a waker (a joiner's) whose waiter should run after what is queued.
  void wake_last() const noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return target_ != 0; }
  friend bool operator==(const waker&, const waker&) noexcept = default;

 private:
  friend waker begin_wait() noexcept;
  friend struct wait_access;
  friend class timers;
  friend class standing_timer;
  constexpr waker(std::uintptr_t target, std::uint64_t ticket) noexcept
      : target_(target), ticket_(ticket) {}

  std::uintptr_t target_ = 0;  // a slot, or a thread_parker with the lowest bit set
  std::uint64_t ticket_ = 0;   // slot: generation and epoch, low bits 0; thread_parker: epoch
};

enum class wait_outcome : std::uint8_t {
  woken,      // by waker::wake
  timed_out,  // by the deadline; a wake may have come as well, so the primitive reads its state
};

// begin_wait opens a new wait of the caller and returns its waker. Lock-free, never parks, not a
// stop point: made for the inside of a critical section.
[[nodiscard]] waker begin_wait() noexcept;

// park waits until the waker of the last begin_wait is woken or the deadline passes. A stop point
// on entry and on return: it leaves by the exception of a stop. A deadline that has passed
// returns timed_out without parking. PARKS: the actor may resume on another scheduler.
wait_outcome park(const waker& wait, wait_reason reason, deadline until = deadline::never());

// park_through_stop is park that a stop neither refuses nor cuts short, for a wait that must be
// seen to its end (a job that reads the waiter's stack). Never throws.
wait_outcome park_through_stop(const waker& wait, wait_reason reason,
                               deadline until = deadline::never()) noexcept;

// stop_point leaves by the exception of a stop if one was requested and none of the reasons to
// hold it off (a shield, an unwind in progress) stands. The entry of every call that may park.
#ifdef SMARM_MODEL
void stop_point();  // in a model, tests/model/actors.cpp knows who runs
#else
// throw_stop throws that exception, unless the actor unwinds.
[[gnu::cold]] void throw_stop();
inline void stop_point() {
  if (const auto* const self = static_cast<const slot*>(current_thread().running)) {
    if (self->state.stop_is_pending()) [[unlikely]]
      throw_stop();
  }
}
#endif

}  // namespace smarm::detail
