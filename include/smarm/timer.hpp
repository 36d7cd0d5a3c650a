// Timers that send: a message to an actor after a while, or again and again.
//
//   auto reminder = smarm::send_after(5s, smarm::self(), wake_up{});
//   ...
//   auto left = smarm::cancel_timer(reminder);        // how much was left, or nothing
//
// The message comes no earlier than it should. A timer to a pid dies with that actor; one to a name
// goes to whoever has the name when the time has come. A timer lives on when its reference goes,
// and ends with the run. Any actor of the runtime may cancel it.
//
// The message of a timer is destroyed as soon as it cannot be sent any more: by the cancel, by the
// end of the actor to whose pid it would go, or at once where that actor has ended already.
//
// One thing to know. A scheduler copies the message of an interval, and destroys one that nobody
// gets when its time has come: neither may park (lock a mutex, call a server).
//
// Source: erlang(3): send_after/3, start_timer/3, cancel_timer/2.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/pid.hpp>

namespace smarm {

// timer_id tells the timers of a process apart; 0 is none's.
using timer_id = std::uint64_t;

// timer_expired is what start_timer sends.
template <class T>
struct timer_expired {
  timer_id ref;
  T message;
};

// timer_cancelled is what cancel_timer_async sends to its caller.
struct timer_cancelled {
  timer_id ref;
  std::optional<std::chrono::nanoseconds> left;
};

namespace detail {

class message_alarm;

// where a timer's message goes.
using timer_target = std::variant<pid, std::string>;

// message_source makes the messages of a timer: one, or one each time.
class message_source {
 public:
  message_source() = default;
  message_source(const message_source&) = delete;
  message_source& operator=(const message_source&) = delete;
  virtual ~message_source() = default;
  // next gives the next message; null: memory has run out.
  [[nodiscard]] virtual full_envelope next() noexcept = 0;
};

struct alarm_dropper {
  void operator()(message_alarm* held) const noexcept;
};
using alarm_ref = std::unique_ptr<message_alarm, alarm_dropper>;

[[nodiscard]] timer_id next_timer_id() noexcept;
void require_period(std::chrono::nanoseconds period);
[[nodiscard]] alarm_ref start_message_alarm(timer_id id, deadline when,
                                            std::chrono::nanoseconds period, timer_target to,
                                            std::unique_ptr<message_source> what);

template <class T>
class one_message final : public message_source {
 public:
  explicit one_message(full_envelope sealed) noexcept : sealed_(std::move(sealed)) {}
  full_envelope next() noexcept override { return std::move(sealed_); }

 private:
  full_envelope sealed_;
};

template <class T>
class repeated_message final : public message_source {
 public:
  explicit repeated_message(T message) : message_(std::move(message)) {}
  full_envelope next() noexcept override {
    try {
      return envelope_of(message_);
    } catch (...) {
      return nullptr;
    }
  }

 private:
  const T message_;
};

}  // namespace detail

// timer_ref names a timer. Dropping it leaves the timer running.
class timer_ref {
 public:
  timer_ref() noexcept = default;
  [[nodiscard]] timer_id id() const noexcept { return id_; }
  [[nodiscard]] explicit operator bool() const noexcept { return alarm_ != nullptr; }

 private:
  friend struct detail::message_access;
  friend std::optional<std::chrono::nanoseconds> cancel_timer(const timer_ref& which);
  friend std::optional<std::chrono::nanoseconds> read_timer(const timer_ref& which);
  template <class T>
  friend timer_ref send_after(deadline, detail::timer_target, T&&);
  template <class T>
  friend timer_ref start_timer(deadline, detail::timer_target, T&&);
  template <class T>
  friend timer_ref send_interval(std::chrono::nanoseconds, detail::timer_target, T&&);
  timer_ref(timer_id id, detail::alarm_ref alarm) noexcept : id_(id), alarm_(std::move(alarm)) {}

  timer_id id_ = 0;
  detail::alarm_ref alarm_;
};

// send_after sends the message at the deadline, to a pid or to a name. The caller is an actor, else
// misuse. To an actor that has ended it destroys the message and arms nothing. Never parks; no stop
// point. Throws std::bad_alloc, and what moving the message throws.
template <class T>
timer_ref send_after(deadline when, detail::timer_target to, T&& message) {
  using type = std::decay_t<T>;
  const timer_id id = detail::next_timer_id();
  auto what =
      std::make_unique<detail::one_message<type>>(detail::envelope_of(std::forward<T>(message)));
  return {id, detail::start_message_alarm(id, when, {}, std::move(to), std::move(what))};
}

// start_timer is send_after that sends timer_expired, which carries the timer's id.
template <class T>
timer_ref start_timer(deadline when, detail::timer_target to, T&& message) {
  using type = timer_expired<std::decay_t<T>>;
  const timer_id id = detail::next_timer_id();
  auto what = std::make_unique<detail::one_message<type>>(
      detail::envelope_of(type{id, std::forward<T>(message)}));
  return {id, detail::start_message_alarm(id, when, {}, std::move(to), std::move(what))};
}

// send_interval sends a copy of the message after each period, until it is cancelled or, where it
// goes to a pid, that actor has ended. Ticks that nobody could see to in time are not made up for.
// A period that is not positive is misuse.
template <class T>
timer_ref send_interval(std::chrono::nanoseconds period, detail::timer_target to, T&& message) {
  using type = std::decay_t<T>;
  detail::require_period(period);
  const timer_id id = detail::next_timer_id();
  auto what = std::make_unique<detail::repeated_message<type>>(std::forward<T>(message));
  return {id, detail::start_message_alarm(id, deadline(period), period, std::move(to),
                                          std::move(what))};
}

// cancel_timer stops it and tells how much was left; nothing: it had fired, was cancelled before,
// or the actor it would go to has ended. An interval that is cancelled as it ticks had 0 left. A
// message that was sent stays. By an actor of the timer's runtime; anybody else gets nothing and
// cancels nothing. It destroys a message that was not sent, whose destructor runs in the caller;
// never parks otherwise.
std::optional<std::chrono::nanoseconds> cancel_timer(const timer_ref& which);

// read_timer tells how much is left, as cancel_timer does, and lets it run.
[[nodiscard]] std::optional<std::chrono::nanoseconds> read_timer(const timer_ref& which);

// cancel_timer_async is cancel_timer whose answer comes to the caller's mailbox.
void cancel_timer_async(const timer_ref& which);

}  // namespace smarm
