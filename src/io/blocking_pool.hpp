// blocking_pool runs jobs that block their thread, while the actor that asked is parked.
//
// Invariants
//   1. Jobs begin in the order in which they came. A job is queued (withdrawn by whoever takes it
//      out of the queue under the lock), then running, then done.
//   2. There is a thread for each queued job or the limit is reached: one that was called from the
//      idle stack, one that has just ended a job and looks at the queue next, or a new one.
//   3. An operation is outstanding from before a job is queued until it was withdrawn or has run,
//      so the runtime does not end before; the thread that ran it wakes the actor first and then
//      declares it finished, and touches nothing of the job after it has let go of the lock.
//   4. At most one thread that has ended is yet to be joined: each joins the one before.
// Threads: run and run_detachable by actors; the rest on the pool's own.
//
// Why idle threads are a stack: the one that was idle last has the warmest caches, and the ones at
// the bottom come to the end of their time, so the pool shrinks to what is needed.
// LIMIT: config::blocking_threads_max threads; jobs beyond wait in the queue, which has no limit of
// its own: each entry is an actor that waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include <smarm/deadline.hpp>

#include "base/atomic.hpp"
#include "base/intrusive_list.hpp"
#include "base/raw_mutex.hpp"
#include "sched/driver.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

// pool_job is one thing to run. It lives with its submitter; one that may be left behind is shared.
class pool_job : public list_link {
 public:
  virtual ~pool_job() = default;
  // run is called at most once, on a thread of the pool.
  virtual void run() noexcept = 0;

 private:
  friend class blocking_pool;
  enum class job_state : std::uint8_t {
    idle,     // not with the pool
    queued,   // in the queue
    running,  // a thread of the pool runs it
    done,     // it has run; the pool has forgotten it
  };

  job_state state_ = job_state::idle;  // guarded by the pool's lock, as the next two
  waker wake_;                         // who waits for it; empty: nobody any more
  std::shared_ptr<pool_job> kept_;     // keeps a job alive that was left behind
};

class blocking_pool final : public driver {
 public:
  explicit blocking_pool(runtime_core& runtime);
  ~blocking_pool() override;

  // run returns when the job has run. A stop withdraws it while it is queued and otherwise takes
  // effect at the end. Throws, with the job withdrawn, where there is no thread and none can
  // be started. PARKS; a stop point.
  void run(pool_job& job);

  // run_detachable as run, but the deadline or a stop also leaves a running job behind. True: the
  // job has run.
  [[nodiscard]] bool run_detachable(const std::shared_ptr<pool_job>& job, deadline until);

 private:
  struct worker : list_link {
    atomic<std::uint32_t> called{0};  // 1: leave the idle stack. Written by callers, once each time
    std::thread thread;
  };

  void submit(pool_job& job, std::shared_ptr<pool_job> kept);
  [[nodiscard]] worker* call_worker(pool_job& job);
  void start_worker();
  void withdraw(pool_job& job) noexcept;
  void wait_to_the_end(pool_job& job) noexcept;
  bool leave_behind(pool_job& job) noexcept;

  void work(worker& self) noexcept;
  void run_job(pool_job& job) noexcept;
  [[nodiscard]] bool wait_for_call(worker& self) noexcept;
  void end(worker& self) noexcept;

  runtime_core& runtime_;
  const unsigned threads_max_;
  const std::chrono::nanoseconds idle_max_;

  raw_mutex lock_;                      // protects all below
  intrusive_list<pool_job> queue_;      // first come, first served
  unsigned queued_ = 0;                 // length of queue_
  unsigned coming_ = 0;                 // threads called or done with a job, on the way to queue_
  intrusive_list<worker> idle_;         // the last to become idle in front
  unsigned threads_ = 0;                // that are being started, run, or can be called
  bool stopping_ = false;               // set once, by the destructor
  std::unique_ptr<worker> last_ended_;  // to be joined by the next that ends, or the destructor

  // Threads that have yet to join the one before them; the destructor sleeps on it.
  atomic<std::uint32_t> alive_{0};
};

// blocking_pool_of returns the pool of the caller's runtime, made on first use. Called by actors.
[[nodiscard]] blocking_pool& blocking_pool_of(runtime_core& runtime);

}  // namespace smarm::detail
