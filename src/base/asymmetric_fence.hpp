// fence_light and fence_heavy are the two halves of a store-buffer story of which one side comes
// by each few nanoseconds and the other hardly ever: the light one costs nothing, the heavy one
// makes it up by a system call.
//
// A light fence is ordered with each heavy one of another thread as two seq_cst fences would be: of
// W(x) light R(y) here and W(y) heavy R(x) there, one sees the other. It orders nothing else: not
// with another light fence, not with a seq_cst one, and it is no acquire and no release. A heavy
// fence is a seq_cst one as well. (C++ proposal P1202; membarrier(2),
// MEMBARRIER_CMD_PRIVATE_EXPEDITED: the kernel has each CPU that runs a thread of ours pass a full
// barrier before the call returns, and the light side keeps the compiler from moving accesses.)
//
// Where the kernel has no such call (before 4.14, or it is forbidden to us) both are seq_cst
// fences. Threads: any. prepare_asymmetric_fences comes before the first fence of a thread that it
// matters to, by the start of threads; so all agree on what a light fence is.
#pragma once

#include "base/atomic.hpp"

namespace smarm::detail {

#ifndef SMARM_MODEL

// prepare_asymmetric_fences asks the kernel whether it does its part; the first answer holds for
// the process. Any thread, any number of times; before the runtime's schedulers are started.
void prepare_asymmetric_fences() noexcept;

inline atomic<bool> kernel_fences{false};

[[gnu::always_inline]] inline void fence_light() noexcept {
  // relaxed: decided before this thread was started.
  if (kernel_fences.load(relaxed)) [[likely]] {
    asm volatile("" ::: "memory");
  } else {
    fence(seq_cst);
  }
}

// fence_heavy tells whether it is one: false where the kernel has agreed before and refuses now (a
// sandbox that the process has entered meanwhile, no memory). Then no light fence has been ordered.
[[nodiscard]] bool fence_heavy() noexcept;

#endif

}  // namespace smarm::detail
