// semaphore is a number of permits: acquire takes one or waits, release puts some back.
//
// Waiters get permits in the order they came, by direct hand-over: nobody overtakes them. A waiter
// that is stopped or times out has taken none, or has put back the one it was just handed.
//
// Threads: any, actor or not; acquire blocks a thread that is no actor.
#pragma once

#include <chrono>
#include <cstddef>

#include <smarm/deadline.hpp>
#include <smarm/errors.hpp>

namespace smarm {

class semaphore {
 public:
  // max() is how many permits a semaphore can hold; more is misuse, at the start and at release.
  [[nodiscard]] static constexpr std::size_t max() noexcept { return (std::size_t{1} << 62) - 1; }

  explicit semaphore(std::size_t permits);
  // Aborts the program where somebody still waits.
  ~semaphore();
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  // acquire takes a permit. Parks; a stop point on entry and while parked.
  void acquire();

  // try_acquire takes a permit if one is free and nobody waits. Never parks; no stop point.
  [[nodiscard]] bool try_acquire() noexcept;

  // try_acquire_until gives up at the deadline; otherwise as acquire.
  [[nodiscard]] bool try_acquire_until(deadline until);
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> duration) {
    return try_acquire_until(deadline(duration));
  }

  // release puts permits back, whoever took them. Never parks; no stop point.
  void release(std::size_t permits = 1);

  // available is how many permits are free; a hint where others use it. Never parks.
  [[nodiscard]] std::size_t available() const noexcept;

 private:
  alignas(8) std::byte core_[32];  // holds the permits, whose type is no user's business
};

}  // namespace smarm
