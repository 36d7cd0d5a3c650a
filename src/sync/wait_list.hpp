// wait_list is the queue of those who wait for one thing, first come, first served.
//
// A waiter lies on the stack of the one who waits. Whoever gives it what it waits for takes it off
// the list, settles it, copies its waker, leaves the owner's lock, and only then wakes: after the
// lock is left the waiter may be gone.
//
// Invariants
//   1. A waiter stands in the list exactly while its state is `waiting`.
//   2. Whoever leaves a wait does so under the owner's lock or after the wake: it is settled, or it
//      is off the list and nobody will touch it again. Never both, never neither.
// Threads: everything here is guarded by the raw_mutex of the owner; after a wake, the waiter
// belongs to the one who waited.
#pragma once

#include <cstdint>

#include <smarm/deadline.hpp>

#include "base/assert.hpp"
#include "base/intrusive_list.hpp"
#include "sched/park_here.hpp"
#include "sched/wait.hpp"
#include "sched/wait_reason.hpp"

namespace smarm::detail {

enum class wait_state : std::uint8_t {
  waiting,  // in the list
  granted,  // off the list: it has what it waited for
  invited,  // off the list: it was woken to try again (mutex)
  closed,   // off the list: there will be nothing
};

struct waiter : list_link {
  // open begins a wait, before the owner's lock is taken: a thread's first wait takes a lock
  // itself.
  void open() noexcept {
    wake = begin_wait();
    state = wait_state::waiting;
  }

  waker wake;
  wait_state state = wait_state::waiting;
};

class wait_list {
 public:
  wait_list() noexcept = default;
  ~wait_list() {
    SMARM_ASSERT(waiters_.empty(), "what is waited for outlives those who wait", this);
  }

  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  [[nodiscard]] waiter* front() noexcept { return waiters_.front(); }

  // enlist puts a waiter that has been opened at the end, enlist_first back at the front.
  void enlist(waiter& who) noexcept { waiters_.push_back(who); }
  void enlist_first(waiter& who) noexcept { waiters_.push_front(who); }

  // settle_first takes the first waiter off the list and settles it; its waker is to be called when
  // the lock has been left. The list is not empty.
  [[nodiscard]] waker settle_first(wait_state state) noexcept {
    waiter* const first = waiters_.pop_front();
    SMARM_ASSERT(first != nullptr, "only a waiter that is there can be settled", this);
    const waker wake = first->wake;
    first->state = state;
    return wake;
  }

  // withdraw takes a waiter off the list; false: it was settled before.
  [[nodiscard]] bool withdraw(waiter& who) noexcept {
    if (who.state != wait_state::waiting) return false;
    waiters_.erase(who);
    return true;
  }

 private:
  intrusive_list<waiter> waiters_;
};

// park_or parks, and calls on_stop before the exception of a stop goes on its way. A handler and no
// scope guard, because on_stop is for that case alone.
template <class OnStop>
[[gnu::always_inline]] inline wait_outcome park_or(const waker& wait, wait_reason reason,
                                                   deadline until, OnStop on_stop) {
  try {
    return park_here(wait, reason, until);
  } catch (...) {
    on_stop();
    throw;
  }
}

}  // namespace smarm::detail
