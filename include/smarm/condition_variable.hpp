// condition_variable waits, under a smarm::mutex, until somebody says that things have changed.
//
// As std::condition_variable, but for actors: the wait parks, and it is a stop point. Waiters are
// woken in the order they came. There are no spurious wake-ups, but another may have come first, so
// the predicate forms are the ones to use.
//
// However a wait is left, the caller holds the mutex again, exactly once: also when a stop unwinds
// it. A notify_one that a stopped waiter had taken is passed on to the next one.
//
// Threads: any, actor or not; wait blocks a thread that is no actor.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/mutex.hpp>

namespace smarm {

class condition_variable {
 public:
  condition_variable() noexcept;
  // Aborts the program where somebody still waits.
  ~condition_variable();
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  // notify_one and notify_all wake waiters; with or without the mutex held. Never park; no stop
  // points.
  void notify_one() noexcept;
  void notify_all() noexcept;

  // wait unlocks, waits for a notification, and locks again. Parks; a stop point on entry and while
  // parked. A lock that holds no mutex is misuse.
  void wait(std::unique_lock<mutex>& lock) { (void)wait_until(lock, deadline::never()); }
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }

  // wait_until gives up at the deadline.
  std::cv_status wait_until(std::unique_lock<mutex>& lock, deadline until);
  template <class Predicate>
  bool wait_until(std::unique_lock<mutex>& lock, deadline until, Predicate predicate) {
    while (!predicate()) {
      if (wait_until(lock, until) == std::cv_status::timeout) return predicate();
    }
    return true;
  }

  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock,
                          std::chrono::duration<Rep, Period> duration) {
    return wait_until(lock, deadline(duration));
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> duration,
                Predicate predicate) {
    return wait_until(lock, deadline(duration), std::move(predicate));
  }

 private:
  alignas(8) std::byte core_[24];  // holds the wait list, whose type is no user's business
};

}  // namespace smarm
