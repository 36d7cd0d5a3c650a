// raw_mutex: the paths on which somebody waits, and the debug count behind the leaf rule.
#include "base/raw_mutex.hpp"

#include "base/assert.hpp"
#include "base/futex.hpp"

namespace smarm::detail {

namespace {
// LIMIT: about a microsecond of looking, the length of our critical sections; then the thread
// sleeps, because the holder may have lost its processor.
constexpr int spins_max = spin_limit(40);
}  // namespace

void raw_mutex::lock_slowly() noexcept {
  for (int spin = 0; spin < spins_max; ++spin) {
    // Relaxed: only a hint whether a try is worth it. Others already sleep: queue behind them.
    const std::uint32_t seen = state_.load(relaxed);
    if (seen == contended) {
      break;
    }
    if (seen == free && take_if_free()) {
      return;
    }
    relax();
  }
  // We may be the last waiter and leave `contended` behind: that costs one needless wake, while the
  // opposite guess would cost a sleeper its wake-up. acquire pairs with unlock().
  while (state_.exchange(contended, acquire) != free) {
    // Whatever ended the wait, the exchange above decides.
    static_cast<void>(futex_wait(state_, contended));
  }
}

void raw_mutex::wake_one() noexcept { futex_wake(state_, 1); }

void raw_mutex::count_acquisition() noexcept {
  if (held_raw_mutex_count != nullptr) {
    int& held = *held_raw_mutex_count();
    SMARM_ASSERT(held == 0, "a thread holds at most one raw_mutex", held, this);
    ++held;
  }
}

void raw_mutex::count_release() noexcept {
  if (held_raw_mutex_count != nullptr) {
    int& held = *held_raw_mutex_count();
    SMARM_ASSERT(held == 1, "a raw_mutex is unlocked by the thread that holds it", held, this);
    --held;
  }
}

}  // namespace smarm::detail
