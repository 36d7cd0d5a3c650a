// The seam of base/atomic.hpp for the models: the production source, compiled with SMARM_MODEL set
// to this header, does its atomic accesses on the checker's atomics.
//
// Every operation takes the place of its call by a default argument, so a report and a mutation
// name the line of the production source.
#pragma once

#include <atomic>
#include <source_location>

#include "model/atomic.hpp"
#include "model/fence.hpp"

namespace smarm::detail {

template <class T>
using atomic = model::atomic<T>;

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr std::memory_order seq_cst = std::memory_order_seq_cst;

inline void fence(std::memory_order order,
                  std::source_location where = std::source_location::current()) noexcept {
  model::fence(order, where);
}

inline void fence_light(std::source_location where = std::source_location::current()) noexcept {
  model::fence_light(where);
}
inline bool fence_heavy(std::source_location where = std::source_location::current()) noexcept {
  model::fence_heavy(where);
  return true;
}

// pause is in loops without a bound: the checker waits there until what the loop has read changes.
inline void pause(std::source_location where = std::source_location::current()) noexcept {
  model::pause(where);
}

// A loop with a bound looks once: what a later look could see, the first one sees in another
// execution.
inline void relax() noexcept {}
constexpr int spin_limit(int) noexcept { return 1; }
constexpr unsigned few_in_models(unsigned, unsigned few) noexcept { return few; }

}  // namespace smarm::detail
