// What a call to a server is made of: the answerer's handle, the caller's, and how a call fails.
//
// A call fails at once when the server ends, whatever has become of the request by then: queued,
// being handled, or handed on to another actor that was to answer it.
//
// A reply goes to a place of its own and never into a mailbox: one that comes after the caller has
// given up vanishes. An answerer that goes without an answer tells nobody, as in OTP: the caller
// waits for its deadline or for the server's end.
//
// Source: OTP 25, gen_server(3): call/3, reply/2, send_request/2.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <expected>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <smarm/deadline.hpp>
#include <smarm/detail/reply_core.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm {

struct call_error {
  enum class what : std::uint8_t {
    timed_out,     // no reply until the deadline; none will come later
    noproc,        // nobody lives under that pid, or has that name
    died,          // the server ended before it answered: reason
    calling_self,  // a server that calls itself would wait for ever
    noconnection,  // the connection to the node it lives on was lost
    full,          // the server's mailbox is bounded and has no room
  };
  what kind = what::timed_out;
  exit_reason reason = {};  // for died, noproc and noconnection

  friend bool operator==(const call_error&, const call_error&) noexcept = default;
};

[[nodiscard]] std::string to_string(const call_error& error);

template <class R>
using call_result = std::expected<R, call_error>;

// The deadline of a call that names none: OTP's five seconds.
inline constexpr std::chrono::seconds default_call_timeout{5};

// default_call_deadline is that far from now, up to two ticks of the kernel's clock later: it is
// made for each call, and the exact clock would cost a fifth of the call.
[[nodiscard]] deadline default_call_deadline() noexcept;

namespace detail {

// What lies in the cell: a reply of type void is something too.
template <class R>
using carried_reply = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

struct call_access;

// outcome_of takes what has become of a call out of its cell, and lets go of that unless the call
// is pending.
template <class R>
[[nodiscard]] call_result<R> outcome_of(caller_ref& held, reply_status status) {
  if (status == reply_status::pending) return std::unexpected(call_error{});
  // The cell destroys the value with its reference, also where the move throws.
  const caller_ref settled = std::move(held);
  reply_cell& cell = *settled.get();
  if (status == reply_status::died) {
    return std::unexpected(call_error{call_error::what::died, reply_reason(cell)});
  }
  if constexpr (std::is_void_v<R>) {
    return {};
  } else {
    return call_result<R>(std::in_place, std::move(*static_cast<R*>(reply_place<R>(cell))));
  }
}

}  // namespace detail

// from is the right and the duty to answer one call. A handler that takes it as its second argument
// may answer at once, keep it, or give it to another actor or thread.
template <class R>
class from {
 public:
  using reply_type = R;

  // An empty one, as one that has answered; reply throws misuse on it.
  from() noexcept = default;

  // reply answers and empties this handle: true, unless the caller has given up or was told that
  // the server has died. Any thread; never parks; no stop point. Where moving the value throws,
  // nothing was sent.
  template <class U = detail::carried_reply<R>>
    requires(!std::is_void_v<R>)
  bool reply(U&& value) {
    return answer(std::forward<U>(value));
  }
  bool reply()
    requires std::is_void_v<R>
  {
    return answer(std::monostate{});
  }

  // is_awaited tells whether somebody still waits; it may be out of date at once. Never parks.
  [[nodiscard]] bool is_awaited() const noexcept {
    return cell_.get() != nullptr && detail::reply_is_awaited(*cell_.get());
  }
  [[nodiscard]] explicit operator bool() const noexcept { return cell_.get() != nullptr; }

 private:
  friend struct detail::call_access;
  explicit from(detail::answerer_ref cell) noexcept : cell_(std::move(cell)) {}

  template <class U>
  bool answer(U&& value) {
    using carried = detail::carried_reply<R>;
    detail::reply_cell& cell = cell_.require("the handle to answer a call");
    ::new (detail::reply_place<carried>(cell)) carried(std::forward<U>(value));
    return detail::reply_send(*cell_.release());
  }

  detail::answerer_ref cell_;
};

// request is a call that was sent and whose reply is taken later. Dropping it gives the call up.
template <class R>
class request {
 public:
  using reply_type = R;

  // An empty request, as one whose outcome was taken; every wait on it throws misuse.
  request() noexcept = default;

  // wait_response waits for the outcome and takes it. At the deadline it answers timed_out, and the
  // request stays: it may be waited for again. Parks; a stop point on entry and while parked;
  // blocks a thread that is no actor.
  [[nodiscard]] call_result<R> wait_response(deadline until) {
    if (refused_) return std::unexpected(*std::exchange(refused_, std::nullopt));
    detail::reply_cell& cell = cell_.require("the request");
    return detail::outcome_of<R>(cell_, detail::reply_wait(cell, until));
  }
  // receive_response is wait_response that gives the call up at the deadline.
  [[nodiscard]] call_result<R> receive_response(deadline until = default_call_deadline()) {
    call_result<R> outcome = wait_response(until);
    cell_ = {};
    return outcome;
  }
  // check_response is wait_response that does not wait. Never parks; no stop point.
  [[nodiscard]] call_result<R> check_response() {
    if (refused_) return std::unexpected(*std::exchange(refused_, std::nullopt));
    detail::reply_cell& cell = cell_.require("the request");
    return detail::outcome_of<R>(cell_, detail::reply_look(cell));
  }

  [[nodiscard]] explicit operator bool() const noexcept {
    return cell_.get() != nullptr || refused_.has_value();
  }

 private:
  friend struct detail::call_access;
  explicit request(detail::caller_ref cell) noexcept : cell_(std::move(cell)) {}
  explicit request(call_error refused) noexcept : refused_(std::move(refused)) {}

  detail::caller_ref cell_;
  std::optional<call_error> refused_;
};

namespace detail {

[[nodiscard]] call_error error_of(post_status refused) noexcept;

struct call_access {
  template <class R>
  [[nodiscard]] static from<R> make_from(answerer_ref cell) noexcept {
    return from<R>(std::move(cell));
  }
  template <class R>
  [[nodiscard]] static request<R> make_request(caller_ref cell) noexcept {
    return request<R>(std::move(cell));
  }
  template <class R>
  [[nodiscard]] static reply_cell* cell_of(const request<R>& of) noexcept {
    return of.cell_.get();
  }
  template <class R>
  [[nodiscard]] static request<R> refuse(call_error why) noexcept {
    return request<R>(std::move(why));
  }
};

// seal makes a request's envelope, by make(from), and its cell.
template <class R, class Make>
[[nodiscard]] full_envelope seal(Make make, caller_ref& caller) {
  reply_cell& cell = *reply_create(reply_layout_of<carried_reply<R>>);
  caller = caller_ref(&cell);
  return make(call_access::make_from<R>(answerer_ref(&cell)));
}

// Whether the request and the reply of a call fit into one block.
template <class R, class Payload>
inline constexpr bool shares_block =
    alignof(Payload) <= call_align_max && alignof(carried_reply<R>) <= call_align_max;

// seal_call makes both in one block where they fit. Payload is made of the message and the
// answerer's handle; type.give_back is call_give_back where they share the block.
template <class R, class Payload, class M>
[[nodiscard]] full_envelope seal_call(const message_type& type, M& message, caller_ref& caller) {
  constexpr bool shares = shares_block<R, Payload>;
  constexpr const call_layout& layout =
      shares ? shared_layout_of<carried_reply<R>, Payload> : reply_layout_of<carried_reply<R>>;
  reply_cell& cell = *(shares ? call_create(layout, type) : reply_create(layout));
  caller = caller_ref(&cell);
  from<R> back = call_access::make_from<R>(answerer_ref(&cell));
  envelope* const fresh = shares ? &call_envelope(cell, layout) : envelope_allocate(type);
  try {
    ::new (payload_of(*fresh)) Payload{std::move(message), std::move(back)};
  } catch (...) {
    envelope_free(*fresh);
    throw;
  }
  return full_envelope(fresh);
}

// ask posts a sealed request whose reply is taken later; ask_and_wait waits for it.
template <class R>
[[nodiscard]] request<R> ask(pid to, full_envelope sealed, caller_ref caller) {
  const post_status posted = post_request(to, sealed, *caller.get());
  if (posted != post_status::sent) return call_access::refuse<R>(error_of(posted));
  return call_access::make_request<R>(std::move(caller));
}
template <class R>
[[nodiscard]] call_result<R> ask_and_wait(pid to, full_envelope sealed, caller_ref caller,
                                          deadline until) {
  reply_status outcome{};
  const post_status posted = post_and_wait(to, sealed, *caller.get(), until, outcome);
  if (posted != post_status::sent) return std::unexpected(error_of(posted));
  return outcome_of<R>(caller, outcome);
}

}  // namespace detail
}  // namespace smarm
