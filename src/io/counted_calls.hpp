// What the tests of src/io count of the system calls of this process: attempts, where a clock would
// only tell how busy the machine is.
#pragma once

#include "base/atomic.hpp"

namespace smarm::test {

// call_counts are totals since the process began. Under ThreadSanitizer, which has its own way into
// these calls, nothing is counted: see counts_calls.
struct call_counts {
  detail::atomic<long> accepts{0};               // accept4
  detail::atomic<long> sends{0};                 // send and sendmsg
  detail::atomic<long> epoll_waits{0};           // epoll_wait
  detail::atomic<long> sockets_open_on_exec{0};  // sockets made without SOCK_CLOEXEC
};

[[nodiscard]] call_counts& counted_calls() noexcept;

// hold_next_report stops the thread that watches once the kernel has told it something, before it
// can tell anybody, until release_report. Under ThreadSanitizer nothing is held.
void hold_next_report() noexcept;
[[nodiscard]] bool is_report_held() noexcept;
void release_report() noexcept;

#ifdef SMARM_THREAD_SANITIZER
inline constexpr bool counts_calls = false;
#else
inline constexpr bool counts_calls = true;
#endif

}  // namespace smarm::test
