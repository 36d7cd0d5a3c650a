// futex puts a thread to sleep until a word changes, and wakes it: the kernel's primitive, with
// absolute monotonic deadlines exact to the nanosecond.
//
// Threads: any. The word is private to the process. Both calls leave errno as it was, because an
// actor may be looking at its own.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/clock.hpp"

namespace smarm::detail {

enum class futex_result : std::uint8_t {
  woken,          // by a wake, or for no reason: the caller looks at its word again
  value_changed,  // the word was not `expected`: never slept
  timed_out,      // the deadline has passed
  interrupted,    // a signal handler ran
};

// futex_wait sleeps while `word` holds `expected`, at most until `deadline_ns`. Blocks the thread.
[[nodiscard]] futex_result futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                                      std::int64_t deadline_ns = never_ns) noexcept;

// futex_wake wakes at most `count` sleepers of `word` and returns how many it woke.
int futex_wake(atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace smarm::detail
