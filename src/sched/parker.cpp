// The permit and the sleep of parker.hpp, on one futex word.
#include "sched/parker.hpp"

#include "base/futex.hpp"
#include "base/perturb.hpp"

namespace smarm::detail {

bool parker::park(std::int64_t deadline_ns) noexcept {
  std::uint32_t seen = permit;
  // acquire: pairs with unpark's release; what the waker did before is visible after park.
  if (state_.compare_exchange_strong(seen, empty, acquire, relaxed)) return true;
  perturb(perturb_point::permit_park);
  seen = empty;
  // relaxed on success: saying that we wait publishes nothing but itself.
  if (!state_.compare_exchange_strong(seen, waiting, relaxed, relaxed)) {
    (void)state_.exchange(empty, acquire);  // the permit that came in between; acquire as above
    return true;
  }
  for (;;) {
    const futex_result result = futex_wait(state_, waiting, deadline_ns);
    perturb(perturb_point::permit_park);
    seen = permit;
    // acquire: as above.
    if (state_.compare_exchange_strong(seen, empty, acquire, relaxed)) return true;
    if (result == futex_result::timed_out) {
      perturb(perturb_point::permit_park);
      // A permit that arrives now is taken: acquire, as above.
      return state_.exchange(empty, acquire) == permit;
    }
  }
}

void parker::unpark() noexcept {
  perturb(perturb_point::permit_wake);
  // release: pairs with park's acquire; the waker's writes are visible to the woken thread.
  if (state_.exchange(permit, release) == waiting) {
    perturb(perturb_point::permit_wake);
    futex_wake(state_, 1);
  }
}

}  // namespace smarm::detail
