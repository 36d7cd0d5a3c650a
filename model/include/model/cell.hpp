// cell<T> is plain data that threads share: every access is checked for a race.
//
// The data is real memory. A run repeats accesses in an order that respects what causes what, so
// the value is right as long as there is no race, and the first race ends the run. The check is
// exact for an execution: each pair of accesses is looked at when the later of the two is made.
#pragma once

#include <source_location>
#include <utility>

#include "model/shared.hpp"

namespace model {

namespace detail {

// checked looks at one access to plain data; `writes` says of which kind.
inline void checked(const void* address, bool writes, const char* what,
                    const std::source_location& where) {
  engine* e = engine::current();
  if (e == nullptr) return;
  engine::system_scope scope{e};
  const std::uint32_t site = sites.intern(where, what, order::plain, order::plain, false);
  const epoch now = e->now();
  const clock& seen = e->seen();
  place& p = find(*e, address, site, 0);
  if (p.written && p.write.thread != now.thread && !p.write.is_before(seen))
    e->race(p, "data race", writes ? "two writes" : "a read and a write", site, p.write_site,
            p.write.thread);
  if (!writes) return;
  // `uses` counts writes too, which does no harm: they are compared above all the same.
  for (std::size_t t = 0; t < threads_max; ++t)
    if (t != now.thread && p.uses[t] > seen.count[t])
      e->race(p, "data race", "a write and a read", site, p.use_sites[t], t);
  p.written = true;
  p.write = now;
  p.write_site = site;
}

}  // namespace detail

template <class T>
class cell {
  using here = std::source_location;

 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  cell(here where = detail::call_site()) : cell(T{}, where) {}
  explicit cell(T first, here where = detail::call_site()) : data_(std::move(first)) {
    detail::constructed(this, {}, where);
  }
  cell(const cell&) = delete;
  cell& operator=(const cell&) = delete;
  ~cell() { detail::destroyed(this); }

  [[nodiscard]] const T& read(here where = here::current()) const {
    detail::checked(this, false, "read", where);
    return data_;
  }
  void write(T desired, here where = here::current()) {
    detail::checked(this, true, "write", where);
    data_ = std::move(desired);
  }
  // change gives a reference to change the data through, now.
  [[nodiscard]] T& change(here where = here::current()) {
    detail::checked(this, true, "write", where);
    return data_;
  }

 private:
  T data_;
};

}  // namespace model
