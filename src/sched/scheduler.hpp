// scheduler is one OS thread that runs actors: how it switches between them, how they start and end
// on it. What runs next, and when to sleep, its picker decides.
//
// An actor that parks, yields or ends picks the next one itself and switches straight into it; the
// thread's own stack (the idle context) runs only when there is none. What must wait until a
// context has been saved (parking, requeueing, giving a stack back) is done by whoever runs next,
// in finish_previous.
//
// Invariants
//   1. Between the look for a next actor and the switch nothing of the leaving actor is touched by
//      others: its state is still running.
// Threads: all by the owning thread, but for the members that say otherwise.
//
// What a park does stands here, so that a wait has it without a call (sched/park_here.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <smarm/exit_reason.hpp>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/perturb.hpp"
#include "fiber/current.hpp"
#include "fiber/fiber.hpp"
#include "fiber/stack.hpp"
#include "sched/body.hpp"
#include "sched/picker.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class runtime_core;

class scheduler final : public picker {
 public:
  scheduler(runtime_core& core, unsigned index);
  ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // current is the scheduler whose thread this is; null on a foreign thread. Never kept across a
  // switch.
  [[nodiscard]] static scheduler* current() noexcept {
    return static_cast<scheduler*>(current_thread().scheduler);
  }
  // current_slot is the running actor's slot; null on a foreign thread.
  [[nodiscard]] static slot* current_slot() noexcept {
    return static_cast<slot*>(current_thread().running);
  }

  [[nodiscard]] runtime_core& core() const noexcept { return core_; }

  // run runs actors until the run is over. The thread's main function.
  void run() noexcept;

  // park_running and yield_running switch away from the running actor, and return when it runs
  // again, on whatever scheduler. Called by what parks or yields (sched/park_here.hpp,
  // sched/park.cpp) only.
  inline static void park_running() noexcept;
  static void yield_running() noexcept;

  // note_expired_wait counts waits whose time had passed as they began; true: it is time to yield.
  [[nodiscard]] bool note_expired_wait() noexcept { return ++expired_waits_ % 32 == 0; }

  // take_slot / give_slot: a vacant slot through this thread's cache; null without memory.
  [[nodiscard]] slot* take_slot() noexcept {
    if (cached_slots_ == 0 && !refill_slots()) [[unlikely]]
      return nullptr;
    return slot_cache_[--cached_slots_];
  }
  void give_slot(slot& vacant) noexcept {
    if (vacant.generation == slot_word::generation_max) [[unlikely]]
      return;  // retired
    if (cached_slots_ == slot_cache_max) [[unlikely]]
      spill_slots();
    slot_cache_[cached_slots_++] = &vacant;
  }

  // end_unstarted ends an actor that has never run and whose runtime runs no more. Its function is
  // destroyed on the calling thread.
  static void end_unstarted(slot& queued, exit_reason why) noexcept;

  // is_beneath_actor tells whether that function, by its address, is one of ours that an actor's
  // own stand upon.
  [[nodiscard]] static bool is_beneath_actor(std::uintptr_t function) noexcept {
    return function == reinterpret_cast<std::uintptr_t>(&actor_main) ||
           function == reinterpret_cast<std::uintptr_t>(&run_body);
  }

  [[nodiscard]] std::uint64_t migrations() const noexcept {
    return migrations_.load(relaxed);  // relaxed: a statistic
  }

 private:
  enum class leaving : std::uintptr_t { idle, parking, yielding, ended };

  static constexpr std::size_t slot_cache_max = 64;

  [[nodiscard]] bool refill_slots() noexcept;
  void spill_slots() noexcept;
  [[nodiscard]] slot* pick_startable(slot* donor) noexcept;
  [[nodiscard]] bool give_stack(slot& fresh, slot* donor) noexcept;
  [[nodiscard]] bool give_last_stack(slot& fresh, std::error_code why) noexcept;
  inline void set_running(slot& next) noexcept;
  void finish_previous(switch_message message) noexcept;
  inline void finish_parking(slot& previous) noexcept;
  void finish_ended(slot& previous) noexcept;
  inline static void switch_away(scheduler& here, slot& self, slot* next, leaving how) noexcept;

  static void actor_main(void* from, std::uintptr_t what) noexcept;
  static void run_body(slot& self) noexcept;
  static exit_reason stop_reason(slot& self) noexcept;
  static void publish_end(slot& self) noexcept;
  static void bury(slot& self) noexcept;
  static void drop_wait_timer(slot& self) noexcept;
  [[noreturn]] inline void leave_ended(slot& self) noexcept;

  runtime_core& core_;
  fiber idle_;
  std::uint32_t expired_waits_ = 0;
  std::size_t cached_slots_ = 0;
  std::array<slot*, slot_cache_max> slot_cache_;
  stack_cache stacks_;

  atomic<std::uint64_t> migrations_{0};  // read by others
};

[[gnu::always_inline]] inline void scheduler::set_running(slot& next) noexcept {
  current_thread().running = &next;
  if (next.has_started && next.last_scheduler != index_) {
    // relaxed: own counter, read as a statistic
    migrations_.store(migrations_.load(relaxed) + 1, relaxed);
  }
  next.last_scheduler = index_;
  next.migration_tried = false;
}

[[gnu::always_inline]] inline void scheduler::finish_parking(slot& previous) noexcept {
  // From this call on the actor may run elsewhere, unless it comes back at once.
  if (previous.state.park_return() == slot_state::park_end::must_enqueue) [[unlikely]]
    schedule(previous);
}

[[gnu::always_inline]] inline void scheduler::switch_away(scheduler& here, slot& self, slot* next,
                                                          leaving how) noexcept {
  const auto what = static_cast<std::uintptr_t>(how);
  switch_message message{};
  // PARKS: `here` may be another thread's when a switch returns.
  if (next == nullptr) {
    current_thread().running = nullptr;
    message = switch_fiber(self.context, here.idle_, &self, what);
  } else {
    here.set_running(*next);
    message = next->has_started
                  ? switch_fiber(self.context, next->context, &self, what)
                  : start_fiber(self.context, next->context, &actor_main, &self, what);
  }
  scheduler& now = *current();
  // Mostly who ran before has parked: that is done here, without a call.
  if (message.what == static_cast<std::uintptr_t>(leaving::parking)) [[likely]] {
    perturb(perturb_point::switched);
    now.finish_parking(*static_cast<slot*>(message.from));
  } else {
    now.finish_previous(message);
  }
}

[[gnu::always_inline]] inline void scheduler::park_running() noexcept {
  scheduler& here = *current();
  slot& self = *current_slot();
  SMARM_ASSERT_DEBUG(current_thread().held_raw_mutexes == 0, "nobody parks with a raw_mutex held",
                     self.index, self.reason);
  if (!self.state.consume_notification()) {
    switch_away(here, self, here.pick_startable(nullptr), leaving::parking);
  }
  self.wait_opened = false;
  self.reason = wait_reason::none;
}

}  // namespace smarm::detail
