// How receive picks among its handlers: each becomes a pattern, the patterns go to the untyped
// core, and the message that comes back goes to the handler that its pattern stands for.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>

namespace smarm {

class any_message;

namespace detail {

template <class Predicate, class Handler>
struct guarded_handler {
  Predicate accepts;
  Handler handler;
};

template <class Handler>
struct timeout_handler {
  deadline until;
  Handler handler;
};

// argument_of is the one parameter of a callable that is not overloaded.
template <class F>
struct argument_of {
  static_assert(sizeof(F) == 0,
                "a handler has one parameter of a type of its own: it is no template and not "
                "overloaded, nor [](auto) ...");
};
template <class F>
  requires requires { &F::operator(); }
struct argument_of<F> : argument_of<decltype(&F::operator())> {};
template <class R, class A>
struct argument_of<R (*)(A)> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class A>
struct argument_of<R (*)(A) noexcept> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class A>
struct argument_of<R(A)> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class A>
struct argument_of<R(A) noexcept> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class C, class A>
struct argument_of<R (C::*)(A)> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class C, class A>
struct argument_of<R (C::*)(A) const> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class C, class A>
struct argument_of<R (C::*)(A) noexcept> : std::type_identity<std::remove_cvref_t<A>> {};
template <class R, class C, class A>
struct argument_of<R (C::*)(A) const noexcept> : std::type_identity<std::remove_cvref_t<A>> {};

template <class T>
struct handler_traits {
  using message = typename argument_of<T>::type;
  static constexpr bool is_timeout = false;
};
template <class P, class H>
struct handler_traits<guarded_handler<P, H>> {
  using message = typename argument_of<H>::type;
  static constexpr bool is_timeout = false;
};
template <class H>
struct handler_traits<timeout_handler<H>> {
  using message = void;
  static constexpr bool is_timeout = true;
};

// What a handler returns when it is given its message.
template <class H>
struct handler_result : std::invoke_result<H&, typename handler_traits<H>::message&&> {};
template <class P, class H>
struct handler_result<guarded_handler<P, H>>
    : std::invoke_result<H&, typename argument_of<H>::type&&> {};
template <class H>
struct handler_result<timeout_handler<H>> : std::invoke_result<H&> {};

// timeout_is_last tells whether no handler but the last is an `after`: one that stood before others
// would be called in their place.
template <class... Handlers>
[[nodiscard]] consteval bool timeout_is_last() {
  std::size_t left = sizeof...(Handlers);
  return ((--left == 0 || !handler_traits<Handlers>::is_timeout) && ...);
}

struct pattern;
struct message_access;

}  // namespace detail
}  // namespace smarm
