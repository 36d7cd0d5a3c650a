// value_type is what the untyped core of a channel or oneshot has to know of its values' type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace smarm::detail {

struct select_access;  // see smarm/select.hpp

struct value_type {
  std::size_t size;
  std::size_t align;
  void (*destroy)(void* value) noexcept;
};

template <class T>
void destroy_value(void* value) noexcept {
  std::destroy_at(static_cast<T*>(value));
}

template <class T>
inline constexpr value_type value_type_of{sizeof(T), alignof(T), &destroy_value<T>};

enum class channel_status : std::uint8_t {
  done,       // sent, or there is a value
  closed,     // the other side is gone
  timed_out,  // the deadline passed
  unready,    // it would have to park: full, or empty
};

// throw_empty_endpoint throws misuse: "<what> is empty: ...".
[[noreturn]] void throw_empty_endpoint(const char* what);

}  // namespace smarm::detail
