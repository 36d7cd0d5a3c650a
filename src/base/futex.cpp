// futex: the two system calls, with their errors turned into a verdict.
#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"

namespace smarm::detail {

static_assert(sizeof(atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "the kernel reads the atomic as a plain 32-bit word");

futex_result futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::int64_t deadline_ns) noexcept {
  timespec deadline;
  timespec* deadline_pointer = nullptr;
  if (deadline_ns != never_ns) {
    const std::int64_t time_ns = std::max<std::int64_t>(deadline_ns, 0);
    deadline.tv_sec = static_cast<time_t>(time_ns / ns_per_second);
    deadline.tv_nsec = static_cast<long>(time_ns % ns_per_second);
    deadline_pointer = &deadline;
  }
  const int saved_errno = errno;
  // WAIT_BITSET and not WAIT: its deadline is absolute, so a repeated wait does not stretch it.
  const long status = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                              deadline_pointer, nullptr, FUTEX_BITSET_MATCH_ANY);
  const int error = status == 0 ? 0 : errno;
  errno = saved_errno;
  switch (error) {
    case 0:
      return futex_result::woken;
    case EAGAIN:
      return futex_result::value_changed;
    case ETIMEDOUT:
      return futex_result::timed_out;
    case EINTR:
      return futex_result::interrupted;
    default:
      break;
  }
  SMARM_ASSERT(false, "a futex wait fails only by a changed value, time or a signal", error, &word,
               deadline_ns);
}

int futex_wake(atomic<std::uint32_t>& word, int count) noexcept {
  const int saved_errno = errno;
  // SAFETY: the waiter may have freed the word by now (it saw the value change before this call).
  // The kernel only hashes the address; at worst a later user of it wakes for no reason.
  const long woken =
      syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
  errno = saved_errno;
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace smarm::detail
