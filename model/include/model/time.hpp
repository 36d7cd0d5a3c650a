// Virtual time: a number of nanoseconds that moves only when a deadline passes or somebody says so.
//
// It is a location like any other: who is told by another thread that something happened after a
// deadline sees a time after that deadline; without such news two threads may read different times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <source_location>

#include "model/thread.hpp"

namespace model {

// never is no deadline.
inline constexpr std::int64_t never = INT64_MAX;

namespace detail {

inline constexpr std::uint32_t clock_key = no_location;

inline access time_access(engine& e, event_kind kind, const char* what,
                          const std::source_location& where) {
  access a;
  a.kind = kind;
  a.location = e.objects().companion(clock_key);
  a.site = site_of(where, what);
  return a;
}

}  // namespace detail

// now reads the clock.
[[nodiscard]] inline std::int64_t now(
    std::source_location where = std::source_location::current()) {
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  return from_value<std::int64_t>(
      e.perform(detail::time_access(e, event_kind::load, "now", where)).read);
}

// sleep_until moves the clock to `deadline`, if it is not there yet.
inline void sleep_until(std::int64_t deadline,
                        std::source_location where = std::source_location::current()) {
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  access a = detail::time_access(e, event_kind::update, "time passes", where);
  const auto later = [deadline](value v) {
    return to_value(std::max(from_value<std::int64_t>(v), deadline));
  };
  a.modify = later;
  e.perform(a);
}

}  // namespace model
