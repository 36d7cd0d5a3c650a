// mutex is a lock that parks the actor that waits for it, not the thread under it.
//
// It fits std::unique_lock, std::lock_guard and std::scoped_lock. An actor may park, sleep and send
// while it holds one. Waiters get it in the order they came; an actor that runs may overtake them
// until the first has waited for a millisecond, and then the lock is handed to that one directly.
//
// Threads: any, actor or not; lock blocks a thread that is no actor. Not recursive.
#pragma once

#include <chrono>
#include <cstddef>

#include <smarm/deadline.hpp>
#include <smarm/errors.hpp>

namespace smarm {

namespace detail {
class mutex_core;
}  // namespace detail

class mutex {
 public:
  mutex() noexcept;
  // Aborts the program where the mutex is locked or waited for.
  ~mutex();
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // lock waits until the mutex is the caller's. Parks; a stop point on entry and while parked: left
  // by a stop, the mutex is not the caller's. Locking it twice is misuse, thrown in debug builds.
  void lock();

  // try_lock takes the mutex if it is free, waiters or not. Never parks; no stop point.
  [[nodiscard]] bool try_lock() noexcept;

  // try_lock_until gives up at the deadline; otherwise as lock.
  [[nodiscard]] bool try_lock_until(deadline until);
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> duration) {
    return try_lock_until(deadline(duration));
  }

  // unlock gives the mutex back. Only its holder may; another caller is misuse, thrown in debug
  // builds. Never parks; no stop point.
  void unlock();

 private:
  friend class condition_variable;
  [[nodiscard]] detail::mutex_core& core() noexcept;
  [[nodiscard]] inline bool take(deadline until);

  alignas(8) std::byte core_[32];  // holds the mutex_core, whose type is no user's business
};

}  // namespace smarm
