// thread_parker is what a foreign thread blocks on: the thread's stand-in for an actor's slot.
//
// Invariants
//   1. Type-stable: parkers are made on first use, given back when their thread ends, used again
//      and never freed. A waker that is called late so finds live memory and an epoch that passed.
//   2. word_ = epoch * 2 + woken. A wake is the compare-exchange of its own epoch from 0 to 1.
// Threads: begin_wait and park by the thread that has it; wake by anybody.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace smarm::detail {

class thread_parker {
 public:
  // of_this_thread is the calling thread's parker, made or reused on its first call. Aborts with
  // one line if there is no memory for it: a wait cannot report that.
  [[nodiscard]] static thread_parker& of_this_thread() noexcept;

  // begin_wait opens a new epoch and returns it.
  [[nodiscard]] std::uint32_t begin_wait() noexcept;

  // park blocks until the epoch's wake: true; or until the deadline: false.
  bool park(std::uint32_t epoch, std::int64_t deadline_ns) noexcept;

  // wake ends the wait of that epoch if it is still the open one.
  void wake(std::uint32_t epoch) noexcept;

 private:
  friend struct thread_parker_pool;

  atomic<std::uint32_t> word_{0};
  thread_parker* next_ = nullptr;  // guarded by the pool's lock
};

}  // namespace smarm::detail
