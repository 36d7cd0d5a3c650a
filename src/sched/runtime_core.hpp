// runtime_core is one runtime's shared state: its schedulers, queue, timers, stacks and counts.
//
// Invariants
//   1. Type-stable: cores are reused and never freed, so a waker of a runtime that has ended may
//      still look at one. What it needs beyond that look it reaches only with a pin.
//   2. A foreign thread pins the core before it makes an actor runnable. If that succeeded the
//      actor was alive, so the run had not ended; the end waits until no pin is left.
//   3. live_ counts actors from spawn to the end of their exit. The verdict (no actor lives, no
//      operation is outstanding) closes it by one compare-exchange from zero; a spawn from outside
//      then fails. Operations are started by live actors only, so live_ is read first.
// Threads: construction, run and destruction by the owner of the runtime; the rest as said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <smarm/config.hpp>
#include <smarm/pid.hpp>
#include <smarm/runtime.hpp>

#include "base/atomic.hpp"
#include "fiber/stack.hpp"
#include "sched/coordinator.hpp"
#include "sched/driver.hpp"
#include "sched/run_queue.hpp"
#include "sched/slot.hpp"
#include "sched/timers.hpp"

namespace smarm::detail {

class scheduler;

class runtime_core {
 public:
  // create takes a core and builds its parts. Throws config_error or std::system_error.
  [[nodiscard]] static runtime_core& create(const config& how);
  // destroy takes the parts down; the core goes back for reuse. Actors that were spawned and never
  // run end as stopped.
  static void destroy(runtime_core& core) noexcept;

  // One run: claim starts the threads, which wait; run opens the gate and is scheduler 0; end_claim
  // ends the claim, whatever came before it.
  void claim();
  void run() noexcept;
  void end_claim() noexcept;

  // admit counts a new actor; the error says why it may not be.
  [[nodiscard]] std::error_code admit(bool from_inside) noexcept;
  // discharge takes back an admit, or counts an actor out as the last act of its exit.
  void discharge() noexcept;

  // enqueue makes a queued actor runnable from any thread that keeps this core alive (a scheduler
  // of it, or one that has pinned it): publish, then wake one scheduler if one sleeps.
  void enqueue(unsigned stripe, slot& runnable) noexcept {
    queue_->push(stripe, runnable);
    coordinator_->wake_one_if_idle();
  }

  // offer_to_others enqueues the actor and gives the other schedulers a moment to take it (debug
  // builds).
  void offer_to_others(unsigned stripe, slot& runnable) noexcept;

  [[nodiscard]] std::size_t live_count() const noexcept;

  // may_end: no actor lives and nothing is outstanding, or the verdict has been spoken.
  [[nodiscard]] bool may_end() const noexcept;
  // try_end speaks the verdict; true: the run is over.
  [[nodiscard]] bool try_end() noexcept;

  void operation_started() noexcept;
  void operation_finished() noexcept;

  [[nodiscard]] driver& driver_of(driver_kind kind, std::unique_ptr<driver> (*make)(runtime_core&));
  // look_at_drivers has the drivers finish what is ready by now; see driver::look.
  [[nodiscard]] bool look_at_drivers() noexcept;

  void stop_all() noexcept;
  [[nodiscard]] runtime_counts counts() const noexcept;

  [[nodiscard]] const config& settings() const noexcept { return settings_; }
  [[nodiscard]] unsigned scheduler_count() const noexcept { return settings_.schedulers; }
  [[nodiscard]] scheduler& scheduler_at(unsigned index) noexcept { return *schedulers_[index]; }
  [[nodiscard]] run_queue& queue() noexcept { return *queue_; }
  [[nodiscard]] coordinator& sleepers() noexcept { return *coordinator_; }
  [[nodiscard]] class timers& timers() noexcept { return timers_; }
  [[nodiscard]] stack_pool& stacks() noexcept { return *stacks_; }

  // take_last_stack lends the stack that is kept for the end of an actor for which memory has none;
  // empty: it is lent. Any scheduler.
  [[nodiscard]] stack_span take_last_stack() noexcept;
  void give_last_stack_back() noexcept;
  // no_stack_reason is why an actor ended for which there was no stack.
  [[nodiscard]] exit_reason no_stack_reason(std::error_code why) const noexcept;

  // pin keeps the run from ending while a foreign thread makes one of its actors runnable.
  class pin {
   public:
    explicit pin(runtime_core& core) noexcept : core_(core) {
      // relaxed: sequenced before the caller's release exchange on the slot, through which the
      // end of the run comes to see it (invariant 2).
      core_.pins_.fetch_add(1, relaxed);
    }
    ~pin() {
      core_.pins_.fetch_sub(1, release);  // pairs with the acquire in run: we are through
    }
    pin(const pin&) = delete;
    pin& operator=(const pin&) = delete;

   private:
    runtime_core& core_;
  };

  atomic<std::size_t> fd_waiters{0};  // a count for counts(); relaxed everywhere

 private:
  friend struct core_pool;
  static constexpr std::uint64_t closed = std::uint64_t{1} << 63;

  enum class gate : std::uint32_t { waiting, opened, called_off };

  runtime_core() = default;
  ~runtime_core() = default;
  void build(const config& how);
  void take_down() noexcept;
  void scheduler_thread(unsigned index) noexcept;
  void open_gate(gate how) noexcept;

  config settings_;
  std::unique_ptr<run_queue> queue_;
  std::unique_ptr<coordinator> coordinator_;
  std::unique_ptr<stack_pool> stacks_;
  stack_span last_stack_;  // of stacks_; constant while the parts stand
  atomic<bool> last_stack_lent_{false};
  exit_reason no_memory_;  // no_stack_reason's, made while there was memory; constant
  class timers timers_;
  std::vector<std::unique_ptr<scheduler>> schedulers_;
  std::vector<std::thread> threads_;  // schedulers 1 and up, while claimed

  // Guards making a driver. No leaf: making one allocates and starts a thread. Never held at a
  // park, nor while a driver is shut down.
  std::mutex drivers_lock_;
  // Written once a run under drivers_lock_ (release), read without it (acquire).
  atomic<driver*> drivers_[driver_kinds]{};

  atomic<bool> claimed_{false};
  atomic<std::uint32_t> gate_{0};  // a futex word of gate

  alignas(64) atomic<std::uint64_t> live_{0};  // see invariant 3; top bit: closed
  alignas(64) atomic<std::uint64_t> outstanding_{0};
  atomic<std::uint64_t> pins_{0};  // never reset: a late pin of a former life may still be on it
  runtime_core* next_free_ = nullptr;  // guarded by the pool's lock
};

}  // namespace smarm::detail
