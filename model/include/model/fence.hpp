// fence orders the accesses of a thread; pause and relax are what a loop says that waits.
#pragma once

#include <source_location>

#include "model/thread.hpp"
#include "model/touch.hpp"

namespace model {

namespace detail {

inline void perform_fence(order strength, const std::source_location& where) {
  engine* e = engine::current();
  if (e == nullptr) return;
  engine::system_scope scope{e};
  access a;
  a.kind = event_kind::fence;
  a.success = strength;
  a.site = sites.intern(where, "fence", a.success, a.success, false);
  site& s = sites.at(a.site);
  ++s.hits;
  if (a.success == order::relaxed || !apply_mutation(a, s)) return;
  e->perform(a);
}

}  // namespace detail

// fence is std::atomic_thread_fence.
inline void fence(std::memory_order o,
                  std::source_location where = std::source_location::current()) {
  detail::perform_fence(to_order(o), where);
}

// fence_light and fence_heavy are the two sides of an asymmetric fence, as C++ proposal P1202 has
// it: a light one is ordered with the heavy ones of other threads as two seq_cst fences would be,
// and with nothing else; by itself it neither acquires nor releases. A heavy one is a seq_cst fence
// too.
inline void fence_light(std::source_location where = std::source_location::current()) {
  detail::perform_fence(order::light, where);
}
inline void fence_heavy(std::source_location where = std::source_location::current()) {
  detail::perform_fence(order::heavy, where);
}

// pause marks the end of a round in a loop that waits, without bound, for another thread.
inline void pause(std::source_location where = std::source_location::current()) {
  engine* e = engine::current();
  if (e == nullptr) return;
  e->pause(detail::site_of(where, "pause"));
}

// relax is the pause of a loop with a bound: for the checker it is nothing. A bounded loop must not
// call pause(), which would keep it from ever reaching its bound.
inline void relax() noexcept {}

}  // namespace model
