// Building a runtime, running it, and the count that tells when it is over.
#include "sched/runtime_core.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/assert.hpp"
#include "base/asymmetric_fence.hpp"
#include "base/cpu_limit.hpp"
#include "base/futex.hpp"
#include "fiber/overflow.hpp"
#include "sched/lookup.hpp"
#include "sched/scheduler.hpp"
#include "sched/slot_table.hpp"

namespace smarm::detail {

// core_pool keeps the cores that no runtime uses at present (invariant 1 of runtime_core).
struct core_pool {
  raw_mutex lock;  // leaf; guards free
  runtime_core* free = nullptr;

  runtime_core& take() {
    {
      const raw_guard guard(lock);
      if (runtime_core* const core = free) {
        free = core->next_free_;
        return *core;
      }
    }
    return *new runtime_core;
  }
  void give(runtime_core& core) noexcept {
    const raw_guard guard(lock);
    core.next_free_ = free;
    free = &core;
  }
};

namespace {

constinit core_pool cores;

template <class T>
void check_range(const char* field, T value, T low, T high) {
  if (value >= low && value <= high) return;
  throw config_error(std::string("smarm::config::") + field + " is " + std::to_string(value) +
                     "; allowed is " + std::to_string(low) + " to " + std::to_string(high));
}

config checked(config how) {
  check_range("schedulers", how.schedulers, 0U, 1024U);
  check_range("stack_size", how.stack_size, stack_size_min, stack_size_max);
  check_range("max_actors", how.max_actors, std::size_t{1}, std::size_t{1} << 26);
  check_range("blocking_threads_max", how.blocking_threads_max, 1U, 4096U);
  check_range<std::int64_t>("blocking_idle (ms)", how.blocking_idle.count(), 0, 3'600'000);
  check_range("run_queue", static_cast<int>(how.run_queue), 0,
              static_cast<int>(run_queue_kind::local));
  if (how.schedulers == 0) how.schedulers = std::min(default_schedulers(), 1024U);
  return how;
}

// What a failed assertion and the overflow report say of who was running.
void describe_running(char* buffer, std::size_t size) {
  const slot* const self = scheduler::current_slot();
  if (self == nullptr || self->body == nullptr) {
    if (size > 0) buffer[0] = '\0';
    return;
  }
  std::snprintf(buffer, size, "%u.%u \"%s\"", self->index, self->generation,
                self->body->name.c_str());
}

bool describe_stack(stack_span& stack, char* buffer, std::size_t size) noexcept {
  const slot* const self = scheduler::current_slot();
  if (self == nullptr) return false;
  stack = self->context.stack;
  char who[128];
  describe_running(who, sizeof who);
  std::snprintf(buffer, size, "actor %s", who);
  return true;
}

// Blocks, for a scheduler's thread, the signals that are meant for the process: whoever handles
// them must not run on an actor's stack. Faults of the thread itself stay deliverable.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

// Lets the kernel wake this thread's sleeps at the nanosecond asked for, and puts back what was
// there: the thread that calls run() is the user's.
class prompt_timers {
 public:
  prompt_timers() noexcept : before_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  ~prompt_timers() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_), 0, 0, 0);
  }
  prompt_timers(const prompt_timers&) = delete;
  prompt_timers& operator=(const prompt_timers&) = delete;

 private:
  int before_;
};

}  // namespace

runtime_core& runtime_core::create(const config& how) {
  const config settings = checked(how);
  set_assert_context(&describe_running);
  install_overflow_handler(&describe_stack);
  runtime_core& core = cores.take();
  try {
    core.build(settings);
  } catch (...) {
    core.take_down();
    cores.give(core);
    throw;
  }
  return core;
}

namespace {

exit_reason no_stack(std::error_code why) {
  return exit_reason::error(std::make_exception_ptr(
      std::system_error(why, "smarm: no stack for a new actor (memory or vm.max_map_count)")));
}

}  // namespace

void runtime_core::build(const config& how) {
  settings_ = how;
  default_stack_kib_ = static_cast<std::uint32_t>(std::bit_ceil(how.stack_size) >> 10);
  work_ = std::make_unique<workplace>(how, usable_cpus(), life_, static_cast<idle_duties&>(*this));
  stacks_ = std::make_unique<stack_pool>();
  const auto last = stacks_->acquire(stack_size_default);
  if (!last) throw std::system_error(last.error(), "smarm::runtime: no memory for a stack");
  last_stack_ = *last;
  no_memory_ = no_stack(std::make_error_code(std::errc::not_enough_memory));
  schedulers_.reserve(how.schedulers);
  for (unsigned i = 0; i < how.schedulers; ++i) {
    schedulers_.push_back(std::make_unique<scheduler>(*this, i));
    work_->pickers.push_back(schedulers_.back().get());
  }
}

void runtime_core::destroy(runtime_core& core) noexcept {
  if (core.claimed_.load(acquire)) {  // pairs with end_claim: the run is over if it is false
    fatal("a runtime was destroyed while run() was going on");
  }
  // Spawns from outside must fail from here on, and then what they have queued is ended.
  core.life_.close();
  while (slot* const queued = core.work_->queue.pop(0, 1).first) {
    queued->state.try_claim();
    scheduler::end_unstarted(*queued, exit_reason::stopped());
    core.schedulers_[0]->give_slot(*queued);
    core.life_.discharge();
  }
  core.take_down();
  cores.give(core);
}

void runtime_core::take_down() noexcept {
  await_pins();
  schedulers_.clear();
  work_.reset();
  no_memory_ = {};
  if (!last_stack_.empty()) stacks_->release(std::exchange(last_stack_, {}));
  stacks_.reset();
  life_.reset();
}

void runtime_core::await_pins() noexcept {
  while (life_.is_pinned()) std::this_thread::yield();
}

// ---- one run ---------------------------------------------------------------------------------

void runtime_core::claim() {
  if (scheduler::current() != nullptr) throw misuse("smarm::runtime::run: called by an actor");
  // acquire: pairs with end_claim: a former run has been cleared up.
  if (claimed_.exchange(true, acquire)) {
    throw misuse("smarm::runtime::run: this runtime is running already");
  }
  gate_.store(static_cast<std::uint32_t>(gate::waiting), relaxed);  // relaxed: thread start orders
  prepare_asymmetric_fences();
  try {
    const signals_blocked block;
    threads_.reserve(settings_.schedulers);
    for (unsigned i = 1; i < settings_.schedulers; ++i) {
      threads_.emplace_back([this, i] { scheduler_thread(i); });
    }
  } catch (...) {
    end_claim();
    throw;
  }
}

void runtime_core::scheduler_thread(unsigned index) noexcept {
  const std::string name = "smarm/" + std::to_string(index);
  pthread_setname_np(pthread_self(), name.c_str());
  const auto waiting = static_cast<std::uint32_t>(gate::waiting);
  while (gate_.load(acquire) == waiting) {  // pairs with open_gate
    (void)futex_wait(gate_, waiting);
  }
  if (gate_.load(relaxed) == static_cast<std::uint32_t>(gate::called_off)) return;  // relaxed: read
  const prompt_timers prompt;
  schedulers_[index]->run();
}

void runtime_core::open_gate(gate how) noexcept {
  gate_.store(static_cast<std::uint32_t>(how), release);  // pairs with scheduler_thread
  futex_wake(gate_, INT32_MAX);
}

void runtime_core::run() noexcept {
  open_gate(gate::opened);
  {
    const prompt_timers prompt;
    schedulers_[0]->run();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // The drivers' threads are joined here, with no lock held that they could want.
  for (atomic<driver*>& made : drivers_) {
    delete made.exchange(nullptr, acquire);  // pairs with driver_of
  }
  await_pins();
  work_->timers.drop_alarms();
  SMARM_ASSERT(work_->timers.size() == 0, "no timer outlives the actors of a run",
               work_->timers.size());
}

void runtime_core::end_claim() noexcept {
  if (!threads_.empty()) {
    open_gate(gate::called_off);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  life_.reopen();
  claimed_.store(false, release);  // pairs with claim and destroy
}

// ---- counts and the verdict ------------------------------------------------------------------

std::errc runtime_core::refusal(run_life::admission verdict) noexcept {
  return verdict == run_life::admission::ended ? std::errc::operation_canceled
                                               : std::errc::resource_unavailable_try_again;
}

exit_reason runtime_core::no_stack_reason(std::error_code why) const noexcept {
  try {
    return no_stack(why);
  } catch (...) {
    return no_memory_;  // to make the exception takes memory too
  }
}

stack_span runtime_core::take_last_stack() noexcept {
  // acquire: pairs with give_last_stack_back: who had it has left it.
  return last_stack_lent_.exchange(true, acquire) ? stack_span{} : last_stack_;
}

void runtime_core::give_last_stack_back() noexcept {
  last_stack_lent_.store(false, release);  // pairs with take_last_stack
}

void runtime_core::operation_finished() noexcept {
  if (life_.operation_finished()) work_->sleepers.wake_all();
}

std::int64_t runtime_core::return_surplus(std::int64_t now_ns) noexcept {
  return stacks_->decay(now_ns);
}

driver& runtime_core::driver_of(driver_kind kind, std::unique_ptr<driver> (*make)(runtime_core&)) {
  atomic<driver*>& made = drivers_[static_cast<int>(kind)];
  if (driver* const present = made.load(acquire)) return *present;  // pairs with the store below
  const std::scoped_lock guard(drivers_lock_);
  if (driver* const present = made.load(relaxed)) return *present;  // relaxed: under the lock
  const signals_blocked block;
  driver* const fresh = make(*this).release();
  made.store(fresh, release);  // publishes the driver
  return *fresh;
}

bool runtime_core::look_at_drivers() noexcept {
  // acquire: pairs with driver_of.
  driver* const watcher = drivers_[static_cast<int>(driver_kind::fd)].load(acquire);
  return watcher != nullptr && watcher->look();
}

void runtime_core::stop_all() noexcept {
  slot_table& table = slot_table::instance();
  const std::uint32_t size = table.size();
  for (std::uint32_t index = 0; index < size; ++index) {
    slot* const at = table.find(index);
    const slot_word now = at->state.status();
    // relaxed: behind status's acquire, as in find_slot.
    if (!now.is_live() || at->owner.load(relaxed) != this) continue;
    (void)stop_slot(*at, now.generation());
  }
}

runtime_counts runtime_core::counts() const noexcept {
  const stack_pool::counters stacks = stacks_->count();
  runtime_counts now;
  now.actors = life_.actors();
  for (const auto& each : schedulers_) now.actors -= std::min(now.actors, each->spare_counts());
  // relaxed: a count. The last stack is the runtime's own unless it is lent.
  now.stacks_in_use = stacks.in_use - (last_stack_lent_.load(relaxed) ? 0 : 1);
  now.stacks_cached = stacks.cached;
  now.timers = work_->timers.size();
  now.fd_waiters = fd_waiters.load(relaxed);  // relaxed: a count
  now.io_outstanding = life_.operations();
  now.scheduler_wakes = work_->sleepers.wakes();
  for (const auto& each : schedulers_) now.migrations += each->migrations();
  return now;
}

}  // namespace smarm::detail
