// Parkers for foreign threads, and the pool that keeps them alive for late wakers.
#include "sched/thread_parker.hpp"

#include <pthread.h>

#include <new>

#include "base/assert.hpp"
#include "base/futex.hpp"
#include "base/perturb.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/current.hpp"

namespace smarm::detail {

// thread_parker_pool keeps the parkers of threads that have ended for the next ones.
struct thread_parker_pool {
  raw_mutex lock;  // leaf; guards free
  thread_parker* free = nullptr;
  pthread_key_t at_thread_end{};  // written once, before its first use
  bool has_key = false;           // guarded by lock

  static void give_back(void* parker) noexcept;
  [[nodiscard]] thread_parker* take() noexcept;
};

namespace {

constinit thread_parker_pool pool;

}  // namespace

void thread_parker_pool::give_back(void* parker) noexcept {
  auto* const mine = static_cast<thread_parker*>(parker);
  current_thread().parker = nullptr;
  const raw_guard guard(pool.lock);
  mine->next_ = pool.free;
  pool.free = mine;
}

thread_parker* thread_parker_pool::take() noexcept {
  thread_parker* taken = nullptr;
  {
    const raw_guard guard(lock);
    if (!has_key) {
      if (pthread_key_create(&at_thread_end, &give_back) != 0) return nullptr;
      has_key = true;
    }
    taken = free;
    if (taken != nullptr) free = taken->next_;
  }
  if (taken == nullptr) taken = new (std::nothrow) thread_parker;
  if (taken != nullptr && pthread_setspecific(at_thread_end, taken) != 0) return nullptr;
  return taken;
}

thread_parker& thread_parker::of_this_thread() noexcept {
  thread_state& here = current_thread();
  if (here.parker == nullptr) {
    here.parker = pool.take();
    if (here.parker == nullptr) fatal("no memory for a thread's first wait");
  }
  return *static_cast<thread_parker*>(here.parker);
}

std::uint32_t thread_parker::begin_wait() noexcept {
  // Wraps after 2^31 waits of one thread; only a waker that is just being called could notice.
  // relaxed: the epoch is published by the lock or exchange that publishes the registration.
  const std::uint32_t epoch = (word_.load(relaxed) / 2 + 1) & 0x7fffffff;
  word_.store(epoch * 2, relaxed);  // relaxed: as above
  return epoch;
}

bool thread_parker::park(std::uint32_t epoch, std::int64_t deadline_ns) noexcept {
  for (;;) {
    // acquire: pairs with wake's release: what the waker wrote before is visible.
    if (word_.load(acquire) == epoch * 2 + 1) return true;
    perturb(perturb_point::permit_park);
    if (futex_wait(word_, epoch * 2, deadline_ns) == futex_result::timed_out) {
      return word_.load(acquire) == epoch * 2 + 1;  // a wake may have come just now; as above
    }
  }
}

void thread_parker::wake(std::uint32_t epoch) noexcept {
  std::uint32_t expected = epoch * 2;
  perturb(perturb_point::permit_wake);
  // release: pairs with park's acquire.
  if (word_.compare_exchange_strong(expected, epoch * 2 + 1, release, relaxed)) {
    perturb(perturb_point::permit_wake);
    futex_wake(word_, 1);
  }
}

}  // namespace smarm::detail
