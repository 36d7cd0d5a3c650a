// raw_atomic is what base/atomic.hpp is measured by: the standard's own, and nothing around it.
// With SMARM_LOADS_TWICE it is a seam that costs a little, which the comparison has to notice in
// every function, or it would notice nothing.
#pragma once

#include <atomic>

namespace smarm::detail {

#ifdef SMARM_LOADS_TWICE
template <class T>
class atomic : public std::atomic<T> {
 public:
  using std::atomic<T>::atomic;
  T load(std::memory_order order) const noexcept {
    static_cast<void>(std::atomic<T>::load(order));
    return std::atomic<T>::load(order);
  }
};
#else
using std::atomic;
#endif

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

inline void fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}
inline void relax() noexcept { pause(); }
constexpr int spin_limit(int looks) noexcept { return looks; }
constexpr unsigned few_in_models(unsigned size, unsigned) noexcept { return size; }

}  // namespace smarm::detail
