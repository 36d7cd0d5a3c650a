// channel moves values from any number of senders to one receiver, first in, first out.
//
//   auto [tx, rx] = smarm::channel<job>();       // unbounded: a send never waits for room
//   auto [tx, rx] = smarm::channel<job>(1024);   // bounded: a send parks while 1,024 are queued
//
// Values move; move-only types work. Two values of one sender arrive in the order they were sent;
// senders that park for room get in in the order they came. A channel ends from either side: when
// its last sender is gone, the receiver gets what is queued and then `closed`; when its receiver is
// gone or has closed, a send hands its value back with `closed`, and what was still queued is
// destroyed with the receiver. Once closed, a channel stays closed. A value is never lost by a
// timeout or a stop: it was sent and is received or queued, or it is with the sender.
//
// Threads: both ends may be used on any thread, actor or not; a call that would park an actor
// blocks another thread. A sender may be used by many at once. A receiver belongs to one at a time:
// a second one that calls it while the first is parked in it gets misuse.
//
// Where T's move constructor throws, its exception leaves the call, and the value is where that
// constructor left it: a send has not sent, a receive leaves the value at the front of the queue.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <smarm/channel_error.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/channel_core.hpp>
#include <smarm/errors.hpp>

namespace smarm {

template <class T>
class sender {
 public:
  using value_type = T;

  // An empty sender; every call but assignment, close, is_closed and the test throws misuse on it.
  sender() noexcept = default;

  // send queues the value. On a bounded channel it parks while the channel is full. A stop point on
  // entry and while parked; a stop there leaves nothing sent. An actor that fills an unbounded
  // channel faster than it is emptied yields once every 256 sends, so hold no std::mutex across.
  std::expected<void, send_error<T>> send(T value) const {
    return send_until(std::move(value), deadline::never());
  }

  // send_until gives up at the deadline with `timed_out`; otherwise as send.
  std::expected<void, send_error<T>> send_until(T value, deadline until) const {
    detail::channel_core& core = ref_.require();
    void* const cell = detail::channel_reserve(core);
    if (cell == nullptr) return refused(detail::channel_status::closed, std::move(value));
    detail::message<T> message(core, cell, std::move(value));
    const detail::channel_status status = detail::channel_send(core, cell, until);
    if (status != detail::channel_status::done) return refused(status, std::move(message.value()));
    message.sent();
    return {};
  }
  template <class Rep, class Period>
  std::expected<void, send_error<T>> send_for(T value,
                                              std::chrono::duration<Rep, Period> duration) const {
    return send_until(std::move(value), deadline(duration));
  }

  // try_send answers `full` where send would park. Never parks, never yields; no stop point, so it
  // may be called from a destructor or inside a critical section.
  std::expected<void, send_error<T>> try_send(T value) const {
    detail::channel_core& core = ref_.require();
    detail::channel_status status{};
    void* const cell = detail::channel_try_reserve(core, status);
    if (cell == nullptr) return refused(status, std::move(value));
    detail::message<T> message(core, cell, std::move(value));
    status = detail::channel_try_send(core, cell);
    if (status != detail::channel_status::done) return refused(status, std::move(message.value()));
    message.sent();
    return {};
  }

  // close gives this sender up and leaves it empty; the channel ends with the last one. Never
  // parks.
  void close() noexcept { ref_ = {}; }

  // is_closed tells whether a send would be refused; true of an empty sender. Never parks.
  [[nodiscard]] bool is_closed() const noexcept {
    return ref_.get() == nullptr || detail::channel_is_closed(*ref_.get());
  }

  // size is how many values are queued; a hint where others send or receive. Never parks.
  [[nodiscard]] std::size_t size() const { return detail::channel_size(ref_.require()); }
  // capacity of a bounded channel; 0: unbounded.
  [[nodiscard]] std::size_t capacity() const { return detail::channel_capacity(ref_.require()); }

  // The test tells whether this is a sender of a channel; two are equal if it is the same one.
  [[nodiscard]] explicit operator bool() const noexcept { return ref_.get() != nullptr; }
  friend bool operator==(const sender& left, const sender& right) noexcept {
    return left.ref_.get() == right.ref_.get();
  }

 private:
  template <class U>
  friend struct channel_ends;
  friend struct detail::sender_access;
  explicit sender(detail::channel_core* core) noexcept : ref_(core) {}

  static std::unexpected<send_error<T>> refused(detail::channel_status status, T&& value) {
    const send_failure why = status == detail::channel_status::closed      ? send_failure::closed
                             : status == detail::channel_status::timed_out ? send_failure::timed_out
                                                                           : send_failure::full;
    return std::unexpected(send_error<T>{why, std::move(value)});
  }

  detail::sender_ref ref_;
};

template <class T>
class receiver {
 public:
  using value_type = T;

  // An empty receiver; every call but assignment and the test throws misuse on it.
  receiver() noexcept = default;

  // recv waits for the next value; `closed` when there will be none. Parks; a stop point on entry
  // and while parked; a stop leaves every value queued.
  [[nodiscard]] std::expected<T, recv_error> recv() { return recv_until(deadline::never()); }

  // recv_until gives up at the deadline with `timed_out`; a value that arrives at that very moment
  // is received or stays queued.
  [[nodiscard]] std::expected<T, recv_error> recv_until(deadline until) {
    detail::channel_core& core = ref_.require();
    detail::channel_status status{};
    void* const cell = detail::channel_front(core, until, status);
    return take(core, cell, status);
  }
  template <class Rep, class Period>
  [[nodiscard]] std::expected<T, recv_error> recv_for(std::chrono::duration<Rep, Period> duration) {
    return recv_until(deadline(duration));
  }

  // try_recv answers `empty` where recv would park. Never parks; no stop point.
  [[nodiscard]] std::expected<T, recv_error> try_recv() {
    detail::channel_core& core = ref_.require();
    detail::channel_status status{};
    void* const cell = detail::channel_try_front(core, status);
    return take(core, cell, status);
  }

  // close refuses every further send and wakes the senders that are parked; what is queued can
  // still be received, and then comes `closed`. Never parks.
  void close() { detail::channel_close_receiver(ref_.require()); }

  // size is how many values are queued; a hint where others send. Never parks.
  [[nodiscard]] std::size_t size() const { return detail::channel_size(ref_.require()); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // capacity of a bounded channel; 0: unbounded.
  [[nodiscard]] std::size_t capacity() const { return detail::channel_capacity(ref_.require()); }

  [[nodiscard]] explicit operator bool() const noexcept { return ref_.get() != nullptr; }

  // iterator makes `for (T value : receiver)`: each step is a recv, the end is `closed`. It yields
  // rvalues, since each value is seen once: `for (auto&& value : rx)` binds, `for (T value : rx)`
  // moves.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit iterator(receiver& from) : from_(&from) { ++*this; }
    iterator(iterator&&) = default;
    iterator& operator=(iterator&&) = default;

    [[nodiscard]] T&& operator*() const { return std::move(*current_); }
    iterator& operator++() {
      current_.reset();
      if (auto next = from_->recv()) current_.emplace(std::move(*next));
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& at, std::default_sentinel_t) noexcept {
      return !at.current_.has_value();
    }

   private:
    receiver* from_;
    mutable std::optional<T> current_;
  };

  // begin receives the first value, so it may park; end is `closed`.
  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  template <class U>
  friend struct channel_ends;
  friend struct detail::select_access;
  explicit receiver(detail::channel_core* core) noexcept : ref_(core) {}

  static std::expected<T, recv_error> take(detail::channel_core& core, void* cell,
                                           detail::channel_status status) {
    if (cell == nullptr) {
      return std::unexpected(status == detail::channel_status::closed      ? recv_error::closed
                             : status == detail::channel_status::timed_out ? recv_error::timed_out
                                                                           : recv_error::empty);
    }
    return take_value(core, *static_cast<T*>(cell));
  }

  // take_value has one return, so that the value is moved once: into what the caller gets.
  static std::expected<T, recv_error> take_value(detail::channel_core& core, T& value) {
    std::expected<T, recv_error> result(std::in_place, std::move(value));
    std::destroy_at(&value);
    detail::channel_pop(core);
    return result;
  }

  detail::receiver_ref ref_;
};

// channel_ends is what channel returns; made for a structured binding.
template <class T>
struct channel_ends {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::move_constructible<T>,
                "a channel carries values that can be moved");
  sender<T> tx;
  receiver<T> rx;

  [[nodiscard]] static channel_ends make(std::size_t capacity) {
    detail::channel_core* const core = detail::channel_create(detail::value_type_of<T>, capacity);
    return {sender<T>(core), receiver<T>(core)};
  }
};

// channel makes an unbounded channel. Any thread; never parks.
template <class T>
[[nodiscard]] channel_ends<T> channel() {
  return channel_ends<T>::make(0);
}

// channel makes a bounded channel; a capacity of 0 is misuse. Any thread; never parks.
template <class T>
[[nodiscard]] channel_ends<T> channel(std::size_t capacity) {
  detail::channel_require_capacity(capacity);
  return channel_ends<T>::make(capacity);
}

}  // namespace smarm
