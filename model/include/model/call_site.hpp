// call_site is std::source_location::current() for constructors: the place of the call, by a
// function that is not consteval.
//
// Why: a consteval call that stands in the default argument of a constexpr constructor makes clang
// 19 take the default constructor of every class with an array of such members (`atomic<T> a[2] =
// {}`) for consteval as well (the escalation of P2564). Such an object is then made by the
// compiler, with std::is_constant_evaluated() true, and the checker never hears of it. In a
// constructor that is not constexpr it is an error.
#pragma once

#include <bit>
#include <source_location>
#include <type_traits>

namespace model::detail {

// call_site gives the place where the default argument that calls it is used. While the compiler
// evaluates, where nobody asks for it, it gives no place.
[[nodiscard]] constexpr std::source_location call_site(
    decltype(__builtin_source_location()) at = __builtin_source_location()) noexcept {
  static_assert(sizeof(std::source_location) == sizeof at);
  if (std::is_constant_evaluated()) return {};
  // SAFETY: the library's class is this one pointer; the library has no other way but consteval.
  return std::bit_cast<std::source_location>(at);
}

}  // namespace model::detail
