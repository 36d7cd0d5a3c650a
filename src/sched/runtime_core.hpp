// runtime_core is one runtime's shared state: its schedulers, queue, timers, stacks and counts.
//
// Invariants
//   1. Type-stable: cores are reused and never freed, so a waker of a runtime that has ended may
//      still look at one. What it needs beyond that look it reaches only with a pin.
//   2. What a foreign thread may touch late, and when a run is over: run_life.
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
#include "sched/driver.hpp"
#include "sched/picker.hpp"
#include "sched/run_life.hpp"
#include "sched/slot.hpp"
#include "sched/workplace.hpp"

namespace smarm::detail {

class scheduler;

class runtime_core final : private idle_duties {
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

  // admit counts a new actor; errc(), or why it may not be.
  [[nodiscard]] std::errc admit(picker* inside) noexcept {
    const run_life::admission verdict =
        inside != nullptr ? inside->admit() : life_.admit(false, settings_.max_actors);
    return verdict == run_life::admission::admitted ? std::errc() : refusal(verdict);
  }
  // operation_finished counts an operation out, and wakes the schedulers if it was the last thing
  // that kept the run going.
  void operation_finished() noexcept;

  [[nodiscard]] driver& driver_of(driver_kind kind, std::unique_ptr<driver> (*make)(runtime_core&));
  void stop_all() noexcept;
  [[nodiscard]] runtime_counts counts() const noexcept;

  [[nodiscard]] const config& settings() const noexcept { return settings_; }
  [[nodiscard]] unsigned scheduler_count() const noexcept { return settings_.schedulers; }
  // default_stack_kib is the size of a stack that a spawn does not name, in KiB, a power of two.
  [[nodiscard]] std::uint32_t default_stack_kib() const noexcept { return default_stack_kib_; }
  [[nodiscard]] scheduler& scheduler_at(unsigned index) noexcept { return *schedulers_[index]; }
  [[nodiscard]] run_life& life() noexcept { return life_; }
  // work stands from create to destroy.
  [[nodiscard]] workplace& work() noexcept { return *work_; }
  [[nodiscard]] stack_pool& stacks() noexcept { return *stacks_; }

  // take_last_stack lends the stack that is kept for the end of an actor for which memory has none;
  // empty: it is lent. Any scheduler.
  [[nodiscard]] stack_span take_last_stack() noexcept;
  void give_last_stack_back() noexcept;
  // no_stack_reason is why an actor ended for which there was no stack.
  [[nodiscard]] exit_reason no_stack_reason(std::error_code why) const noexcept;

  atomic<std::size_t> fd_waiters{0};  // a count for counts(); relaxed everywhere

 private:
  friend struct core_pool;

  enum class gate : std::uint32_t { waiting, opened, called_off };

  runtime_core() = default;
  ~runtime_core() = default;
  void build(const config& how);
  void take_down() noexcept;
  void scheduler_thread(unsigned index) noexcept;
  void open_gate(gate how) noexcept;
  void await_pins() noexcept;
  [[nodiscard]] static std::errc refusal(run_life::admission verdict) noexcept;

  bool look_at_drivers() noexcept override;
  std::int64_t return_surplus(std::int64_t now_ns) noexcept override;

  config settings_;
  std::uint32_t default_stack_kib_ = 0;  // constant while the parts stand
  std::unique_ptr<workplace> work_;
  std::unique_ptr<stack_pool> stacks_;
  stack_span last_stack_;  // of stacks_; constant while the parts stand
  atomic<bool> last_stack_lent_{false};
  exit_reason no_memory_;  // no_stack_reason's, made while there was memory; constant
  std::vector<std::unique_ptr<scheduler>> schedulers_;
  std::vector<std::thread> threads_;  // schedulers 1 and up, while claimed

  // Guards making a driver. No leaf: making one allocates and starts a thread. Never held at a
  // park, nor while a driver is shut down.
  std::mutex drivers_lock_;
  // Written once a run under drivers_lock_ (release), read without it (acquire).
  atomic<driver*> drivers_[driver_kinds]{};

  atomic<bool> claimed_{false};
  atomic<std::uint32_t> gate_{0};  // a futex word of gate

  run_life life_;
  runtime_core* next_free_ = nullptr;  // guarded by the pool's lock
};

}  // namespace smarm::detail
