// What a scheduler does, in three parts: switch, begin and end an actor, run.
#include "sched/scheduler.hpp"

#include <cstdlib>
#include <utility>

#include "base/assert.hpp"
#include "base/perturb.hpp"
#include "fiber/block_pool.hpp"
#include "fiber/overflow.hpp"
#include "sched/actor_extension.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/runtime_core.hpp"
#include "sched/slot_table.hpp"
#include "sched/stop.hpp"
#include "sched/thrown.hpp"
#include "sched/timers.hpp"

namespace smarm::detail {

scheduler::scheduler(runtime_core& core, unsigned index)
    : picker(core.work(), index, core.scheduler_count()), core_(core), stacks_(core.stacks()) {}

scheduler::~scheduler() { slot_table::instance().give_back(slot_cache_.data(), cached_slots_); }

// ---- switching -------------------------------------------------------------------------------

// As pick_next; a fresh actor has its stack. Null also where there was none for it: then the caller
// leaves its own stack first, because what the last resort is waiting for may be the caller.
slot* scheduler::pick_startable(slot* donor) noexcept {
  slot* const next = pick_next();
  if (next != nullptr && !next->has_started && !give_stack(*next, donor)) return nullptr;
  return next;
}

// Gives a fresh actor its stack: the donor's, if that one is ending and the size fits, or a new
// one, or the last resort's. False: there was none, and the actor is back in the queue.
bool scheduler::give_stack(slot& fresh, slot* donor) noexcept {
  if (donor != nullptr && donor->stack_size == fresh.stack_size) {
    fresh.context.stack = std::exchange(donor->context.stack, {});
    return true;
  }
  const bool is_usual = fresh.stack_size == stack_size_default >> 10;
  if (is_usual && stacks_.take(fresh.context.stack)) [[likely]]
    return true;
  const auto stack =
      is_usual ? stacks_.acquire() : core_.stacks().acquire(std::size_t{fresh.stack_size} << 10);
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
    enqueue(fresh);
    return false;
  }
  fresh.body->why = core_.no_stack_reason(why);
  fresh.context.stack = last;
  fresh.stack_size = 0;
  return true;
}

// What is left to do for an actor that has ended, once nobody stands on its stack.
void scheduler::finish_ended(slot& previous) noexcept {
  const stack_span stack = std::exchange(previous.context.stack, {});
  if (!stack.empty()) {
    if (previous.stack_size == stack_size_default >> 10) [[likely]] {
      stacks_.release(stack);
    } else if (previous.stack_size == 0) {
      core_.give_last_stack_back();
    } else {
      core_.stacks().release(stack);
    }
  }
  give_slot(previous);
  discharge();
}

void scheduler::finish_previous(switch_message message) noexcept {
  auto* const previous = static_cast<slot*>(message.from);
  perturb(perturb_point::switched);
  switch (static_cast<leaving>(message.what)) {
    case leaving::idle:
      return;
    case leaving::parking:
      return finish_parking(*previous);
    case leaving::yielding:
      previous->migration_tried = true;  // no park: a yield stays cheap in debug builds too
      previous->state.yield_return();
      enqueue(*previous);
      return;
    case leaving::ended:
      return finish_ended(*previous);
  }
}

void scheduler::yield_running() noexcept {
  scheduler& here = *current();
  slot& self = *current_slot();
  slot* const next = here.pick_startable(nullptr);
  if (next == nullptr) return;
  switch_away(here, self, next, leaving::yielding);
}

// ---- an actor's beginning and end ------------------------------------------------------------

bool scheduler::refill_slots() noexcept {
  cached_slots_ = slot_table::instance().take(slot_cache_.data(), slot_cache_max / 2);
  return cached_slots_ != 0;
}

void scheduler::spill_slots() noexcept {
  cached_slots_ -= slot_cache_max / 2;
  slot_table::instance().give_back(slot_cache_.data() + cached_slots_, slot_cache_max / 2);
}

// Why the actor was stopped: by a signal that its extension knows, or by request_stop.
exit_reason scheduler::stop_reason(slot& self) noexcept {
  // acquire: pairs with install_extension.
  actor_extension* const extension = self.extension.load(acquire);
  return extension == nullptr ? exit_reason::stopped() : extension->stop_reason();
}

// Runs the actor's function and leaves in its body why it ended, where that is not the normal end
// that the body was made with.
void scheduler::run_body(slot& self) noexcept {
  body_header& header = *self.body;
  if (self.stack_size == 0) return;  // no stack to run on; the reason is there already
  // Asked to stop before it ever ran: then its function does not begin.
  if (self.state.peek().stop_requested()) [[unlikely]] {
    header.why = stop_reason(self);
    return;
  }
  try {
    body_of(header).run();
  } catch (const forced_stop&) {
    header.why = stop_reason(self);
  } catch (const exit_request& request) {
    header.why = request.why;
  } catch (const stack_probe&) {
    std::abort();
  } catch (...) {
    header.why = caught_reason();
  }
}

// Takes the timer of the actor's waits out of the wheel and frees it.
void scheduler::drop_wait_timer(slot& self) noexcept {
  standing_timer* const gone = std::exchange(self.wait_timer, nullptr);
  // relaxed: the actor's own
  self.owner.load(relaxed)->work().timers.retire(*gone);
  gone->~standing_timer();
  pool_free(gone, sizeof(standing_timer));
}

// Drops the actor's half of its body and makes its slot vacant, though still in no free list.
void scheduler::bury(slot& self) noexcept {
  // May run the destructor of the result, which may park: the actor is still there to do it.
  body_release(body_of(*self.body));
  self.body = nullptr;  // not before: that destructor may ask for its actor's name
  if (self.wait_timer != nullptr) drop_wait_timer(self);  // of that destructor's waits
  // False when the slot's generations are used up: then give_slot retires it.
  (void)self.state.reclaim();
}

// Publishes that the actor has ended: nobody finds it, the joiner and the hooks learn why, which
// its body says; then it is buried.
void scheduler::publish_end(slot& self) noexcept {
  body_header& header = *self.body;
  if (self.wait_timer != nullptr) [[unlikely]]
    drop_wait_timer(self);  // before anybody learns of the end
  self.state.set_done();
  ++self.shield_depth;  // set_done shields; no stop_shield of a result's destructor undoes it
  if (!exit_hook_list::has_hooks(self)) [[likely]] {
    const bool nobody_learns = header.why.is_error() && !header.has_holder();
    header.end();
    if (nobody_learns) [[unlikely]]
      report_unobserved(self, header);
    bury(self);
    return;
  }
  exit_hook_list hooks(self);
  const bool nobody_learns = header.why.is_error() && !hooks.is_heard() && !header.has_holder();
  const pid who = header.who;
  hooks.close(who, header.why);
  header.end();
  hooks.call_all(who, header.why);
  if (nobody_learns) report_unobserved(self, header);
  bury(self);
}

void scheduler::end_unstarted(slot& queued, exit_reason why) noexcept {
  queued.add_shield();
  body_of(*queued.body).discard();
  queued.body->why = std::move(why);
  publish_end(queued);
}

// Without a call: who goes on next would find it among its own returns (fiber/context_inline.hpp).
[[gnu::always_inline]] inline void scheduler::leave_ended(slot& self) noexcept {
  self.has_started = false;
  slot* donor = &self;
#if defined(SMARM_ADDRESS_SANITIZER) || defined(SMARM_THREAD_SANITIZER)
  donor = nullptr;  // they want every fiber to have a stack of its own
#endif
  slot* const next = pick_startable(donor);
  constexpr auto what = static_cast<std::uintptr_t>(leaving::ended);
  if (next == nullptr) {
    current_thread().running = nullptr;
    leave_fiber(self.context, idle_, &self, what);
  }
  set_running(*next);
  if (next->has_started) leave_fiber(self.context, next->context, &self, what);
  leave_and_start_fiber(self.context, next->context, &actor_main, &self, what);
}

void scheduler::actor_main(void* from, std::uintptr_t what) noexcept {
  scheduler* here = current();
  here->finish_previous({from, what});
  slot& self = *current_slot();
  self.has_started = true;
  run_body(self);
  // From here on a pending stop cuts no wait of the actor: only destructors are left, which must
  // not throw. By the depth, so that a shield within them does not take this one along.
  if (!self.body->has_trivial_function) {
    self.add_shield();
    body_of(*self.body).discard();
  }
  // PARKS: the body has, so the scheduler is looked up anew.
  publish_end(self);
  current()->leave_ended(self);
}

// ---- the idle context ------------------------------------------------------------------------

void scheduler::run() noexcept {
  current_thread().scheduler = this;
  adopt_thread(idle_);
  const signal_stack overflow_stack;
  find_home();
  while (slot* const next = next_or_end()) {
    if (!next->has_started && !give_stack(*next, nullptr)) continue;
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

}  // namespace smarm::detail
