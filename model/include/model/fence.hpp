// fence orders the accesses of a thread; pause and relax are what a loop says that waits.
#pragma once

#include <source_location>

#include "model/thread.hpp"
#include "model/touch.hpp"

namespace model {

// fence is std::atomic_thread_fence.
inline void fence(std::memory_order o,
                  std::source_location where = std::source_location::current()) {
  engine* e = engine::current();
  if (e == nullptr) return;
  engine::system_scope scope{e};
  access a;
  a.kind = event_kind::fence;
  a.success = to_order(o);
  a.site = sites.intern(where, "fence", a.success, a.success, false);
  site& s = sites.at(a.site);
  ++s.hits;
  if (a.success == order::relaxed || !detail::apply_mutation(a, s)) return;
  e->perform(a);
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
