// select waits for several things at once and takes from the one that is ready.
//
//   smarm::select(
//       smarm::on(jobs, [](std::expected<job, smarm::recv_error> next) { ... }),
//       smarm::on(watch, [](smarm::down gone) { ... }),
//       smarm::on_message([](config_changed) { ... }, [](smarm::exit_signal) { ... }),
//       smarm::after(5s, [] { ... }));
//
// Where several are ready, one of them is chosen at random, so none is passed over for ever. Only
// the chosen one is received from; the others stay as they are. A channel that has ended is ready:
// its handler gets `closed`, each time.
//
// Source: the Go Programming Language Specification, "Select statements".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <smarm/channel.hpp>
#include <smarm/channel_error.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/select_case.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/oneshot.hpp>

namespace smarm {

namespace detail {

struct select_access {
  template <class T>
  [[nodiscard]] static channel_core& core_of(receiver<T>& from) {
    return from.ref_.require();
  }
  template <class T>
  [[nodiscard]] static oneshot_core& core_of(oneshot_receiver<T>& from) {
    return from.ref_.require();
  }
  [[nodiscard]] static oneshot_core& core_of(monitor_handle& from) {
    return from.rx_.ref_.require();
  }
};

template <class T, class Handler>
class receiver_arm final : public channel_case {
 public:
  receiver_arm(receiver<T>& from, Handler handler)
      : channel_case(select_access::core_of(from)), from_(from), handler_(std::move(handler)) {}
  decltype(auto) fire() { return std::invoke(handler_, from_.try_recv()); }
  using result = std::invoke_result_t<Handler&, std::expected<T, recv_error>>;

 private:
  receiver<T>& from_;
  Handler handler_;
};

template <class T, class Handler>
class oneshot_arm final : public oneshot_case {
 public:
  oneshot_arm(oneshot_receiver<T>& from, Handler handler)
      : oneshot_case(select_access::core_of(from)), from_(from), handler_(std::move(handler)) {}
  decltype(auto) fire() { return std::invoke(handler_, from_.try_recv()); }
  using result = std::invoke_result_t<Handler&, std::expected<T, recv_error>>;

 private:
  oneshot_receiver<T>& from_;
  Handler handler_;
};

template <class Handler>
class monitor_arm final : public oneshot_case {
 public:
  monitor_arm(monitor_handle& from, Handler handler)
      : oneshot_case(select_access::core_of(from)), from_(from), handler_(std::move(handler)) {}
  decltype(auto) fire() { return std::invoke(handler_, std::move(from_.try_recv().value())); }
  using result = std::invoke_result_t<Handler&, down>;

 private:
  monitor_handle& from_;
  Handler handler_;
};

// mailbox_case is ready when a message that fits one of the patterns is there. Bodies in
// src/actor/mailbox.cpp.
class mailbox_case : public select_case {
 public:
  bool is_ready() final;
  bool enroll(const waker& wake) final;
  void withdraw() noexcept final;
  [[nodiscard]] const void* source() const noexcept final { return &the_mailbox; }

 protected:
  ~mailbox_case() = default;
  // look_for says what fits; the patterns outlive the case.
  void look_for(std::span<const pattern> patterns) noexcept { patterns_ = patterns; }
  [[nodiscard]] full_envelope take_found(std::size_t& which) noexcept {
    which = which_;
    return std::move(found_);
  }

 private:
  static constexpr char the_mailbox = 0;  // an address for what there is one of
  std::span<const pattern> patterns_;
  full_envelope found_;  // taken out as it was found: nobody else takes from the mailbox
  std::size_t which_ = 0;
};

template <class... Handlers>
class message_arm final : public mailbox_case {
  static_assert(!(handler_traits<Handlers>::is_timeout || ...),
                "`after` is an argument of the select, not of on_message");

 public:
  explicit message_arm(Handlers... handlers) : handlers_(std::move(handlers)...) {
    pattern* end = patterns_.data();
    std::apply([&](const auto&... each) { (add_pattern(each, end), ...); }, handlers_);
    look_for(patterns_);
  }
  using result = std::common_type_t<typename handler_result<Handlers>::type...>;
  result fire() {
    std::size_t which = 0;
    full_envelope message = take_found(which);
    return std::apply(
        [&](auto&... each) { return dispatch<result>(std::move(message), which, each...); },
        handlers_);
  }

 private:
  std::array<pattern, sizeof...(Handlers)> patterns_{};
  std::tuple<Handlers...> handlers_;
};

template <class A>
concept is_arm = requires(A& arm) { arm.fire(); };

template <class... Arms>
[[nodiscard]] consteval bool timeout_arm_is_last() {
  std::size_t left = sizeof...(Arms);
  return ((--left == 0 || is_arm<Arms>) && ...);
}

template <class A>
struct arm_result : std::type_identity<typename A::result> {};
template <class H>
struct arm_result<timeout_handler<H>> : std::invoke_result<H&> {};

// Fires the arm of that index, arms counted without the timeout; the timeout where there is none.
template <class Result, class First, class... Rest>
Result fire_arm(std::size_t which, First& first, Rest&... rest) {
  if constexpr (!is_arm<First>) {
    return first.handler();
  } else if constexpr (sizeof...(Rest) == 0) {
    return first.fire();
  } else {
    if (which == 0) return first.fire();
    return fire_arm<Result>(which - 1, rest...);
  }
}

template <class A>
void add_case(A& arm, select_case**& out) noexcept {
  if constexpr (is_arm<A>) *out++ = &arm;
}

template <class A>
[[nodiscard]] deadline deadline_of_arm(const A& arm) noexcept {
  if constexpr (is_arm<A>) {
    return deadline::never();
  } else {
    return arm.until;
  }
}

}  // namespace detail

// on is what to do with what a receiver gives: its handler takes a std::expected<T, recv_error>, or
// a down for a monitor_handle. The receiver outlives the select.
template <class T, class Handler>
[[nodiscard]] auto on(receiver<T>& from, Handler handler) {
  return detail::receiver_arm<T, Handler>(from, std::move(handler));
}
template <class T, class Handler>
[[nodiscard]] auto on(oneshot_receiver<T>& from, Handler handler) {
  return detail::oneshot_arm<T, Handler>(from, std::move(handler));
}
template <class Handler>
[[nodiscard]] auto on(monitor_handle& from, Handler handler) {
  return detail::monitor_arm<Handler>(from, std::move(handler));
}

// on_message is what to do with messages in the caller's mailbox: handlers as receive takes them,
// but for `after`. The caller of such a select is an actor.
template <class... Handlers>
[[nodiscard]] auto on_message(Handlers... handlers) {
  return detail::message_arm<Handlers...>(std::move(handlers)...);
}

// select waits until one of its arms is ready, or until `after`, its last argument, is over, and
// returns what that handler does; the handlers have one common type. Parks; a stop point on entry
// and while parked. Misuse: the same receiver twice, an empty one, a receiver that another is
// parked in. A handler may throw: it has taken what it was given.
template <class... Arms>
auto select(Arms&&... arms) {
  static_assert(detail::timeout_arm_is_last<std::remove_cvref_t<Arms>...>(),
                "`after` is the last argument");
  using result =
      std::common_type_t<typename detail::arm_result<std::remove_cvref_t<Arms>>::type...>;
  std::array<detail::select_case*, sizeof...(Arms)> cases{};
  detail::select_case** end = cases.data();
  (detail::add_case(arms, end), ...);
  const deadline until = std::min({detail::deadline_of_arm(arms)...});
  const std::size_t which =
      detail::select_wait({cases.data(), static_cast<std::size_t>(end - cases.data())}, until);
  return detail::fire_arm<result>(which, arms...);
}

}  // namespace smarm
