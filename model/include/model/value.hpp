// value is what a shared location holds: up to sixteen bytes, compared bit by bit as a processor
// does.
//
// Why bytes and not a template: the graph, the search and the report are written once, not for each
// type of each atomic; the typed shell in atomic.hpp converts at the edge.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace model {

struct value {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const value&, const value&) = default;
};

// A type that can live in an atomic: copyable as bytes, at most sixteen of them.
template <class T>
concept storable = std::is_trivially_copyable_v<T> && sizeof(T) <= 16;

// to_value gives the bytes of `object`, padding cleared so that equal objects give equal bytes.
template <storable T>
[[nodiscard]] value to_value(T object) noexcept {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  if constexpr (!std::is_scalar_v<T>) __builtin_clear_padding(&object);
#endif
#endif
  value bytes;
  std::memcpy(static_cast<void*>(&bytes), &object, sizeof(T));
  return bytes;
}

// from_value is the inverse of to_value.
template <storable T>
[[nodiscard]] T from_value(const value& bytes) noexcept {
  alignas(T) std::array<unsigned char, sizeof(T)> raw;
  std::memcpy(raw.data(), &bytes, sizeof(T));
  T object;
  std::memcpy(static_cast<void*>(&object), raw.data(), sizeof(T));
  return object;
}

// The strength of an access. `plain` is a non-atomic access that takes part in the graph; `light`
// and `heavy` are the two sides of an asymmetric fence (fence.hpp).
enum class order : std::uint8_t {
  plain,
  relaxed,
  light,
  acquire,
  release,
  acq_rel,
  seq_cst,
  heavy
};

[[nodiscard]] constexpr order to_order(std::memory_order from) noexcept {
  switch (from) {
    case std::memory_order_relaxed:
      return order::relaxed;
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return order::acquire;
    case std::memory_order_release:
      return order::release;
    case std::memory_order_acq_rel:
      return order::acq_rel;
    case std::memory_order_seq_cst:
      return order::seq_cst;
  }
  return order::seq_cst;
}

[[nodiscard]] constexpr bool acquires(order o) noexcept {
  return o == order::acquire || o >= order::acq_rel;
}
[[nodiscard]] constexpr bool releases(order o) noexcept { return o >= order::release; }

// is_sequential: such events have a place in the one order of sc.hpp.
[[nodiscard]] constexpr bool is_sequential(order o) noexcept {
  return o >= order::seq_cst || o == order::light;
}

[[nodiscard]] constexpr const char* name_of(order o) noexcept {
  constexpr std::array names{"plain",   "relaxed", "light",   "acquire",
                             "release", "acq_rel", "seq_cst", "heavy"};
  return names[static_cast<std::size_t>(o)];
}

}  // namespace model
