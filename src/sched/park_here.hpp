// park_here is park (sched/wait.hpp) without a call, for the waits of the layers above.
//
// Why: each return behind a switch that is not the one the processor predicts costs 11 ns, and it
// predicts the call chain of whoever was left. Where two actors wait in different functions, as a
// caller and its server do, each frame between a wait and the switch is such a return. So there is
// none: the switch stands in the function that waits (fiber/context_inline.hpp).
// Threads: as park.
#pragma once

#include <smarm/deadline.hpp>

#include "sched/wait.hpp"
#ifndef SMARM_MODEL
#include "base/assert.hpp"
#include "fiber/current.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/slot.hpp"
#include "sched/thread_parker.hpp"
#include "sched/timers.hpp"
#endif

namespace smarm::detail {

#ifdef SMARM_MODEL

inline wait_outcome park_here(const waker& wait, wait_reason reason, deadline until) {
  return park(wait, reason, until);
}

#else

// wait_access opens wakers to the scheduler's side.
struct wait_access {
  // SAFETY: the lowest bit marks a thread_parker; slots and parkers are aligned.
  [[nodiscard]] static bool is_thread(const waker& wait) noexcept {
    return (wait.target_ & 1) != 0;
  }
  [[nodiscard]] static thread_parker& thread_of(const waker& wait) noexcept {
    return *reinterpret_cast<thread_parker*>(wait.target_ & ~std::uintptr_t{1});
  }
  [[nodiscard]] static slot& slot_of(const waker& wait) noexcept {
    return *reinterpret_cast<slot*>(wait.target_);  // SAFETY: as above
  }
  [[nodiscard]] static std::uint64_t ticket_of(const waker& wait) noexcept { return wait.ticket_; }
};

// is_unwinding tells whether the running actor has an exception in flight: then a stop must not
// start another.
inline bool is_unwinding() noexcept { return current_thread().exceptions->uncaught != 0; }

// What a park seldom needs, in park.cpp: a thread's wait; one that no stop may wake; the actor's
// own timer, made at its first wait with a deadline (null: there is no memory); a wait with a timer
// on the stack, where there was no memory for that; one whose time has passed as it begins.
wait_outcome park_thread(const waker& wait, deadline until);
wait_outcome park_shielded(slot& self, const waker& wait, wait_reason reason,
                           deadline until) noexcept;
standing_timer* make_timer(slot& self, const waker& wait) noexcept;
wait_outcome park_by_alarm(const waker& wait, deadline until) noexcept;
wait_outcome park_expired() noexcept;

// Parks the running actor until it is woken, or until the deadline.
[[gnu::always_inline]] inline wait_outcome park_actor(slot& self, const waker& wait,
                                                      wait_reason reason, deadline until) noexcept {
  self.reason = reason;
  standing_timer* own = nullptr;
  if (!until.is_never()) {
    own = self.wait_timer;
    if (own == nullptr) [[unlikely]] {
      own = make_timer(self, wait);
      if (own == nullptr) return park_by_alarm(wait, until);
    }
    // Where it fires in time anyhow nobody has to look at the clock, which costs as much as a
    // switch; if the deadline has passed it fires at once.
    if (!own->fires_by(until.ns()) && until.has_passed()) return park_expired();
    scheduler& here = *scheduler::current();
    if (here.core().work().timers.want(*own, wait, until.ns())) here.note_deadline();
  }
  scheduler::park_running();
  return own != nullptr && own->has_fired(wait) ? wait_outcome::timed_out : wait_outcome::woken;
}

[[gnu::always_inline]] inline wait_outcome park_here(const waker& wait, wait_reason reason,
                                                     deadline until) {
  if (wait_access::is_thread(wait)) [[unlikely]]
    return park_thread(wait, until);
  slot& self = wait_access::slot_of(wait);
  SMARM_ASSERT(scheduler::current_slot() == &self, "an actor parks on its own wait", self.index);
  if (is_unwinding()) [[unlikely]]
    return park_shielded(self, wait, reason, until);
  if (self.state.stop_is_pending()) [[unlikely]]
    throw_stop();
  const wait_outcome outcome = park_actor(self, wait, reason, until);
  if (self.state.stop_is_pending()) [[unlikely]]
    throw_stop();
  return outcome;
}

#endif

}  // namespace smarm::detail
