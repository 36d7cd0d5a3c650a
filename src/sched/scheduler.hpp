// scheduler is one OS thread that runs actors: what it picks next, how it sleeps, how actors start
// and end on it.
//
// An actor that parks, yields or ends picks the next one itself and switches straight into it; the
// thread's own stack (the idle context) runs only when there is none. What must wait until a
// context has been saved (parking, requeueing, giving a stack back) is done by whoever runs next,
// in finish_previous.
//
// run_next holds the actor that this scheduler woke or spawned last and will run next: it wakes
// nobody, which is what makes a message cost nanoseconds. Whoever was there goes to the queue.
//
// Invariants
//   1. Only the owner fills run_next_; the owner and the watcher take from it, by exchange.
//   2. A chain of run_next picks is cut after run_next_max: then it waits at the queue's tail.
//   3. Between the look for a next actor and the switch nothing of the leaving actor is touched by
//      others: its state is still running.
// Threads: all by the owning thread, but for the members that say otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include <smarm/exit_reason.hpp>

#include "base/atomic.hpp"
#include "fiber/current.hpp"
#include "fiber/fiber.hpp"
#include "fiber/stack.hpp"
#include "sched/body.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class runtime_core;

class scheduler {
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
    scheduler* const here = current();
    return here == nullptr ? nullptr : here->running_;
  }

  [[nodiscard]] runtime_core& core() const noexcept { return core_; }
  [[nodiscard]] unsigned stripe() const noexcept { return stripe_; }
  [[nodiscard]] slot* running() const noexcept { return running_; }

  // run runs actors until the run is over. The thread's main function.
  void run() noexcept;

  // schedule makes a queued actor the next to run here; schedule_last puts it behind what is queued
  // if anything is.
  void schedule(slot& runnable) noexcept;
  void schedule_last(slot& runnable) noexcept;

  // park_running and yield_running switch away from the running actor, and return when it runs
  // again, on whatever scheduler. Called by sched/park.cpp only.
  static void park_running() noexcept;
  static void yield_running() noexcept;

  // note_deadline: the running actor has armed the earliest timer of the runtime.
  void note_deadline() noexcept { deadline_noted_ = true; }

  // note_expired_wait counts waits whose time had passed as they began; true: it is time to yield.
  [[nodiscard]] bool note_expired_wait() noexcept { return ++expired_waits_ % 32 == 0; }

  // take_slot / give_slot: a vacant slot through this thread's cache; null without memory.
  [[nodiscard]] slot* take_slot() noexcept;
  void give_slot(slot& vacant) noexcept;

  // end_unstarted ends an actor that has never run and whose runtime runs no more. Its function is
  // destroyed on the calling thread.
  static void end_unstarted(slot& queued, exit_reason why) noexcept;

  // steal_run_next takes the next actor of another scheduler, or null. By the watcher.
  [[nodiscard]] slot* steal_run_next() noexcept;
  // dispatches counts picks; read by the watcher to see whether this scheduler moves.
  [[nodiscard]] std::uint32_t dispatches() const noexcept {
    return tick_.load(relaxed);  // relaxed: compared with an earlier look, no more
  }
  [[nodiscard]] slot* peek_run_next() const noexcept {
    return run_next_.load(relaxed);  // relaxed: as dispatches; steal_run_next decides
  }
  [[nodiscard]] std::uint64_t migrations() const noexcept {
    return migrations_.load(relaxed);  // relaxed: a statistic
  }

 private:
  enum class leaving : std::uintptr_t { idle, parking, yielding, ended };

  static constexpr std::uint32_t run_next_max = 64;
  static constexpr std::size_t slot_cache_max = 64;
  static constexpr std::int64_t watch_interval_ns = 5'000'000;
  static constexpr unsigned quiet_looks_max = 4;
  static constexpr int linger_looks = spin_limit(40);
  static constexpr std::uint32_t stripe_ticks = 64;  // picks between two looks at the CPU's number

  [[nodiscard]] slot* pick_next() noexcept;
  [[nodiscard]] slot* pick_runnable() noexcept;
  [[nodiscard]] slot* pick_startable(slot* donor) noexcept;
  [[nodiscard]] slot* take_run_next() noexcept;
  [[nodiscard]] bool should_migrate(slot& candidate) noexcept;
  void offer_to_others(slot& candidate) noexcept;
  void fire_timers() noexcept;
  [[nodiscard]] bool give_stack(slot& fresh, slot* donor) noexcept;
  [[nodiscard]] bool give_last_stack(slot& fresh, std::error_code why) noexcept;
  void set_running(slot& next) noexcept;
  void finish_previous(switch_message message) noexcept;
  static void switch_away(scheduler& here, slot& self, slot* next, leaving how) noexcept;

  static void actor_main(void* from, std::uintptr_t what) noexcept;
  static exit_reason run_body(slot& self) noexcept;
  static void publish_end(slot& self, exit_reason why) noexcept;
  [[noreturn]] void leave_ended(slot& self) noexcept;

  [[nodiscard]] bool sleep() noexcept;
  [[nodiscard]] bool linger() noexcept;
  [[nodiscard]] std::int64_t choose_wake_time() noexcept;
  void update_watch() noexcept;
  [[nodiscard]] bool look_for_stuck() noexcept;
  void begin_work() noexcept;

  // The owner's hot words.
  slot* running_ = nullptr;
  runtime_core& core_;
  fiber idle_;
  unsigned index_;
  unsigned stripe_ = 0;          // of the run queue: the CPU's, as it was of late
  bool alone_;                   // the runtime has no other scheduler
  bool deadline_noted_ = false;  // see note_deadline
  bool searching_ = false;       // counted as searching in the census
  bool watching_ = false;        // has the watcher's role
  unsigned quiet_looks_ = 0;
  std::uint32_t expired_waits_ = 0;
  std::int64_t offer_again_ns_ = 0;  // see should_migrate
  std::uint32_t run_next_streak_ = 0;
  std::size_t cached_slots_ = 0;
  std::array<slot*, slot_cache_max> slot_cache_;
  stack_cache stacks_;
  struct look {
    slot* run_next = nullptr;
    std::uint32_t dispatches = 0;
  };
  std::vector<look> looks_;  // of the watcher, one a scheduler

  // Read by others.
  alignas(64) atomic<slot*> run_next_{nullptr};  // release/acquire: publishes nothing by itself,
                                                 // the state word does
  atomic<std::uint32_t> tick_{0};
  atomic<std::uint64_t> migrations_{0};
};

}  // namespace smarm::detail
