// plain<T> is non-atomic data as an event of the graph: even a racy program can be explored, each
// value that a race may give included. For ordinary use there is cell<T>.
#pragma once

#include <source_location>

#include "model/touch.hpp"

namespace model {

template <storable T>
class plain {
  using here = std::source_location;

 public:
  plain(T first = T{}, here where = detail::call_site()) : stored_(first) {  // NOLINT
    detail::constructed(this, to_value(first), where);
  }
  plain(const plain&) = delete;
  plain& operator=(const plain&) = delete;
  ~plain() { detail::destroyed(this); }

  T read(here where = here::current()) const {
    access a;
    a.kind = event_kind::load;
    a.success = order::plain;
    return from_value<T>(detail::touch(this, a, sizeof(T), "read", where).read);
  }
  void write(T desired, here where = here::current()) {
    access a;
    a.kind = event_kind::store;
    a.success = order::plain;
    a.operand = to_value(desired);
    detail::touch(this, a, sizeof(T), "write", where);
  }

 private:
  T stored_;
};

}  // namespace model
