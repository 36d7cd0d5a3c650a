// clock is the runtime's only notion of time: nanoseconds of CLOCK_MONOTONIC, from one epoch with
// std::chrono::steady_clock, as a plain 64-bit integer.
//
// A deadline is such a point in time and stays one from the caller down to the system call; nothing
// on the way turns it into a relative or a coarser number. never_ns stands for "no deadline", and
// arithmetic saturates there, so that a huge timeout does not wrap into the past.
#pragma once

#include <time.h>

#include <cstdint>

namespace smarm::detail {

inline constexpr std::int64_t never_ns = INT64_MAX;
inline constexpr std::int64_t ns_per_second = 1'000'000'000;

// monotonic_ns returns the present time. Any thread; about 20 ns, no system call.
[[nodiscard]] inline std::int64_t monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // Fails only for a bad clock id or address.
  return static_cast<std::int64_t>(now.tv_sec) * ns_per_second + now.tv_nsec;
}

// coarse_monotonic_ns is never later than monotonic_ns, and earlier by a tick of the kernel: 1 to
// 10 ms, as it was built; more only where the CPU that keeps the time is held up. Any thread; about
// 6 ns.
[[nodiscard]] inline std::int64_t coarse_monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // As above.
  return static_cast<std::int64_t>(now.tv_sec) * ns_per_second + now.tv_nsec;
}
// The longest such tick.
inline constexpr std::int64_t coarse_tick_max_ns = 10'000'000;

// add_saturating returns time + duration, never_ns instead of an overflow, INT64_MIN below.
[[nodiscard]] constexpr std::int64_t add_saturating(std::int64_t time_ns,
                                                    std::int64_t duration_ns) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(time_ns, duration_ns, &sum)) {
    return sum;
  }
  return duration_ns > 0 ? never_ns : INT64_MIN;
}

}  // namespace smarm::detail
