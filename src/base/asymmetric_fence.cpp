// The kernel's half of the asymmetric fences.
#include "base/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace smarm::detail {

namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

bool kernel_takes_part() noexcept {
  const long known = membarrier(MEMBARRIER_CMD_QUERY);
  return known >= 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

void prepare_asymmetric_fences() noexcept {
  // Once: a later yes would leave threads about that take the light fence for a full one.
  static const bool is_ready = [] {
    const bool yes = kernel_takes_part();
    kernel_fences.store(yes, relaxed);  // relaxed: the start of a thread publishes it
    return yes;
  }();
  static_cast<void>(is_ready);
}

bool fence_heavy() noexcept {
  fence(seq_cst);
  // relaxed: decided before this thread started.
  return !kernel_fences.load(relaxed) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

}  // namespace smarm::detail
