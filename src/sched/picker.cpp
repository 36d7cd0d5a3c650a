// How a picker sleeps: what it looks at last, what it sleeps towards, what it watches meanwhile.
#include "sched/picker.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace smarm::detail {

picker::picker(workplace& shared, unsigned index, unsigned schedulers)
    : work_(shared),
      index_(index),
      alone_(schedulers == 1),
      share_(shared.life, shared.actors_max, schedulers),
      looks_(schedulers) {}

slot* picker::next_or_end() noexcept {
  for (;;) {
    if (slot* const next = pick_next()) {
      if (searching_ || watching_) begin_work();
      return next;
    }
    if (!sleep()) return nullptr;
    find_home();
  }
}

// What comes before the newest every now and then; null: nothing does.
slot* picker::pick_in_turn() noexcept {
  run_queue& queue = work_.queue;
  if (newest_picks_ % picks_per_fair_look == 0) {
    slot* const found =
        ++fair_looks_ % 2 == 0 ? queue.pop_older(home_, fresh_) : queue.pop_injector();
    if (found != nullptr) return found;
  }
  const std::int64_t now = monotonic_ns();
  if (now < oldest_due_ns_) return nullptr;
  oldest_due_ns_ = now + turn_ns;
  return queue.pop_in_turn(home_, ++oldest_turns_);
}

// Gives the actor to the queue, and the other schedulers a moment to take it.
void picker::offer_to_others(slot& candidate) noexcept {
  constexpr std::int64_t preempted_ns = 1'000'000;
  const std::int64_t begin = monotonic_ns();
  const bool was_empty = work_.queue.looks_empty();
  enqueue(candidate);
  // Not left to enqueue: whoever offers is often searching itself, and then enqueue lets the
  // sleepers sleep.
  if (was_empty) (void)work_.sleepers.wake_one();
  // LIMIT: the time that a sleeper needs to wake, less where others are queued and somebody is
  // likely on his way; then the actor runs where it was. Each turn given away may take
  // milliseconds where others compute, so the clock and not a count ends this.
  const std::int64_t patience = begin + (was_empty ? 100'000 : 20'000);
  while (!work_.queue.looks_empty() && monotonic_ns() < patience) std::this_thread::yield();
  const std::int64_t now = monotonic_ns();
  if (now - begin > preempted_ns) offer_again_ns_ = now + 8 * (now - begin);
}

// Leaves the search and the watcher's role: there is an actor to run.
void picker::begin_work() noexcept {
  coordinator& sleepers = work_.sleepers;
  if (watching_) {
    watching_ = false;
    sleepers.leave_watcher(index_);
  }
  if (searching_) {
    searching_ = false;
    sleepers.end_search([this] { return !work_.queue.looks_empty(); });
  }
  sleepers.hand_on(index_, work_.timers.earliest() != never_ns);
}

// Takes or leaves the watcher's role, once this scheduler is in the census as parked.
void picker::update_watch() noexcept {
  coordinator& sleepers = work_.sleepers;
  const bool all_parked = sleepers.all_parked();
  if (!watching_) {
    quiet_looks_ = 0;
    watching_ = !all_parked && sleepers.take_watcher(index_);
    return;
  }
  quiet_looks_ = all_parked ? quiet_looks_ + 1 : 0;
  if (quiet_looks_ < quiet_looks_max) return;
  watching_ = false;
  if (!sleepers.retire_watcher(index_)) {
    watching_ = sleepers.take_watcher(index_);
    return;
  }
  // Behind the fence: a run-next that was filled before is seen here, or its filler saw the role
  // vacant and wakes somebody.
  for (const picker* const each : work_.pickers) {
    if (each->peek_run_next() != nullptr) {
      watching_ = sleepers.take_watcher(index_);
      return;
    }
  }
}

// When to wake without being woken: for the earliest timer if nobody else is there in time, for
// the next look of the watcher, for giving surplus back.
std::int64_t picker::choose_wake_time() noexcept {
  coordinator& sleepers = work_.sleepers;
  std::int64_t until = never_ns;
  std::int64_t surplus = never_ns;
  std::int64_t now = 0;
  if (watching_ || alone_) {
    now = monotonic_ns();
    surplus = work_.duties.return_surplus(now);
  }
  const std::int64_t earliest = std::min(work_.timers.earliest(), surplus);
  if (earliest != never_ns && sleepers.take_keeper(index_, earliest)) until = earliest;
  return watching_ ? std::min(until, now + watch_interval_ns) : until;
}

// Looks, as the watcher, for work that is stuck behind an actor that computes on: a run-next that
// has not moved since the last look is taken to the queue; queued work is reason enough if a
// scheduler has not moved. True: there is something for this scheduler to do.
bool picker::look_for_stuck() noexcept {
  bool hog = false;
  bool found = false;
  for (unsigned i = 0; i < work_.pickers.size(); ++i) {
    picker& other = *work_.pickers[i];
    if (&other == this) continue;
    const look now{other.peek_run_next(), other.dispatches()};
    const look before = std::exchange(looks_[i], now);
    if (now.dispatches != before.dispatches || work_.sleepers.is_parked(i)) continue;
    hog = true;
    if (now.next == nullptr || now.next != before.next) continue;
    if (slot* const stuck = other.steal_run_next()) {
      enqueue(*stuck);
      found = true;
    }
  }
  return found || (hog && !work_.queue.looks_empty());
}

// Looks around for a moment before it sleeps: a wake costs the waker and the woken microseconds,
// and a producer that runs on another CPU often has the next piece ready within one. True: there is
// work.
bool picker::linger() noexcept {
  if (alone_ || (!searching_ && !work_.sleepers.try_search())) return false;
  searching_ = true;
  for (int look = 0; look < linger_looks; ++look) {
    if (!work_.queue.looks_empty()) return true;
    relax();
  }
  return false;
}

// Sleeps until there may be something to do; false: the run is over.
bool picker::sleep() noexcept {
  coordinator& sleepers = work_.sleepers;
  if (work_.duties.look_at_drivers() || linger()) return true;
  share_.give_back();
  for (;;) {
    if (work_.life.try_end()) {
      sleepers.wake_all();
      return false;
    }
    sleepers.prepare_park(index_, searching_);
    searching_ = true;  // what park and cancel_park leave behind
    if (work_.life.may_end() || (!work_.queue.looks_empty() && !sleepers.enough_awake())) {
      sleepers.cancel_park(index_);
      return true;
    }
    if (!alone_) update_watch();
    const std::int64_t until = choose_wake_time();
    const bool woken = sleepers.park(index_, until);
    sleepers.leave_keeper(index_);
    if (woken || !watching_) return true;
    fire_timers();
    if (peek_run_next() != nullptr || look_for_stuck()) return true;
  }
}

}  // namespace smarm::detail
