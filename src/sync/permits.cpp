// The word, the lock and the hand-over of permits; see permits.hpp.
#include "sync/permits.hpp"

#include "base/assert.hpp"

namespace smarm::detail {

bool permits::try_take() noexcept {
  std::int64_t count = count_.load(relaxed);  // relaxed: the exchange below validates it
  while (count > 0) {
    // acquire: pairs with add_if_uncontended: what the giver did is done. relaxed on failure: it is
    // tried again.
    if (count_.compare_exchange_weak(count, count - 1, acquire, relaxed)) return true;
  }
  return false;
}

// enlist_or_take, under the lock: true when it is decided, and then by what.
bool permits::enlist_or_take(waiter& me, taken& outcome) noexcept {
  if (closed_) {
    outcome = taken::closed;
    return true;
  }
  std::int64_t count = count_.load(relaxed);  // relaxed: the exchanges below validate it
  while (count != contended) {
    if (count > 0) {
      // acquire: as in try_take.
      if (!count_.compare_exchange_weak(count, count - 1, acquire, relaxed)) continue;
      outcome = taken::free;
      return true;
    }
    // relaxed: a giver that sees `contended` takes the lock, which publishes the waiter.
    if (count_.compare_exchange_weak(count, contended, relaxed, relaxed)) break;
  }
  waiters_.enlist(me);
  return false;
}

permits::taken permits::take(waiter& me, wait_reason reason, deadline until) {
  taken outcome{};
  me.open();
  {
    const raw_guard guard(lock_);
    if (enlist_or_take(me, outcome)) return outcome;
  }
  const auto settled = [this, &me] {
    const raw_guard guard(lock_);
    if (waiters_.withdraw(me)) {
      withdrawn();
      return false;
    }
    return true;
  };
  try {
    if (park(me.wake, reason, until) == wait_outcome::timed_out && !settled()) {
      return taken::timed_out;
    }
  } catch (...) {
    // The stop is sticky and comes back at the caller's next stop point; it must not turn a permit
    // that was handed over into one that is lost.
    if (!settled()) throw;
  }
  return me.state == wait_state::closed ? taken::closed : taken::waited;
}

// withdrawn, under the lock: the last waiter to go leaves the word as nobody's.
void permits::withdrawn() noexcept {
  // relaxed: no permit changes hands, and the waiters are the lock's.
  if (waiters_.empty() && count_.load(relaxed) == contended) count_.store(0, relaxed);
}

bool permits::add_if_uncontended(std::int64_t count, std::int64_t limit, bool& fits) noexcept {
  std::int64_t now = count_.load(relaxed);  // relaxed: the exchange below validates it
  while (now != contended) {
    fits = count <= limit - now;
    if (!fits) return true;
    // release: what we did before is done for whoever takes the permit (try_take). Without it a
    // semaphore that guards data would hand over the right before the data.
    if (count_.compare_exchange_weak(now, now + count, release, relaxed)) return true;
  }
  return false;
}

void permits::give_back(on_grant granted, void* context) noexcept {
  for (bool fits = true;;) {
    if (add_if_uncontended(1, INT64_MAX, fits)) return;
    waker wake;
    {
      const raw_guard guard(lock_);
      // Somebody withdrew before we had the lock: try the word again, with the lock left, since a
      // permit that is free may be the last thing its taker waits for before it destroys this.
      if (waiters_.empty()) continue;
      if (granted != nullptr) granted(context, *waiters_.front());
      wake = waiters_.settle_first(wait_state::granted);
      withdrawn();
    }
    wake.wake();
    return;
  }
}

bool permits::add(std::int64_t count, std::int64_t limit) noexcept {
  bool fits = true;
  while (fits && count > 0 && !add_if_uncontended(count, limit, fits)) {
    give_back();
    --count;
  }
  return fits;
}

void permits::close() noexcept {
  for (;;) {
    waker wake;
    {
      const raw_guard guard(lock_);
      closed_ = true;
      if (waiters_.empty()) return;
      wake = waiters_.settle_first(wait_state::closed);
      withdrawn();
    }
    wake.wake();
  }
}

}  // namespace smarm::detail
