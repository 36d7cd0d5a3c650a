// The lock's protocol and the public class over it; see mutex_core.hpp.
#include <memory>
#include <new>

#include <smarm/config.hpp>
#include <smarm/mutex.hpp>
#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "fiber/current.hpp"
#include "sched/driver.hpp"
#include "sched/wait.hpp"
#include "sync/mutex_core.hpp"

namespace smarm::detail {

namespace {

// As in Go's mutex: long enough that the switch it costs is paid rarely, short enough to be no
// hang.
constexpr std::int64_t handover_after_ns = 1'000'000;

// LIMIT: about a microsecond of looking, for a holder that is in a short critical section on
// another processor; then the waiter parks.
constexpr int spins_max = spin_limit(30);

// caller_id tells two holders apart: an actor by its pid, a thread by an address of its own.
std::uint64_t caller_id() noexcept {
  if (is_actor()) {
    const pid me = self();
    return (std::uint64_t{me.generation} << 32) | me.index;
  }
  return reinterpret_cast<std::uintptr_t>(&current_thread());
}

}  // namespace

mutex_core::~mutex_core() {
  const std::uint32_t word = word_.load(relaxed);  // relaxed: nobody else may use it any more
  SMARM_ASSERT(word == 0, "a mutex is destroyed when nobody holds it or waits for it", word);
}

bool mutex_core::try_lock() noexcept {
  // A guess and no look: a load behind the exchange of an unlock just now would wait for it.
  std::uint32_t word = 0;
  while ((word & locked) == 0) {
    // acquire: pairs with unlock's release: what the last holder did is done. relaxed on failure:
    // it is tried again.
    if (word_.compare_exchange_weak(word, word | locked, acquire, relaxed)) return true;
  }
  return false;
}

void mutex_core::spin() noexcept {
  // With one scheduler the holder cannot get on while we look.
  runtime_core* const runtime = current_runtime();
  if (runtime != nullptr && runtime_config(*runtime).schedulers == 1) return;
  for (int i = 0; i < spins_max && (word_.load(relaxed) & locked) != 0; ++i) relax();
}

// take_or_enlist takes the lock where it is free, or enlists the caller: at the end, or, when it
// was invited before (again), at the front.
mutex_core::step mutex_core::take_or_enlist(lock_waiter& me, bool again, bool may_wait) noexcept {
  const std::uint32_t clear = again ? invited : 0;
  std::uint32_t word = word_.load(relaxed);  // relaxed: the exchanges below validate it
  for (;;) {
    if ((word & locked) == 0) {
      // acquire: as in try_lock.
      if (word_.compare_exchange_weak(word, (word | locked) & ~clear, acquire, relaxed)) {
        return step::taken;
      }
      continue;
    }
    const std::uint32_t next = may_wait ? word | waiting : word;
    // relaxed: unlock sees the bit on this same word and takes lock_, which publishes the list.
    if (word_.compare_exchange_weak(word, next & ~clear, relaxed, relaxed)) break;
  }
  if (!may_wait) return step::left;
  if (again) {
    me.open();  // under the lock, where the state says whether this waiter is in the list
    waiters_.enlist_first(me);
  } else {
    waiters_.enlist(me);
  }
  return step::enlisted;
}

// drop_waiting_if_none, under lock_, after a waiter has left the list.
void mutex_core::drop_waiting_if_none() noexcept {
  // relaxed: the bit is guarded by lock_.
  if (waiters_.empty()) word_.fetch_and(~waiting, relaxed);
}

// after_wake decides what a wait that has ended means.
mutex_core::step mutex_core::after_wake(lock_waiter& me, bool timed_out) noexcept {
  const raw_guard guard(lock_);
  if (waiters_.withdraw(me)) {
    drop_waiting_if_none();
    return step::left;
  }
  if (me.state == wait_state::granted) return step::taken;
  return take_or_enlist(me, true, !timed_out);
}

// leave gives up what a wait may have got by now: for one that a stop unwinds.
void mutex_core::leave(lock_waiter& me) noexcept {
  waker next;
  {
    const raw_guard guard(lock_);
    if (waiters_.withdraw(me)) {
      drop_waiting_if_none();
      return;
    }
    if (me.state == wait_state::invited) {
      // relaxed: the bit is guarded by lock_, and nothing of the lock's data was touched.
      const std::uint32_t word = word_.fetch_and(~invited, relaxed);
      if ((word & locked) == 0 && !waiters_.empty()) next = invite_first();
    }
  }
  if (me.state == wait_state::granted) {
    unlock();
  } else {
    next.wake();
  }
}

// invite_first, under lock_, takes the first waiter off the list to try for the lock.
waker mutex_core::invite_first() noexcept {
  const waker first = waiters_.settle_first(wait_state::invited);
  word_.fetch_or(invited, relaxed);  // relaxed: the bit is guarded by lock_
  drop_waiting_if_none();
  return first;
}

template <class Park>
bool mutex_core::wait_for_lock(Park park_once) {
  lock_waiter me;
  spin();
  me.open();
  {
    const raw_guard guard(lock_);
    if (take_or_enlist(me, false, true) == step::taken) return true;
    me.since_ns = monotonic_ns();
  }
  for (;;) {
    const bool timed_out = park_once(me) == wait_outcome::timed_out;
    if (!timed_out && me.state == wait_state::invited) spin();
    const step next = after_wake(me, timed_out);
    if (next != step::enlisted) return next == step::taken;
  }
}

bool mutex_core::lock_slowly(deadline until) {
  return wait_for_lock([this, until](lock_waiter& me) {
    return park_or(me.wake, wait_reason::mutex_lock, until, [this, &me] { leave(me); });
  });
}

void mutex_core::lock_through_stop() noexcept {
  if (try_lock()) return;
  const bool taken = wait_for_lock(
      [](lock_waiter& me) { return park_through_stop(me.wake, wait_reason::mutex_lock); });
  SMARM_ASSERT(taken, "a wait without a deadline ends with the lock", this);
}

void mutex_core::unlock() noexcept {
  std::uint32_t word = locked;  // a guess, as in try_lock
  for (;;) {
    SMARM_ASSERT((word & locked) != 0, "a mutex that is unlocked was locked", word);
    if ((word & waiting) != 0 && (word & invited) == 0) {
      if (pass_on()) return;
      word = word_.load(relaxed);  // relaxed: as above
      continue;
    }
    // release: pairs with try_lock and take_or_enlist: publishes the critical section.
    if (word_.compare_exchange_weak(word, word & ~locked, release, relaxed)) return;
  }
}

// pass_on hands the lock to the first waiter or frees it and invites that one; false: there is none
// any more, or one is invited already. The lock is then not freed in here, since who takes a free
// lock may destroy it while lock_ is still being left.
bool mutex_core::pass_on() noexcept {
  waker next;
  {
    const raw_guard guard(lock_);
    // relaxed: the bit is guarded by lock_.
    if (waiters_.empty() || (word_.load(relaxed) & invited) != 0) return false;
    const auto& first = static_cast<lock_waiter&>(*waiters_.front());
    if (monotonic_ns() - first.since_ns >= handover_after_ns) {
      next = waiters_.settle_first(wait_state::granted);
      drop_waiting_if_none();
    } else {
      next = invite_first();
      // release: as in unlock.
      word_.fetch_and(~locked, release);
    }
  }
  next.wake();
  return true;
}

void mutex_core::set_holder() noexcept {
#ifdef SMARM_DEBUG
  holder_.store(caller_id(), relaxed);  // relaxed: only the holder finds its own value in it
#endif
}

void mutex_core::clear_holder() noexcept {
  holder_.store(0, relaxed);  // relaxed: as set_holder
}

bool mutex_core::is_held_by_caller() const noexcept {
  return holder_.load(relaxed) == caller_id();  // relaxed: as set_holder
}

}  // namespace smarm::detail

namespace smarm {

mutex::mutex() noexcept {
  static_assert(sizeof(core_) == sizeof(detail::mutex_core));
  static_assert(alignof(detail::mutex_core) <= 8);
  ::new (core_) detail::mutex_core;
}

mutex::~mutex() { std::destroy_at(&core()); }

detail::mutex_core& mutex::core() noexcept {
  // SAFETY: the constructor put a mutex_core there.
  return *std::launder(reinterpret_cast<detail::mutex_core*>(core_));
}

[[gnu::always_inline]] inline bool mutex::take(deadline until) {
  detail::stop_point();
  detail::mutex_core& core = this->core();
#ifdef SMARM_DEBUG
  if (core.is_held_by_caller()) throw misuse("mutex: locked by the one that holds it already");
#endif
  if (!core.try_lock() && !core.lock_slowly(until)) return false;
  core.set_holder();
  return true;
}

void mutex::lock() { (void)take(deadline::never()); }

bool mutex::try_lock() noexcept {
  const bool taken = core().try_lock();
  if (taken) core().set_holder();
  return taken;
}

bool mutex::try_lock_until(deadline until) { return take(until); }

void mutex::unlock() {
#ifdef SMARM_DEBUG
  if (!core().is_held_by_caller()) throw misuse("mutex: unlocked by one that does not hold it");
  core().clear_holder();
#endif
  core().unlock();
}

}  // namespace smarm
