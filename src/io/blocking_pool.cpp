// The blocking pool; see blocking_pool.hpp.
#include "io/blocking_pool.hpp"

#include <utility>

#include <smarm/blocking.hpp>
#include <smarm/config.hpp>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
#include "io/io_thread.hpp"

namespace smarm::detail {
namespace {

std::unique_ptr<driver> make_pool(runtime_core& runtime) {
  return std::make_unique<blocking_pool>(runtime);
}

// work_job is the job of blocking(f): it lives on the stack of the actor that waits for it.
class work_job final : public pool_job {
 public:
  explicit work_job(blocking_work& work) noexcept : work_(work) {}
  void run() noexcept override { work_.run(); }

 private:
  blocking_work& work_;
};

}  // namespace

blocking_pool::blocking_pool(runtime_core& runtime)
    : runtime_(runtime),
      threads_max_(runtime_config(runtime).blocking_threads_max),
      idle_max_(runtime_config(runtime).blocking_idle) {}

blocking_pool::~blocking_pool() {
  {
    const raw_guard guard(lock_);
    SMARM_ASSERT(queue_.empty(), "a pool ends when no job is outstanding", threads_);
    stopping_ = true;  // who is not idle now sees it instead of becoming idle
    while (worker* const idle = idle_.pop_front()) {
      ++coming_;
      idle->called.store(1, release);  // pairs with wait_for_call
      (void)futex_wake(idle->called, 1);
    }
  }
  for (;;) {
    const std::uint32_t alive = alive_.load(acquire);  // pairs with end
    if (alive == 0) break;
    (void)futex_wait(alive_, alive);
  }
  // Each thread but the last has been joined by the one that ended after it.
  if (last_ended_ != nullptr) last_ended_->thread.join();
}

void blocking_pool::run(pool_job& job) {
  stop_point();
  submit(job, nullptr);
  const struct to_the_end {
    blocking_pool& pool;
    pool_job& job;
    ~to_the_end() { pool.wait_to_the_end(job); }
  } guard{*this, job};
  (void)park(job.wake_, wait_reason::blocking_job);
}

bool blocking_pool::run_detachable(const std::shared_ptr<pool_job>& job, deadline until) {
  stop_point();
  submit(*job, job);
  struct left_behind {
    blocking_pool& pool;
    pool_job* job;
    ~left_behind() {
      if (job != nullptr) pool.leave_behind(*job);
    }
  } guard{*this, job.get()};
  (void)park(job->wake_, wait_reason::blocking_job, until);
  guard.job = nullptr;
  return leave_behind(*job);
}

void blocking_pool::submit(pool_job& job, std::shared_ptr<pool_job> kept) {
  operation_started(runtime_);
  worker* called = nullptr;
  try {
    const raw_guard guard(lock_);
    SMARM_ASSERT(job.state_ == pool_job::job_state::idle, "a job is submitted once", job.state_);
    job.wake_ = begin_wait();
    job.kept_ = std::move(kept);
    job.state_ = pool_job::job_state::queued;
    queue_.push_back(job);
    ++queued_;
    if (queued_ > coming_) called = call_worker(job);
  } catch (...) {
    operation_finished(runtime_);
    throw;
  }
  // SAFETY: the worker may have seen the call and be gone already; then this wakes, by an address
  // nobody dereferences, nobody, or a futex sleeper that looks at its word again.
  if (called != nullptr) (void)futex_wake(called->called, 1);
}

// call_worker sees to it that a thread more comes to the queue, under the lock. It returns the
// worker that is to be woken, null where none is. Throws, with the job withdrawn, where there is no
// thread and none can be started.
blocking_pool::worker* blocking_pool::call_worker(pool_job& job) {
  if (worker* const idle = idle_.pop_front()) {
    ++coming_;
    idle->called.store(1, release);  // pairs with wait_for_call
    return idle;
  }
  if (threads_ >= threads_max_) return nullptr;
  try {
    start_worker();
  } catch (...) {  // no thread, or no memory for what belongs to one
    if (threads_ == 0) {
      withdraw(job);
      job.kept_.reset();
      throw;
    }
    // The threads there are will come to it.
  }
  return nullptr;
}

// start_worker starts a thread, under the lock: the thread must not come to its end before it is
// entered in its worker. Throws std::system_error or std::bad_alloc.
void blocking_pool::start_worker() {
  auto made = std::make_unique<worker>();
  worker& self = *made;
  made->thread = start_io_thread("smarm-blocking", [this, &self] { work(self); });
  // relaxed: only the count matters; the destructor runs after all submitters.
  alive_.fetch_add(1, relaxed);
  ++threads_;
  ++coming_;
  (void)made.release();  // the thread owns it until its end
}

// withdraw takes a queued job back, under the lock.
void blocking_pool::withdraw(pool_job& job) noexcept {
  queue_.erase(job);
  --queued_;
  job.state_ = pool_job::job_state::idle;
}

void blocking_pool::wait_to_the_end(pool_job& job) noexcept {
  for (;;) {
    bool withdrawn = false;
    {
      const raw_guard guard(lock_);
      if (job.state_ == pool_job::job_state::done) return;
      if (job.state_ == pool_job::job_state::queued) {
        withdraw(job);
        withdrawn = true;
      } else {
        job.wake_ = begin_wait();
      }
    }
    if (withdrawn) {
      operation_finished(runtime_);
      return;
    }
    (void)park_through_stop(job.wake_, wait_reason::blocking_job);
  }
}

// leave_behind forgets a job, wherever it is; true: it has run.
bool blocking_pool::leave_behind(pool_job& job) noexcept {
  std::shared_ptr<pool_job> kept;  // dropped outside the lock
  {
    const raw_guard guard(lock_);
    if (job.state_ == pool_job::job_state::done) return true;
    job.wake_ = {};
    if (job.state_ == pool_job::job_state::running) return false;
    withdraw(job);
    kept = std::move(job.kept_);
  }
  operation_finished(runtime_);
  return false;
}

void blocking_pool::work(worker& self) noexcept {
  for (;;) {
    pool_job* job = nullptr;
    {
      const raw_guard guard(lock_);
      --coming_;
      job = queue_.pop_front();
      if (job != nullptr) {
        --queued_;
        job->state_ = pool_job::job_state::running;
      } else if (stopping_) {
        --threads_;
        break;
      } else {
        self.called.store(0, relaxed);  // relaxed: callers write it under the same lock
        idle_.push_front(self);
      }
    }
    if (job != nullptr) {
      run_job(*job);
    } else if (!wait_for_call(self)) {
      break;
    }
  }
  end(self);
}

void blocking_pool::run_job(pool_job& job) noexcept {
  job.run();
  waker wake;
  std::shared_ptr<pool_job> kept;  // goes last: nobody else may hold the job any more
  {
    const raw_guard guard(lock_);
    job.state_ = pool_job::job_state::done;
    wake = job.wake_;
    kept = std::move(job.kept_);
    ++coming_;
  }
  wake.wake();
  operation_finished(runtime_);
}

// wait_for_call sleeps on the idle stack; false: nobody called for blocking_idle, and the worker is
// off the stack and counted out.
bool blocking_pool::wait_for_call(worker& self) noexcept {
  const std::int64_t until = add_saturating(monotonic_ns(), idle_max_.count());
  for (;;) {
    if (self.called.load(acquire) != 0) return true;  // pairs with submit and the destructor
    if (futex_wait(self.called, 0, until) != futex_result::timed_out) continue;
    const raw_guard guard(lock_);
    if (self.called.load(relaxed) != 0) return true;  // relaxed: written under this lock
    // In one step: a submitter that finds nobody idle must not count on who is about to end.
    idle_.erase(self);
    --threads_;
    return false;
  }
}

void blocking_pool::end(worker& self) noexcept {
  std::unique_ptr<worker> before;
  {
    const raw_guard guard(lock_);
    before = std::exchange(last_ended_, std::unique_ptr<worker>(&self));
  }
  if (before != nullptr) before->thread.join();
  // release pairs with the destructor, which joins this thread before the memory goes.
  alive_.fetch_sub(1, release);
  (void)futex_wake(alive_, 1);
}

blocking_pool& blocking_pool_of(runtime_core& runtime) {
  return static_cast<blocking_pool&>(runtime_driver(runtime, driver_kind::blocking, make_pool));
}

void run_blocking(blocking_work& work) {
  runtime_core* const runtime = current_runtime();
  if (runtime == nullptr) {
    work.run();
    return;
  }
  work_job job(work);
  blocking_pool_of(*runtime).run(job);
}

}  // namespace smarm::detail
