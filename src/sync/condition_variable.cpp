// condition_variable is a wait list under a lock of its own, beside the mutex of its user.
//
// Invariants
//   1. A waiter is in the list before it lets go of the mutex, so a notification by anybody who has
//      the mutex afterwards finds it.
//   2. The mutex is taken again on every way out, by lock_through_stop, which no stop can cut
//   short.
#include <cstdint>
#include <memory>
#include <new>

#include <smarm/condition_variable.hpp>

#include "base/assert.hpp"
#include "base/raw_mutex.hpp"
#include "sched/wait.hpp"
#include "sync/mutex_core.hpp"
#include "sync/wait_list.hpp"

namespace smarm {

namespace {

struct condition_core {
  detail::raw_mutex lock;   // leaf; guards what follows
  std::uint32_t count = 0;  // of waiters
  detail::wait_list waiters;
};

condition_core& core_of(std::byte* place) noexcept {
  // SAFETY: the constructor put a condition_core there.
  return *std::launder(reinterpret_cast<condition_core*>(place));
}

// notify_first wakes the first waiter; false: nobody waits.
bool notify_first(condition_core& core) noexcept {
  detail::waker wake;
  {
    const detail::raw_guard guard(core.lock);
    if (core.waiters.empty()) return false;
    wake = core.waiters.settle_first(detail::wait_state::granted);
    --core.count;
  }
  wake.wake();
  return true;
}

// withdraw ends a wait that was not woken; false: it was notified all the same.
bool withdraw(condition_core& core, detail::waiter& me) noexcept {
  const detail::raw_guard guard(core.lock);
  if (!core.waiters.withdraw(me)) return false;
  --core.count;
  return true;
}

}  // namespace

condition_variable::condition_variable() noexcept {
  static_assert(sizeof(core_) == sizeof(condition_core));
  static_assert(alignof(condition_core) <= 8);
  ::new (core_) condition_core;
}

condition_variable::~condition_variable() { std::destroy_at(&core_of(core_)); }

void condition_variable::notify_one() noexcept { (void)notify_first(core_of(core_)); }

void condition_variable::notify_all() noexcept {
  // As many as wait now: who comes while they are being woken waits for the next notification.
  condition_core& core = core_of(core_);
  std::uint32_t count = 0;
  {
    const detail::raw_guard guard(core.lock);
    count = core.count;
  }
  while (count-- > 0 && notify_first(core)) {
  }
}

std::cv_status condition_variable::wait_until(std::unique_lock<mutex>& lock, deadline until) {
  if (!lock.owns_lock()) throw misuse("condition_variable: wait with a lock that holds no mutex");
  condition_core& core = core_of(core_);
  detail::mutex_core& held = lock.mutex()->core();
#ifdef SMARM_DEBUG
  if (!held.is_held_by_caller()) {
    throw misuse("condition_variable: wait with a mutex that another one holds");
  }
#endif
  detail::stop_point();
  detail::waiter me;
  me.open();
  {
    const detail::raw_guard guard(core.lock);
    core.waiters.enlist(me);
    ++core.count;
  }
  lock.mutex()->unlock();
  const auto lock_again = [&held] {
    held.lock_through_stop();
    held.set_holder();
  };
  const auto outcome = detail::park_or(me.wake, detail::wait_reason::condition_variable, until,
                                       [&core, &me, &lock_again] {
                                         // A notification that this waiter took is somebody else's
                                         // now.
                                         if (!withdraw(core, me)) (void)notify_first(core);
                                         lock_again();
                                       });
  const bool notified = outcome == detail::wait_outcome::woken || !withdraw(core, me);
  lock_again();
  return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
}

}  // namespace smarm
