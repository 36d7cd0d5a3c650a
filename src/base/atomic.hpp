// atomic is the one door through which the project reaches atomic memory.
//
// Everything concurrent uses the names below and nothing from <atomic>; a model checker can so put
// its own in their place: SMARM_MODEL names a header (with its quotes) that defines the same names,
// and no other file changes.
//
// Why the fence is written by hand: on x86-64 clang makes `mfence` of a seq_cst fence, which costs
// eight times what a locked read-modify-write of the stack's top line costs and orders no more of
// what we use (ordinary write-back memory). Both compilers get the cheap form here.
// ThreadSanitizer does not model fences at all: under it a protocol that rests on one is only run,
// not judged. The standard fence stands there so that the program at least behaves the same.
#pragma once

#ifdef SMARM_MODEL
#include SMARM_MODEL
#else

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define SMARM_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SMARM_THREAD_SANITIZER 1
#endif
#endif

namespace smarm::detail {

template <class T>
using atomic = std::atomic<T>;

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr std::memory_order seq_cst = std::memory_order_seq_cst;

// fence orders this thread's accesses around it as `order` says. Any thread.
[[gnu::always_inline]] inline void fence(std::memory_order order) noexcept {
#if defined(__x86_64__) && !defined(SMARM_THREAD_SANITIZER)
  if (order == seq_cst) {
    // Adds nothing to the word at the stack's top: that line is ours alone and in the first cache.
    asm volatile("lock orq $0, (%%rsp)" ::: "memory", "cc");
    return;
  }
#endif
  std::atomic_thread_fence(order);
}

// pause tells the processor that this thread spins, so that its sibling gets the execution units.
// For loops that end only when somebody else has moved; a loop that gives up says relax.
[[gnu::always_inline]] inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` is a no-op on most cores; an instruction barrier is the delay that others settled on.
  asm volatile("isb" ::: "memory");
#endif
}

// relax is pause in a loop that gives up after spin_limit(n) looks. Both have names of their own
// because a checker has to know which loops wait, and needs no second look in the others.
[[gnu::always_inline]] inline void relax() noexcept { pause(); }
constexpr int spin_limit(int looks) noexcept { return looks; }
// few_in_models is a size that a model has as small as it can be, so that it comes round.
constexpr unsigned few_in_models(unsigned size, unsigned) noexcept { return size; }

}  // namespace smarm::detail

#endif  // SMARM_MODEL
