// Every actor has a mailbox: messages of any type and signals in one order of arrival, of which it
// takes what it wants when it wants it.
//
//   smarm::send(worker, order{42});                      // any type; the type is the pattern
//
//   smarm::receive(
//       [](order o) { ... },
//       smarm::when([](const price& p) { return p.cents > 100; }, [](price p) { ... }),
//       [](const smarm::down& gone) { ... },
//       smarm::after(5s, [] { ... }));
//
// A receive takes the oldest message that one of its handlers accepts, handlers tried in the order
// in which they stand, and leaves all others where they are, in their order. It waits for one that
// fits, or until `after` is over. Messages of one sender arrive in the order in which they were
// sent, and its end (an exit_signal, a down) after them; between senders nothing is promised. What
// is left in the mailbox of an actor that ends is destroyed.
//
// A channel is the better choice between two parties that know each other: it is typed and ends.
// A mailbox is for those whom many know by pid or name, and for signals.
//
// Source: Erlang reference manual, "Receive"; erlang(3): alias/1.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <smarm/channel_error.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/handlers.hpp>
#include <smarm/errors.hpp>
#include <smarm/link.hpp>
#include <smarm/monitor.hpp>
#include <smarm/pid.hpp>

namespace smarm {

enum class delivery : std::uint8_t {
  sent,           // it is in the mailbox
  no_such_actor,  // nobody lives under that pid; the message was destroyed, as in Erlang
  no_such_name,   // nobody has that name; likewise
  full,           // the mailbox is bounded and has no room; likewise
};

// alias is an address of an actor that its owner can take back: what is sent to it afterwards
// vanishes. One made as `reply` takes one message and then no more.
struct alias {
  pid owner;
  std::uint64_t id = 0;
  friend bool operator==(const alias&, const alias&) noexcept = default;
};
enum class alias_use : std::uint8_t {
  any,              // until unalias
  reply,            // one message
  reply_demonitor,  // one message, which also ends the monitor it was made with
};

namespace detail {

// post sends; unless it answers `sent` the envelope stays with the caller.
[[nodiscard]] delivery post(pid to, full_envelope& message);
[[nodiscard]] delivery post(std::string_view name, full_envelope& message);
[[nodiscard]] delivery post(const alias& to, full_envelope& message);

// pattern is what a receive asks of a message.
struct pattern {
  const message_type* type;                                 // null: any
  bool (*accepts)(const void* handler, const void* value);  // null: yes
  const void* handler;
};
// mailbox_take takes the oldest message that fits one of the patterns, and says which; null: none
// came until the deadline. Parks; a stop point on entry and while parked.
[[nodiscard]] full_envelope mailbox_take(std::span<const pattern> patterns, deadline until,
                                         std::size_t& which);

}  // namespace detail

// send puts a message into the mailbox of an actor. The answer may be ignored: as in Erlang, to
// send is not to know that anybody reads it. Any thread; never parks; no stop point. Throws
// std::bad_alloc, and what moving the message throws. The text of a literal is sent as a pointer.
template <class T>
delivery send(pid to, T&& message) {
  detail::full_envelope sealed = detail::envelope_of(std::forward<T>(message));
  return detail::post(to, sealed);
}
// send by name finds the actor that has it now (registry.hpp).
template <class T>
delivery send(std::string_view name, T&& message) {
  detail::full_envelope sealed = detail::envelope_of(std::forward<T>(message));
  return detail::post(name, sealed);
}
template <class T>
delivery send(const alias& to, T&& message) {
  detail::full_envelope sealed = detail::envelope_of(std::forward<T>(message));
  return detail::post(to, sealed);
}

// any_message is a received message whose type is not known beforehand: a handler that takes one
// accepts all.
class any_message {
 public:
  any_message() noexcept = default;

  [[nodiscard]] const std::type_info& type() const noexcept {
    return sealed_ == nullptr ? typeid(void) : *sealed_->type->info;
  }
  template <class T>
  [[nodiscard]] bool is() const noexcept {
    return sealed_ != nullptr && sealed_->type == &detail::message_type_of<T>;
  }
  // get_if is the message where it is a T, otherwise null.
  template <class T>
  [[nodiscard]] T* get_if() const noexcept {
    return is<T>() ? static_cast<T*>(detail::payload_of(*sealed_)) : nullptr;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return sealed_ != nullptr; }

 private:
  friend struct detail::message_access;
  explicit any_message(detail::full_envelope sealed) noexcept : sealed_(std::move(sealed)) {}
  detail::full_envelope sealed_;
};

namespace detail {

struct message_access {
  [[nodiscard]] static any_message wrap(full_envelope sealed) noexcept {
    return any_message(std::move(sealed));
  }
};

template <class H>
[[nodiscard]] constexpr const message_type* wanted_type() noexcept {
  using message = typename handler_traits<H>::message;
  if constexpr (std::is_same_v<message, any_message>) {
    return nullptr;
  } else {
    return &message_type_of<message>;
  }
}

// pattern_for is what a handler asks of a message; `out` is the next free place.
template <class H>
void add_pattern(const H& handler, pattern*& out) {
  if constexpr (requires { handler.accepts; }) {
    using message = typename handler_traits<H>::message;
    const auto accepts = [](const void* of, const void* value) -> bool {
      return static_cast<const H*>(of)->accepts(*static_cast<const message*>(value));
    };
    static_assert(!std::is_same_v<message, any_message>, "a predicate asks of one type");
    *out++ = {wanted_type<H>(), accepts, &handler};
  } else if constexpr (!handler_traits<H>::is_timeout) {
    *out++ = {wanted_type<H>(), nullptr, nullptr};
  }
}

template <class H>
decltype(auto) give_message(H& handler, full_envelope sealed) {
  using message = typename handler_traits<H>::message;
  if constexpr (requires { handler.accepts; }) {
    return give_message(handler.handler, std::move(sealed));
  } else if constexpr (std::is_same_v<message, any_message>) {
    return std::invoke(handler, message_access::wrap(std::move(sealed)));
  } else {
    return std::invoke(handler, std::move(*static_cast<message*>(payload_of(*sealed))));
  }
}

template <class H>
[[nodiscard]] deadline deadline_in(const H& handler) noexcept {
  if constexpr (handler_traits<H>::is_timeout) {
    return handler.until;
  } else {
    return deadline::never();
  }
}

// The handlers are tried for index `which`, timeouts not counted; the last resort is the timeout.
template <class Result, class First, class... Rest>
Result dispatch(full_envelope sealed, std::size_t which, First& first, Rest&... rest) {
  if constexpr (handler_traits<First>::is_timeout) {
    return first.handler();
  } else if constexpr (sizeof...(Rest) == 0) {
    return give_message(first, std::move(sealed));
  } else {
    if (sealed != nullptr && which == 0) return give_message(first, std::move(sealed));
    return dispatch<Result>(std::move(sealed), which - 1, rest...);
  }
}

template <class... Handlers>
auto receive_with(Handlers&&... handlers) {
  using result =
      std::common_type_t<typename handler_result<std::remove_cvref_t<Handlers>>::type...>;
  constexpr std::size_t timeouts =
      (std::size_t{handler_traits<std::remove_cvref_t<Handlers>>::is_timeout} + ... + 0);
  static_assert(timeouts <= 1, "a receive has one `after`");
  static_assert(timeout_is_last<std::remove_cvref_t<Handlers>...>(),
                "`after` is the last argument");
  std::array<pattern, sizeof...(Handlers)> patterns{};
  pattern* end = patterns.data();
  (add_pattern(handlers, end), ...);
  const deadline until = std::min({deadline_in(handlers)...});
  std::size_t which = 0;
  full_envelope sealed = mailbox_take(
      {patterns.data(), static_cast<std::size_t>(end - patterns.data())}, until, which);
  return dispatch<result>(std::move(sealed), which, handlers...);
}

}  // namespace detail

// when is a handler for those messages only that the predicate accepts. The predicate takes the
// message by const reference and must not receive; demonitor_and_flush flushes nothing there.
template <class Predicate, class Handler>
[[nodiscard]] auto when(Predicate accepts, Handler handler) {
  return detail::guarded_handler<Predicate, Handler>{std::move(accepts), std::move(handler)};
}

// after is what a receive does when nothing fitted until the deadline; with a duration of 0 it
// looks at what is there and does not wait. It is the last argument.
template <class Handler>
[[nodiscard]] auto after(deadline until, Handler handler) {
  return detail::timeout_handler<Handler>{until, std::move(handler)};
}

// receive takes the oldest message that a handler accepts and returns what that handler does, all
// handlers having one common type. Parks; a stop point on entry and while parked; a stop leaves
// every message where it is. Throws misuse on a thread that is no actor and within a predicate. A
// handler that throws has consumed its message.
template <class First, class... Rest>
decltype(auto) receive(First&& first, Rest&&... rest) {
  return detail::receive_with(std::forward<First>(first), std::forward<Rest>(rest)...);
}

// receive waits for the oldest message of that type.
template <class T>
[[nodiscard]] T receive() {
  return detail::receive_with([](T message) { return message; });
}
// receive_until gives up at the deadline with `timed_out`.
template <class T>
[[nodiscard]] std::expected<T, recv_error> receive_until(deadline until) {
  using result = std::expected<T, recv_error>;
  return detail::receive_with(
      [](T message) { return result(std::move(message)); },
      after(until, [] { return result(std::unexpected(recv_error::timed_out)); }));
}
template <class T, class Rep, class Period>
[[nodiscard]] std::expected<T, recv_error> receive_for(
    std::chrono::duration<Rep, Period> duration) {
  return receive_until<T>(deadline(duration));
}

// hibernate waits until a message is in the mailbox and takes none: true, at once where one is
// there already; false at the deadline. Meanwhile the memory of the stack beyond the caller's
// frame, which deeper calls have left behind, is the system's again. For actors that wait long and
// have called deeply before; it costs a system call, and later a page fault for each page used
// again. Parks; a stop point on entry and while parked. Throws misuse on a thread that is no actor.
bool hibernate(deadline until = deadline::never());

// mailbox_size is how many messages wait in the calling actor's mailbox.
[[nodiscard]] std::size_t mailbox_size();

// limit_mailbox bounds the calling actor's mailbox: a send finds it `full` while so many messages
// wait; signals, downs and the requests of the system to a server (stop, suspend, ...) always come
// in. 0: no bound.
void limit_mailbox(std::size_t messages_max);

// make_alias makes an address of the calling actor. Never parks.
[[nodiscard]] alias make_alias(alias_use use = alias_use::any);
// unalias takes it back: true if it was still in use. By its owner. Never parks.
bool unalias(const alias& what);

// monitor_with_alias monitors to_mailbox and makes an alias that lives as long as the monitor, or
// until its first message where the use is reply_demonitor.
[[nodiscard]] std::pair<monitor_ref, alias> monitor_with_alias(
    pid who, alias_use use = alias_use::reply_demonitor);

}  // namespace smarm
