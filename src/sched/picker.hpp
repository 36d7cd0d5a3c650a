// picker is the part of a scheduler that decides what runs next, and when to sleep because there is
// nothing. It knows actors by their slots and runs none.
//
// run_next holds the actor that this scheduler woke or spawned last and will run next: it wakes
// nobody, which is what makes a message cost nanoseconds. Whoever was there goes to the queue.
//
// Invariants
//   1. Only the owner fills run_next_; the owner and the watcher take from it.
//   2. A chain of run_next picks is cut after run_next_max: then it waits at the queue's tail.
//   3. A picker that sleeps has an empty run_next_, and has looked at all there is behind the fence
//      of prepare_park.
//   4. Actors that have not run yet are taken newest first, for as long as nobody who has run was
//      put behind them. Nobody waits for ever for that: each 64th such pick looks for one that has
//      run, in the injector or below them, and one of the oldest has its turn each turn_ns.
// Threads: all by the owning thread, but for the members that say otherwise.
//
// What each pick does stands here, so that the switch has it without a call.
// Why newest first: a tree of actors is then run depth first, and as many of them live at once as
// it is deep and wide, not as it has nodes on a level; thieves take the oldest, which are the
// largest subtrees. Who has run before is taken in its turn: a yield would come back to who yields.
#pragma once

#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/perturb.hpp"
#include "sched/run_next.hpp"
#include "sched/slot.hpp"
#include "sched/workplace.hpp"

namespace smarm::detail {

class picker {
 public:
  picker(workplace& shared, unsigned index, unsigned schedulers);
  picker(const picker&) = delete;
  picker& operator=(const picker&) = delete;

  // enqueue puts a queued actor behind what this scheduler has.
  void enqueue(slot& runnable) noexcept {
    fresh_ = 0;
    push(runnable);
  }
  // find_home asks the run queue where this scheduler belongs, which may go with its CPU.
  void find_home() noexcept { home_ = work_.queue.home_of(index_); }

  // schedule makes a queued actor the next to run here; schedule_last puts it behind what is queued
  // if anything is.
  void schedule(slot& runnable) noexcept;
  void schedule_last(slot& runnable) noexcept;

  // admit counts an actor that this one spawns, discharge one that has ended here; see run_life.
  [[nodiscard]] run_life::admission admit() noexcept { return share_.admit(); }
  void discharge() noexcept { share_.discharge(); }
  [[nodiscard]] std::size_t spare_counts() const noexcept { return share_.spare(); }

  // note_deadline: the running actor has armed the earliest timer of the runtime.
  void note_deadline() noexcept { deadline_noted_ = true; }

  // pick_next takes and claims an actor that is runnable; null: there is none.
  [[nodiscard]] slot* pick_next() noexcept;
  // next_or_end does the same and sleeps until there is one; null: the run is over.
  [[nodiscard]] slot* next_or_end() noexcept;

  // steal_run_next takes the next actor of another scheduler, or null. By the watcher.
  [[nodiscard]] slot* steal_run_next() noexcept {
    perturb(perturb_point::steal);
    return run_next_.steal();
  }
  // dispatches counts picks; read by the watcher to see whether this scheduler moves.
  [[nodiscard]] std::uint32_t dispatches() const noexcept {
    return tick_.load(relaxed);  // relaxed: compared with an earlier look, no more
  }
  // peek_run_next is a hint; steal_run_next decides.
  [[nodiscard]] slot* peek_run_next() const noexcept { return run_next_.peek(); }

 protected:
  ~picker() = default;

  workplace& work_;
  const unsigned index_;
  const bool alone_;  // the runtime has no other scheduler

 private:
  static constexpr std::uint32_t run_next_max = 16;
  static constexpr std::int64_t watch_interval_ns = 5'000'000;
  static constexpr unsigned quiet_looks_max = static_cast<unsigned>(spin_limit(4));
  static constexpr int linger_looks = spin_limit(40);
  static constexpr std::uint32_t home_ticks = 64;  // picks between two looks at the CPU's number

  static constexpr std::int64_t turn_ns = watch_interval_ns;
  static constexpr std::uint32_t picks_per_look = 16;  // of the newest, between two at the clock
  static constexpr std::uint32_t picks_per_fair_look = 64;  // and at those who have run

  bool push(slot& runnable) noexcept {
    const bool is_newest = work_.queue.push(home_, runnable);
    if (!alone_) work_.sleepers.wake_one_if_idle();
    return is_newest;
  }
  void enqueue_kicked(slot& kicked_out) noexcept {
    const bool has_started = kicked_out.has_started;  // not behind the push: it may run by then
    const bool is_newest = push(kicked_out);
    if (has_started) {
      fresh_ = 0;
    } else if (is_newest) {
      ++fresh_;
    }
  }
  [[nodiscard]] slot* pick_newest() noexcept;
  [[nodiscard]] slot* pick_in_turn() noexcept;
  [[nodiscard]] slot* take_run_next() noexcept;
  [[nodiscard]] slot* pick_runnable() noexcept;
  [[nodiscard]] bool should_migrate(slot& candidate) noexcept;
  void offer_to_others(slot& candidate) noexcept;
  void fire_timers() noexcept;

  [[nodiscard]] bool sleep() noexcept;
  [[nodiscard]] bool linger() noexcept;
  [[nodiscard]] std::int64_t choose_wake_time() noexcept;
  void update_watch() noexcept;
  [[nodiscard]] bool look_for_stuck() noexcept;
  void begin_work() noexcept;

  run_life::share share_;

  // The owner's hot words.
  unsigned home_ = 0;            // in the run queue, as it was of late
  bool deadline_noted_ = false;  // see note_deadline
  bool searching_ = false;       // counted as searching in the census
  bool watching_ = false;        // has the watcher's role
  unsigned quiet_looks_ = 0;
  std::uint32_t run_next_streak_ = 0;
  // How many of those pushed last have not run, at most: thieves, or a ring that was full, may have
  // taken some of them away.
  std::uint32_t fresh_ = 0;
  std::uint32_t newest_picks_ = 0;
  std::uint32_t fair_looks_ = 0;     // counted by themselves: a program's period must not choose
  std::uint32_t oldest_turns_ = 0;   // as above
  std::int64_t oldest_due_ns_ = 0;   // when one of the oldest is to be taken again
  std::int64_t offer_again_ns_ = 0;  // see should_migrate
  struct look {
    slot* next = nullptr;
    std::uint32_t dispatches = 0;
  };
  std::vector<look> looks_;  // of the watcher, one a scheduler

  // Read by others.
  alignas(64) run_next run_next_;
  atomic<std::uint32_t> tick_{0};
};

inline void picker::schedule(slot& runnable) noexcept {
  perturb(perturb_point::schedule);
  if (run_next_.peek() == nullptr) {
    run_next_.fill(runnable);
    if (alone_) return;
    fence_light();  // pairs with the fence of retire_watcher, see ensure_watcher
    work_.sleepers.ensure_watcher();
    return;
  }
  if (slot* const kicked_out = run_next_.swap(&runnable, alone_)) enqueue_kicked(*kicked_out);
}

inline void picker::schedule_last(slot& runnable) noexcept {
  if (work_.queue.home_looks_empty(home_)) {
    schedule(runnable);
  } else {
    enqueue(runnable);
  }
}

inline slot* picker::take_run_next() noexcept {
  return run_next_.peek() == nullptr ? nullptr : run_next_.swap(nullptr, alone_);
}

inline void picker::fire_timers() noexcept {
  const std::int64_t earliest = work_.timers.earliest();
  if (earliest == never_ns) [[likely]]
    return;
  // The exact clock costs as much as a switch, and in most programs some deadline is always armed,
  // seconds away. Every 64th pick looks all the same, should the coarse clock be held up.
  if (tick_.load(relaxed) % home_ticks != 0 &&  // relaxed: own counter
      earliest > coarse_monotonic_ns() + coarse_tick_max_ns) [[likely]] {
    return;
  }
  const std::int64_t now = monotonic_ns();
  if (earliest <= now) work_.timers.fire_due(now);
}

// The pick while some of the newest have not run; null: thieves have taken them.
inline slot* picker::pick_newest() noexcept {
  if (++newest_picks_ % picks_per_look == 0) [[unlikely]] {
    if (slot* const other = pick_in_turn()) return other;
  }
  slot* const newest = work_.queue.pop_newest(home_);
  fresh_ = newest == nullptr ? 0 : fresh_ - 1;
  return newest;
}

[[gnu::always_inline]] inline slot* picker::pick_runnable() noexcept {
  // A chain that nobody waits behind goes on: cutting it would only wake another scheduler for it.
  if (run_next_streak_ >= run_next_max && work_.queue.looks_empty()) run_next_streak_ = 0;
  if (run_next_streak_ < run_next_max) {
    if (slot* const next = take_run_next()) {
      ++run_next_streak_;
      return next;
    }
  } else if (slot* const cut = take_run_next()) {
    enqueue(*cut);
  }
  run_next_streak_ = 0;
  run_queue& queue = work_.queue;
  slot* next = nullptr;
  bool moved = false;
  if (fresh_ != 0) [[unlikely]]
    next = pick_newest();
  if (next == nullptr) {
    const run_queue::popped found = queue.pop(home_, tick_.load(relaxed));  // relaxed: own counter
    next = found.first;
    moved = found.moved;
    if (moved) fresh_ = 0;  // what was moved lies behind them, and has perhaps run
  }
  // Chain rule: what is left may run in parallel; and what was moved, whoever went to sleep just
  // now has perhaps not seen at either place.
  if (next != nullptr && !alone_ &&
      (moved || (work_.sleepers.may_wake() && !queue.looks_empty()))) {
    work_.sleepers.wake_one_if_idle();
  }
  return next;
}

[[gnu::always_inline]] inline slot* picker::pick_next() noexcept {
  const std::uint32_t tick = tick_.load(relaxed) + 1;  // relaxed: own counter, read as a hint
  tick_.store(tick, relaxed);                          // relaxed: as above
  if (tick % home_ticks == 0) find_home();
  fire_timers();
  for (;;) {
    slot* const next = pick_runnable();
    if (next == nullptr) {
      deadline_noted_ = false;  // whoever sleeps reads the earliest deadline
      return nullptr;
    }
    if (should_migrate(*next)) {
      offer_to_others(*next);
      continue;
    }
    next->state.try_claim();
    if (deadline_noted_) {
      deadline_noted_ = false;
      if (!alone_) work_.sleepers.rearm(work_.timers.earliest());
    }
    return next;
  }
}

// Debug builds let an actor resume on another scheduler than it left, wherever there is one, so
// that an address of thread-local memory kept across a park shows at once. Offered once: if nobody
// takes it, it runs here. Not while the CPUs are busy with others' work: whoever offers then loses
// its own for milliseconds, at each park. Stress builds do it at random instead, also then.
inline bool picker::should_migrate([[maybe_unused]] slot& candidate) noexcept {
  if (perturb_chooses(perturb_point::schedule) && !alone_ && candidate.has_started &&
      !candidate.migration_tried) {
    candidate.migration_tried = true;
    return true;
  }
#ifdef SMARM_DEBUG
  if (alone_ || !candidate.has_started || candidate.last_scheduler != index_ ||
      candidate.migration_tried || monotonic_ns() < offer_again_ns_) {
    return false;
  }
  candidate.migration_tried = true;
  return true;
#else
  return false;
#endif
}

}  // namespace smarm::detail
