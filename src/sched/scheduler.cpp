// What a scheduler does, in four parts: pick, switch, begin and end an actor, sleep.
#include "sched/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/perturb.hpp"
#include "fiber/overflow.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/runtime_core.hpp"
#include "sched/slot_table.hpp"
#include "sched/stop.hpp"

namespace smarm::detail {

scheduler::scheduler(runtime_core& core, unsigned index)
    : core_(core),
      index_(index),
      alone_(core.scheduler_count() == 1),
      stacks_(core.stacks()),
      looks_(core.scheduler_count()) {}

scheduler::~scheduler() { slot_table::instance().give_back(slot_cache_.data(), cached_slots_); }

// ---- what runs next --------------------------------------------------------------------------

void scheduler::schedule(slot& runnable) noexcept {
  perturb(perturb_point::schedule);
  slot* kicked_out = nullptr;
  if (run_next_.load(relaxed) == nullptr) {  // relaxed: only the owner fills it
    run_next_.store(&runnable, release);     // pairs with steal_run_next
    if (alone_) return;
    // Pairs with the fence of leave_watcher, see ensure_watcher.
    fence(seq_cst);
    core_.sleepers().ensure_watcher();
    return;
  }
  // acq_rel: the watcher may be taking what is there.
  kicked_out = run_next_.exchange(&runnable, acq_rel);
  if (kicked_out != nullptr) core_.enqueue(stripe_, *kicked_out);
}

void scheduler::schedule_last(slot& runnable) noexcept {
  if (core_.queue().looks_empty()) {
    schedule(runnable);
  } else {
    core_.enqueue(stripe_, runnable);
  }
}

slot* scheduler::take_run_next() noexcept {
  if (run_next_.load(relaxed) == nullptr) return nullptr;  // relaxed: only the owner fills it
  perturb(perturb_point::steal);
  return run_next_.exchange(nullptr, acquire);  // pairs with schedule's release
}

slot* scheduler::steal_run_next() noexcept {
  perturb(perturb_point::steal);
  return run_next_.exchange(nullptr, acquire);  // pairs with schedule's release
}

void scheduler::fire_timers() noexcept {
  const std::int64_t earliest = core_.timers().earliest();
  if (earliest == never_ns) [[likely]]
    return;
  const std::int64_t now = monotonic_ns();
  if (earliest <= now) core_.timers().fire_due(now);
}

// Debug builds let an actor resume on another scheduler than it left, wherever there is one, so
// that an address of thread-local memory kept across a park shows at once. Offered once: if nobody
// takes it, it runs here. Not while the CPUs are busy with others' work: whoever offers then loses
// its own for milliseconds, at each park. Stress builds do it at random instead, also then.
bool scheduler::should_migrate([[maybe_unused]] slot& candidate) noexcept {
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

void scheduler::offer_to_others(slot& candidate) noexcept {
  constexpr std::int64_t preempted_ns = 1'000'000;
  const std::int64_t begin = monotonic_ns();
  core_.offer_to_others(stripe_, candidate);
  const std::int64_t now = monotonic_ns();
  if (now - begin > preempted_ns) offer_again_ns_ = now + 8 * (now - begin);
}

slot* scheduler::pick_runnable() noexcept {
  // A chain that nobody waits behind goes on: cutting it would only wake another scheduler for it.
  if (run_next_streak_ >= run_next_max && core_.queue().looks_empty()) run_next_streak_ = 0;
  if (run_next_streak_ < run_next_max) {
    if (slot* const next = take_run_next()) {
      ++run_next_streak_;
      return next;
    }
  } else if (slot* const cut = take_run_next()) {
    core_.enqueue(stripe_, *cut);
  }
  run_next_streak_ = 0;
  run_queue& queue = core_.queue();
  slot* const next = queue.pop(stripe_, tick_.load(relaxed));  // relaxed: own counter
  // Chain rule: what is left may run in parallel.
  if (next != nullptr && !alone_ && core_.sleepers().may_wake() && !queue.looks_empty()) {
    core_.sleepers().wake_one_if_idle();
  }
  return next;
}

slot* scheduler::pick_next() noexcept {
  const std::uint32_t tick = tick_.load(relaxed) + 1;  // relaxed: own counter, read as a hint
  tick_.store(tick, relaxed);                          // relaxed: as above
  if (tick % stripe_ticks == 0) stripe_ = core_.queue().home_stripe();
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
      if (!alone_) core_.sleepers().rearm(core_.timers().earliest());
    }
    return next;
  }
}

// As pick_next; a fresh actor has its stack. Null also where there was none for it: then the caller
// leaves its own stack first, because what the last resort is waiting for may be the caller.
slot* scheduler::pick_startable(slot* donor) noexcept {
  slot* const next = pick_next();
  if (next != nullptr && !next->has_started && !give_stack(*next, donor)) return nullptr;
  return next;
}

// ---- switching -------------------------------------------------------------------------------

void scheduler::set_running(slot& next) noexcept {
  running_ = &next;
  if (next.has_started && next.last_scheduler != index_) {
    // relaxed: own counter, read as a statistic
    migrations_.store(migrations_.load(relaxed) + 1, relaxed);
  }
  next.last_scheduler = index_;
  next.migration_tried = false;
}

// Gives a fresh actor its stack: the donor's, if that one is ending and the size fits, or a new
// one, or the last resort's. False: there was none, and the actor is back in the queue.
bool scheduler::give_stack(slot& fresh, slot* donor) noexcept {
  const std::size_t wanted = std::size_t{fresh.stack_size} << 10;
  if (donor != nullptr && donor->stack_size == fresh.stack_size) {
    fresh.context.stack = std::exchange(donor->context.stack, {});
    return true;
  }
  const auto stack =
      wanted == stack_size_default ? stacks_.acquire() : core_.stacks().acquire(wanted);
  if (stack) {
    fresh.context.stack = *stack;
    return true;
  }
  return give_last_stack(fresh, stack.error());
}

// Gives an actor for which there is no stack the runtime's last one, for its end only: its function
// is destroyed as an actor and may park meanwhile. False: another actor ends on it; this one waits
// its turn at the queue's tail.
bool scheduler::give_last_stack(slot& fresh, std::error_code why) noexcept {
  const stack_span last = core_.take_last_stack();
  if (last.empty()) {
    fresh.state.yield_return();
    core_.enqueue(stripe_, fresh);
    return false;
  }
  fresh.body->why = core_.no_stack_reason(why);
  fresh.context.stack = last;
  fresh.stack_size = 0;
  return true;
}

void scheduler::switch_away(scheduler& here, slot& self, slot* next, leaving how) noexcept {
  const auto what = static_cast<std::uintptr_t>(how);
  switch_message message{};
  // PARKS: `here` may be another thread's when a switch returns.
  if (next == nullptr) {
    here.running_ = nullptr;
    message = switch_fiber(self.context, here.idle_, &self, what);
  } else {
    here.set_running(*next);
    message = next->has_started
                  ? switch_fiber(self.context, next->context, &self, what)
                  : start_fiber(self.context, next->context, &actor_main, &self, what);
  }
  current()->finish_previous(message);
}

void scheduler::park_running() noexcept {
  scheduler& here = *current();
  slot& self = *here.running_;
  SMARM_ASSERT_DEBUG(current_thread().held_raw_mutexes == 0, "nobody parks with a raw_mutex held",
                     self.index, self.reason);
  if (!self.state.consume_notification()) {
    switch_away(here, self, here.pick_startable(nullptr), leaving::parking);
  }
  self.wait_opened = false;
  self.reason = wait_reason::none;
}

void scheduler::yield_running() noexcept {
  scheduler& here = *current();
  slot& self = *here.running_;
  slot* const next = here.pick_startable(nullptr);
  if (next == nullptr) return;
  switch_away(here, self, next, leaving::yielding);
}

void scheduler::finish_previous(switch_message message) noexcept {
  auto* const previous = static_cast<slot*>(message.from);
  perturb(perturb_point::switched);
  switch (static_cast<leaving>(message.what)) {
    case leaving::idle:
      return;
    case leaving::parking:
      // From this call on the actor may run elsewhere, unless it comes back at once.
      if (previous->state.park_return() == slot_state::park_end::must_enqueue) {
        schedule(*previous);
      }
      return;
    case leaving::yielding:
      previous->migration_tried = true;  // no park: a yield stays cheap in debug builds too
      previous->state.yield_return();
      core_.enqueue(stripe_, *previous);
      return;
    case leaving::ended: {
      const stack_span stack = std::exchange(previous->context.stack, {});
      if (!stack.empty()) {
        if (previous->stack_size == stack_size_default >> 10) {
          stacks_.release(stack);
        } else if (previous->stack_size == 0) {
          core_.give_last_stack_back();
        } else {
          core_.stacks().release(stack);
        }
      }
      give_slot(*previous);
      core_.discharge();
      return;
    }
  }
}

// ---- an actor's beginning and end ------------------------------------------------------------

slot* scheduler::take_slot() noexcept {
  if (cached_slots_ == 0) {
    cached_slots_ = slot_table::instance().take(slot_cache_.data(), slot_cache_max / 2);
    if (cached_slots_ == 0) return nullptr;
  }
  return slot_cache_[--cached_slots_];
}

void scheduler::give_slot(slot& vacant) noexcept {
  if (vacant.generation == slot_word::generation_max) return;  // retired
  if (cached_slots_ == slot_cache_max) {
    cached_slots_ -= slot_cache_max / 2;
    slot_table::instance().give_back(slot_cache_.data() + cached_slots_, slot_cache_max / 2);
  }
  slot_cache_[cached_slots_++] = &vacant;
}

// Runs the actor's function; the reason why it ended.
exit_reason scheduler::run_body(slot& self) noexcept {
  if (self.stack_size == 0) return std::move(self.body->why);  // no stack to run on
  // Asked to stop before it ever ran: then its function does not begin.
  if (self.state.peek().stop_requested()) return exit_reason::stopped();
  try {
    body_of(*self.body).run();
    return exit_reason::normal();
  } catch (const forced_stop&) {
    return exit_reason::stopped();
  } catch (...) {
    return exit_reason::failed(std::current_exception());
  }
}

// Publishes that the actor has ended: nobody finds it, the joiner and the hooks learn why, its
// half of the body is dropped. Its slot is vacant afterwards, though still in no free list.
void scheduler::publish_end(slot& self, exit_reason why) noexcept {
  body_header& header = *self.body;
  self.state.set_done();
  ++self.shield_depth;  // set_done shields; no stop_shield of a result's destructor undoes it
  exit_hook_list hooks(self);
  const bool nobody_learns = why.is_failed() && hooks.empty() && !header.has_holder();
  const pid who = header.who;
  header.end(std::move(why));
  hooks.call_all(who, header.why);
  if (nobody_learns) report_unobserved(self, header);
  // May run the destructor of the result, which may park: the actor is still there to do it.
  body_release(body_of(header));
  self.body = nullptr;  // not before: that destructor may ask for its actor's name
  // False when the slot's generations are used up: then give_slot retires it.
  (void)self.state.reclaim();
}

void scheduler::end_unstarted(slot& queued, exit_reason why) noexcept {
  queued.add_shield();
  body_of(*queued.body).discard();
  publish_end(queued, std::move(why));
}

void scheduler::actor_main(void* from, std::uintptr_t what) noexcept {
  scheduler* here = current();
  here->finish_previous({from, what});
  slot& self = *here->running_;
  self.has_started = true;
  exit_reason why = run_body(self);
  // From here on a pending stop cuts no wait of the actor: only destructors are left, which must
  // not throw. By the depth, so that a shield within them does not take this one along.
  if (!self.body->has_trivial_function) {
    self.add_shield();
    body_of(*self.body).discard();
  }
  // PARKS: the body has, so the scheduler is looked up anew.
  publish_end(self, std::move(why));
  current()->leave_ended(self);
}

void scheduler::leave_ended(slot& self) noexcept {
  self.has_started = false;
  slot* donor = &self;
#if defined(SMARM_ADDRESS_SANITIZER) || defined(SMARM_THREAD_SANITIZER)
  donor = nullptr;  // they want every fiber to have a stack of its own
#endif
  slot* const next = pick_startable(donor);
  constexpr auto what = static_cast<std::uintptr_t>(leaving::ended);
  if (next == nullptr) {
    running_ = nullptr;
    leave_fiber(self.context, idle_, &self, what);
  }
  set_running(*next);
  if (next->has_started) leave_fiber(self.context, next->context, &self, what);
  leave_and_start_fiber(self.context, next->context, &actor_main, &self, what);
}

// ---- the idle context ------------------------------------------------------------------------

void scheduler::run() noexcept {
  current_thread().scheduler = this;
  adopt_thread(idle_);
  const signal_stack overflow_stack;
  stripe_ = core_.queue().home_stripe();
  for (;;) {
    slot* const next = pick_next();
    if (next == nullptr) {
      if (!sleep()) break;
      stripe_ = core_.queue().home_stripe();
      continue;
    }
    if (!next->has_started && !give_stack(*next, nullptr)) continue;
    if (searching_ || watching_) begin_work();
    set_running(*next);
    constexpr auto what = static_cast<std::uintptr_t>(leaving::idle);
    const switch_message message =
        next->has_started ? switch_fiber(idle_, next->context, nullptr, what)
                          : start_fiber(idle_, next->context, &actor_main, nullptr, what);
    finish_previous(message);
  }
  stacks_.flush();
  current_thread().scheduler = nullptr;
}

// Leaves the search and the watcher's role: there is an actor to run.
void scheduler::begin_work() noexcept {
  coordinator& sleepers = core_.sleepers();
  if (watching_) {
    watching_ = false;
    sleepers.leave_watcher(index_);
  }
  if (searching_) {
    searching_ = false;
    sleepers.end_search([this] { return !core_.queue().looks_empty(); });
  }
  sleepers.hand_on(index_, core_.timers().earliest() != never_ns);
}

// Takes or leaves the watcher's role, once this scheduler is in the census as parked.
void scheduler::update_watch() noexcept {
  coordinator& sleepers = core_.sleepers();
  const bool all_parked = sleepers.all_parked();
  if (!watching_) {
    quiet_looks_ = 0;
    watching_ = !all_parked && sleepers.take_watcher(index_);
    return;
  }
  quiet_looks_ = all_parked ? quiet_looks_ + 1 : 0;
  if (quiet_looks_ < quiet_looks_max) return;
  watching_ = false;
  sleepers.leave_watcher(index_);
  // Behind the fence: a run-next that was filled before is seen here, or its filler saw the role
  // vacant and wakes somebody.
  for (unsigned i = 0; i < core_.scheduler_count(); ++i) {
    if (core_.scheduler_at(i).peek_run_next() != nullptr) {
      watching_ = sleepers.take_watcher(index_);
      return;
    }
  }
}

// When to wake without being woken: for the earliest timer if nobody else is there in time, for
// the next look of the watcher, for giving surplus stacks back.
std::int64_t scheduler::choose_wake_time() noexcept {
  coordinator& sleepers = core_.sleepers();
  std::int64_t until = never_ns;
  std::int64_t surplus = never_ns;
  std::int64_t now = 0;
  if (watching_ || alone_) {
    now = monotonic_ns();
    surplus = core_.stacks().decay(now);
  }
  for (;;) {
    const std::int64_t earliest = std::min(core_.timers().earliest(), surplus);
    if (earliest == never_ns || !sleepers.take_keeper(index_, earliest)) break;
    until = earliest;
    if (core_.timers().earliest() >= earliest) break;
  }
  return watching_ ? std::min(until, now + watch_interval_ns) : until;
}

// Looks, as the watcher, for work that is stuck behind an actor that computes on: a run-next that
// has not moved since the last look is taken to the queue; queued work is reason enough if a
// scheduler has not moved. True: there is something for this scheduler to do.
bool scheduler::look_for_stuck() noexcept {
  bool hog = false;
  bool found = false;
  for (unsigned i = 0; i < core_.scheduler_count(); ++i) {
    scheduler& other = core_.scheduler_at(i);
    if (&other == this) continue;
    const look now{other.peek_run_next(), other.dispatches()};
    const look before = std::exchange(looks_[i], now);
    if (now.dispatches != before.dispatches || core_.sleepers().is_parked(i)) continue;
    hog = true;
    if (now.run_next == nullptr || now.run_next != before.run_next) continue;
    if (slot* const stuck = other.steal_run_next()) {
      core_.enqueue(stripe_, *stuck);
      found = true;
    }
  }
  return found || (hog && !core_.queue().looks_empty());
}

// Looks around for a moment before it sleeps: a wake costs the waker and the woken microseconds,
// and a producer that runs on another CPU often has the next piece ready within one. True: there is
// work.
bool scheduler::linger() noexcept {
  if (alone_ || (!searching_ && !core_.sleepers().try_search())) return false;
  searching_ = true;
  for (int look = 0; look < linger_looks; ++look) {
    if (!core_.queue().looks_empty()) return true;
    relax();
  }
  return false;
}

// Sleeps until there may be something to do; false: the run is over.
bool scheduler::sleep() noexcept {
  coordinator& sleepers = core_.sleepers();
  if (core_.look_at_drivers() || linger()) return true;
  for (;;) {
    if (core_.try_end()) {
      sleepers.wake_all();
      return false;
    }
    sleepers.prepare_park(index_, searching_);
    searching_ = true;  // what park and cancel_park leave behind
    if (core_.may_end() || (!core_.queue().looks_empty() && !sleepers.enough_awake())) {
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
