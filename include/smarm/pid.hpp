// pid names one actor of this process, for ever: it is never given to a second one.
//
// A pid is a value. Anybody may build one from two numbers, so every call that takes a pid answers
// "no such actor" for one that is stale (the actor has ended), forged, or of another runtime.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace smarm {

struct pid {
  std::uint32_t index = 0;       // the entry in the slot table
  std::uint32_t generation = 0;  // which of the entry's actors; 0 is nobody's

  friend constexpr auto operator<=>(const pid&, const pid&) noexcept = default;

  // is_valid tells whether this pid could ever have been issued; it says nothing of being alive.
  [[nodiscard]] constexpr bool is_valid() const noexcept { return generation != 0; }
};

// to_string writes a pid as dumps and messages show it: "<index.generation>".
[[nodiscard]] inline std::string to_string(pid who) {
  return "<" + std::to_string(who.index) + "." + std::to_string(who.generation) + ">";
}

}  // namespace smarm

template <>
struct std::hash<smarm::pid> {
  std::size_t operator()(smarm::pid who) const noexcept {
    return std::hash<std::uint64_t>{}((std::uint64_t{who.generation} << 32) | who.index);
  }
};
