// The protocols of coordinator.hpp: each fence and order has its reason beside it.
#include "sched/coordinator.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "base/asymmetric_fence.hpp"
#include "base/perturb.hpp"

namespace smarm::detail {

namespace {

constexpr unsigned bits_per_word = 64;

constexpr std::uint64_t bit_of(unsigned index) noexcept {
  return std::uint64_t{1} << (index % bits_per_word);
}

}  // namespace

coordinator::coordinator(unsigned schedulers, unsigned cpus)
    : schedulers_(schedulers),
      cpus_(std::min(schedulers, cpus)),
      words_((schedulers + bits_per_word - 1) / bits_per_word),
      mask_(std::make_unique<atomic<std::uint64_t>[]>(words_)),
      parkers_(std::make_unique<parker[]>(schedulers)),
      deadlines_(std::make_unique<atomic<std::int64_t>[]>(schedulers)) {}

bool coordinator::clear_bit(unsigned index) noexcept {
  // acq_rel: pairs with prepare_park's fetch_or and every other clear: whoever clears the bit owns
  // the one wake that it stands for.
  const std::uint64_t before = mask_[index / bits_per_word].fetch_and(~bit_of(index), acq_rel);
  return (before & bit_of(index)) != 0;
}

bool coordinator::wake(unsigned index) noexcept {
  perturb(perturb_point::wake);
  if (!clear_bit(index)) return false;
  perturb(perturb_point::census);
  // On the sleeper's behalf, and before it runs, so that no second producer wakes one too.
  // relaxed: the census is a count; what orders the work is the producer's fence and the permit.
  census_.fetch_add(searching_one - parked_one, relaxed);
  wakes_.fetch_add(1, relaxed);  // relaxed: a statistic
  parkers_[index].unpark();
  return true;
}

bool coordinator::wake_one() noexcept {
  // relaxed: a preference; a scheduler that is woken hands its roles on.
  const std::uint32_t keeper = keeper_.load(relaxed);
  const std::uint32_t watcher = watcher_.load(relaxed);
  for (unsigned word = words_; word-- > 0;) {
    // acquire: pairs with prepare_park's fetch_or.
    std::uint64_t bits = mask_[word].load(acquire);
    while (bits != 0) {
      const unsigned bit = bits_per_word - 1 - static_cast<unsigned>(std::countl_zero(bits));
      const unsigned index = word * bits_per_word + bit;
      bits &= ~bit_of(index);
      const bool has_role = index + 1 == keeper || index + 1 == watcher;
      if (!has_role && wake(index)) return true;
    }
  }
  return (watcher != 0 && wake(watcher - 1)) || (keeper != 0 && wake(keeper - 1));
}

void coordinator::wake_one_if_idle() noexcept {
  // The store-buffer story: producer W(work) F R(census); parker W(census) F R(work). Without this
  // fence the read may be served before the work leaves the store buffer, and both miss.
  fence(seq_cst);
  perturb(perturb_point::census);
  // relaxed: ordered by the fence; pairs with prepare_park.
  const std::uint64_t census = census_.load(relaxed);
  const std::uint32_t parked = parked_of(census);
  if (parked == 0 || searching_of(census) != 0) return;
  perturb(perturb_point::wake);
  if (schedulers_ - parked < cpus_) {
    wake_one();
  } else {
    ensure_watcher();
  }
}

bool coordinator::is_parked(unsigned index) const noexcept {
  // relaxed: a hint.
  return (mask_[index / bits_per_word].load(relaxed) & bit_of(index)) != 0;
}

void coordinator::wake_all() noexcept {
  // No fence: each clear is a releasing exchange of a word that prepare_park exchanges too, before
  // its fence. Of the two one is first, so its bit is cleared here or it sees what was published.
  for (unsigned index = 0; index < schedulers_; ++index) wake(index);
}

bool coordinator::try_search() noexcept {
  std::uint64_t census = census_.load(relaxed);  // relaxed: the exchange validates it
  while (searching_of(census) == 0) {
    perturb(perturb_point::census);
    // relaxed: a count; whoever leaves the search fences and looks again (end_search, park).
    if (census_.compare_exchange_weak(census, census + searching_one, relaxed, relaxed)) {
      return true;
    }
  }
  return false;
}

void coordinator::prepare_park(unsigned self, bool searching) noexcept {
  perturb(perturb_point::census);
  // relaxed: the fence below orders it against producers.
  census_.fetch_add(searching ? parked_one - searching_one : parked_one, relaxed);
  perturb(perturb_point::census);
  // release: pairs with the clear in wake: what this thread did before is visible to its waker.
  const std::uint64_t before = mask_[self / bits_per_word].fetch_or(bit_of(self), release);
  SMARM_ASSERT((before & bit_of(self)) == 0, "a scheduler parks once at a time", self);
  fence(seq_cst);  // the parker's side of the store-buffer story in wake_one_if_idle
  perturb(perturb_point::permit_park);
}

void coordinator::cancel_park(unsigned self) noexcept {
  perturb(perturb_point::wake);
  if (clear_bit(self)) {
    perturb(perturb_point::census);
    census_.fetch_add(searching_one - parked_one, relaxed);  // relaxed: as in wake
    return;
  }
  // A waker has taken the bit and counted us as searching: its permit is on the way. Taking it
  // here keeps it from cutting the next park short.
  parkers_[self].park(never_ns);
}

bool coordinator::park(unsigned self, std::int64_t deadline_ns) noexcept {
  if (parkers_[self].park(deadline_ns)) return true;
  cancel_park(self);
  return false;
}

bool coordinator::take_keeper(unsigned self, std::int64_t deadline_ns) noexcept {
  perturb(perturb_point::keeper);
  // relaxed: published by the exchange below.
  deadlines_[self].store(deadline_ns, relaxed);
  // acquire: pairs with the release by which the keeper took the role: its deadline is visible.
  std::uint32_t keeper = keeper_.load(acquire);
  do {
    const bool mine = keeper == self + 1;
    // relaxed: ordered by the acquire. A keeper that is changing its deadline this very moment
    // reads the earliest one behind its fence, as our caller does behind ours.
    if (keeper != 0 && !mine && deadlines_[keeper - 1].load(relaxed) <= deadline_ns) return false;
    perturb(perturb_point::keeper);
    // release: publishes our deadline. acquire where it fails: as above.
  } while (!keeper_.compare_exchange_weak(keeper, self + 1, release, acquire));
  perturb(perturb_point::keeper);
  return true;
}

bool coordinator::take_watcher(unsigned self) noexcept {
  perturb(perturb_point::watcher);
  std::uint32_t nobody = 0;
  // acquire: pairs with leave_watcher and retire_watcher: thieves come one after the other. relaxed
  // where it fails: liveness rests on their fences.
  return watcher_.compare_exchange_strong(nobody, self + 1, acquire, relaxed) || nobody == self + 1;
}

void coordinator::leave_keeper(unsigned self) noexcept {
  std::uint32_t expected = self + 1;
  if (keeper_.load(relaxed) != expected) return;  // relaxed: nobody else writes our number
  perturb(perturb_point::keeper);
  // relaxed: giving up publishes nothing; hand_on looks after what is pending.
  keeper_.compare_exchange_strong(expected, 0, relaxed, relaxed);
}

// Gives the role up if `self` has it; false: it has not.
bool coordinator::drop_watcher(unsigned self) noexcept {
  if (watcher_.load(relaxed) != self + 1) return false;  // relaxed: nobody else writes our number
  perturb(perturb_point::watcher);
  // release: pairs with take_watcher: the next one steals after this one (sched/run_next.hpp).
  watcher_.store(0, release);
  return true;
}

void coordinator::leave_watcher(unsigned self) noexcept {
  if (!drop_watcher(self)) return;
  // Release: end_search follows. If we are the last searcher its fence orders this store before the
  // look at the census in hand_on, as the fence of somebody else who begins to run orders that
  // one's entry there before his look at the role: one of us sees to the watcher. If we are not,
  // the last one's fence lies behind our change of the census, and so he sees the role vacant.
  fence(release);
  perturb(perturb_point::watcher);
}

bool coordinator::retire_watcher(unsigned self) noexcept {
  if (!drop_watcher(self)) return true;
  // Here W(watcher) F R(run-next), there W(run-next) F R(watcher): without it a run-next might be
  // left to a watcher that has gone. The heavy one, since this comes once in each spell of quiet.
  const bool is_ordered = fence_heavy();
  perturb(perturb_point::watcher);
  return is_ordered;
}

void coordinator::rearm(std::int64_t deadline_ns) noexcept {
  // Pairs with prepare_park's fence: the parker reads the earliest deadline behind it, or is seen
  // here as parked, and then as the keeper it has become or was before; a role that is vacant or
  // looks too late wakes somebody.
  fence(seq_cst);
  if (!any_parked()) return;
  const std::uint32_t keeper = keeper_.load(acquire);  // pairs with take_keeper's release
  perturb(perturb_point::keeper);
  if (keeper == 0) {
    wake_one();
  } else if (deadlines_[keeper - 1].load(relaxed) > deadline_ns) {  // relaxed: behind the acquire
    wake(keeper - 1);
  }
}

void coordinator::wake_watcher() noexcept {
  // A searcher that goes to sleep takes the role; one that finds work calls hand_on.
  if (searching_of(census_.load(relaxed)) == 0) wake_one();  // relaxed: behind the caller's fence
}

void coordinator::hand_on(unsigned self, bool deadline_pending) noexcept {
  const std::uint64_t census = census_.load(relaxed);  // relaxed: behind end_search's exchange
  const std::uint32_t parked = parked_of(census);
  if (parked == 0 || searching_of(census) != 0) return;
  const std::uint32_t watcher = watcher_.load(relaxed);  // relaxed: as in ensure_watcher
  if (watcher != 0 && watcher != self + 1) return;
  perturb(perturb_point::wake);
  if (deadline_pending || parked + 1 < schedulers_) wake_one();
}

}  // namespace smarm::detail
