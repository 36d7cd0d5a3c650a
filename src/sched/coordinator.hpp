// coordinator is how schedulers sleep and are woken. It knows nothing of actors, timers or IO: work
// is something that a producer has published and that a scheduler's look finds.
//
// States of a scheduler: running; searching (it was woken and has found nothing yet); parked.
//
// Invariants
//   1. No lost wake. Producer: publish work, fence, read the census. Scheduler: enter the census as
//      parked, set its bit, fence, look once more. Of the two fences one comes first, so either
//      the producer sees the parked scheduler or the scheduler sees the work.
//   2. One wake_one wakes exactly one: it clears a bit by compare-exchange before it unparks, and
//      the census moves that scheduler from parked to searching on its behalf.
//   3. While somebody searches a producer wakes nobody: the searcher will find the work, or enter
//      the census again and look after its fence. The last searcher that finds work wakes another
//      if more is left (chain rule), so a burst spreads without a herd.
//   4. Keeper: at most one parked scheduler sleeps towards any given deadline, the earliest
//   timer's;
//      the rest sleep without. A scheduler that parks takes the role if nobody has it or if the
//      present keeper sleeps towards a later moment. rearm wakes the keeper for an earlier one.
//   5. Watcher: a run-next slot wakes nobody, so while some scheduler runs and another is parked,
//      one parked scheduler looks every few milliseconds for a run-next, or a due timer, that is
//      stuck behind a computing actor. When all have been parked for a few looks it stops, and
//      nothing ticks.
//   6. The roles are never lost: who leaves its sleep while another is parked, and a deadline is
//      pending or somebody else runs, and nobody watches, wakes one more, which takes what is free.
//      wake_one prefers schedulers without a role.
//   7. Enough is awake: a producer wakes nobody while as many schedulers run or search as there are
//      CPUs, and a scheduler may sleep beside queued work then. More threads would only take turns
//      on the same CPUs. That a running one may be computing for long, or block in the kernel, is
//      the watcher's to see: it joins in when work waits and one of them has not moved.
// Threads: wake_* any thread; the rest by the scheduler `self`.
//
// Why a census word beside the mask: the producer's common case (all busy, or one searching) is
// one relaxed load of one line, however many words the mask has.
#pragma once

#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/perturb.hpp"
#include "sched/parker.hpp"

namespace smarm::detail {

class coordinator {
 public:
  // `cpus` is how many of the schedulers can run at the same time.
  coordinator(unsigned schedulers, unsigned cpus);

  // wake_one wakes the parked scheduler of the highest bit, the keeper only if no other is parked;
  // false: none was parked.
  bool wake_one() noexcept;

  // wake_one_if_idle is the tail of every enqueue: the work has been published by the caller.
  void wake_one_if_idle() noexcept;

  // wake_all wakes every parked scheduler; for the end of the run.
  void wake_all() noexcept;

  // any_parked is a hint, for choices that need not be right.
  [[nodiscard]] bool any_parked() const noexcept {
    return parked_of(census_.load(relaxed)) != 0;  // relaxed: a hint
  }
  // may_wake is a hint: a producer would wake somebody now. One look at a line that is rarely
  // written, to be made before a look at what others write.
  [[nodiscard]] bool may_wake() const noexcept {
    const std::uint64_t census = census_.load(relaxed);  // relaxed: a hint
    const std::uint32_t parked = parked_of(census);
    return parked != 0 && searching_of(census) == 0 && schedulers_ - parked < cpus_;
  }
  // enough_awake tells a scheduler that has prepared to park whether the others suffice for what
  // may be queued (invariant 7).
  [[nodiscard]] bool enough_awake() const noexcept {
    // relaxed: behind prepare_park's fence, so of two that park at once one sees the other.
    return schedulers_ - parked_of(census_.load(relaxed)) >= cpus_;
  }
  // is_parked is a hint for the watcher.
  [[nodiscard]] bool is_parked(unsigned index) const noexcept;
  // all_parked is a hint for a scheduler that is in the census as parked: nobody else runs.
  [[nodiscard]] bool all_parked() const noexcept {
    return parked_of(census_.load(relaxed)) == schedulers_;  // relaxed: a hint
  }
  [[nodiscard]] std::uint64_t wakes() const noexcept {
    return wakes_.load(relaxed);  // relaxed: a statistic
  }

  // try_search counts `self`, which has run out of work, as searching unless somebody searches
  // already; true: it may look around for a moment, and producers wake nobody meanwhile.
  [[nodiscard]] bool try_search() noexcept;

  // prepare_park enters `self` in the census and the mask. After it the caller fences, looks for
  // work once more, and calls either cancel_park or park.
  void prepare_park(unsigned self, bool searching) noexcept;

  // cancel_park takes the announcement back because the look found something. `self` is searching
  // afterwards.
  void cancel_park(unsigned self) noexcept;

  // park sleeps until woken or until the deadline; true: woken. `self` is searching afterwards.
  bool park(unsigned self, std::int64_t deadline_ns) noexcept;

  // end_search: `self` has found work. If it was the last searcher and `more_work` answers true,
  // one more is woken.
  template <class MoreWork>
  void end_search(MoreWork more_work) noexcept {
    // relaxed: the fence below makes the two sides of invariant 3. A producer publishes, fences,
    // reads the census; of its fence and ours one comes first: ours, and the producer sees no
    // searcher and wakes one itself; the producer's, and more_work sees what it published. Whoever
    // is not the last searcher leaves all that to the last one.
    perturb(perturb_point::census);
    const std::uint64_t before = census_.fetch_sub(searching_one, relaxed);
    if (searching_of(before) != 1) return;
    fence(seq_cst);
    perturb(perturb_point::census);
    if (more_work()) wake_one_if_idle();
  }

  // take_keeper: true if `self`, which has prepared to park and read the deadline since, is the one
  // to sleep towards it. False: somebody parked is there in time.
  [[nodiscard]] bool take_keeper(unsigned self, std::int64_t deadline_ns) noexcept;
  // take_watcher: true if `self`, about to park, is the watcher from now on or still.
  [[nodiscard]] bool take_watcher(unsigned self) noexcept;
  // leave_keeper and leave_watcher give a role up if `self` has it, before it is busy: hand_on
  // comes next. retire_watcher gives it up where `self` goes on sleeping, and nobody else runs: the
  // caller may look at every run-next once more and be sure that none is forgotten.
  void leave_keeper(unsigned self) noexcept;
  void leave_watcher(unsigned self) noexcept;
  // False: it cannot be sure, and should take the role back.
  [[nodiscard]] bool retire_watcher(unsigned self) noexcept;

  // rearm: the earliest deadline is now `deadline_ns`, and the caller will be busy. If the keeper
  // sleeps towards a later one it is woken; without a keeper one parked scheduler is, to be it.
  void rearm(std::int64_t deadline_ns) noexcept;

  // ensure_watcher runs when a run-next was filled, behind a fence_light: who retires looks behind
  // a heavy one. Who leaves to be busy needs no such pair: hand_on sees that this scheduler runs,
  // or this one's own, when it began to run, came later and saw the role vacant.
  void ensure_watcher() noexcept {
    perturb(perturb_point::watcher);
    // relaxed: as said.
    if (watcher_.load(relaxed) == 0 && any_parked()) wake_watcher();
  }
  // hand_on is called by `self` when it has left its sleep and its roles and will be busy: see
  // invariant 6.
  void hand_on(unsigned self, bool deadline_pending) noexcept;

 private:
  static constexpr std::uint64_t parked_one = 1;
  static constexpr std::uint64_t searching_one = std::uint64_t{1} << 32;
  static std::uint32_t parked_of(std::uint64_t census) noexcept {
    return static_cast<std::uint32_t>(census);
  }
  static std::uint32_t searching_of(std::uint64_t census) noexcept {
    return static_cast<std::uint32_t>(census >> 32);
  }

  bool clear_bit(unsigned index) noexcept;
  bool wake(unsigned index) noexcept;
  bool drop_watcher(unsigned self) noexcept;
  void wake_watcher() noexcept;

  unsigned schedulers_;
  unsigned cpus_;
  unsigned words_;
  std::unique_ptr<atomic<std::uint64_t>[]> mask_;  // bit set: that scheduler may be unparked
  std::unique_ptr<parker[]> parkers_;
  // What each scheduler slept towards when it last took the keeper's role. Written by its owner
  // before it takes the role, read by whoever would take it over or re-arm it.
  std::unique_ptr<atomic<std::int64_t>[]> deadlines_;

  // parked in the low half, searching in the high half. Written by whoever parks, wakes or finds
  // work; read by every producer.
  alignas(64) atomic<std::uint64_t> census_{0};
  // index + 1 of the keeper and of the watcher, 0 without one. Written by whoever takes or leaves.
  alignas(64) atomic<std::uint32_t> keeper_{0};
  atomic<std::uint32_t> watcher_{0};
  atomic<std::uint64_t> wakes_{0};
};

}  // namespace smarm::detail
