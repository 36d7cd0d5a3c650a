// The part of a channel that does not depend on the type of its values, as the templates see it.
//
// A value lies in a cell that the core allocates; the templates construct, move out and destroy it
// there. A cell is named by the address of its value.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/value_type.hpp>

namespace smarm::detail {

class channel_core;

// channel_create makes a channel with one sender and its receiver; capacity 0 is unbounded.
[[nodiscard]] channel_core* channel_create(const value_type& type, std::size_t capacity);

void channel_add_sender(channel_core& core) noexcept;
void channel_drop_sender(channel_core& core) noexcept;
void channel_close_receiver(channel_core& core);
void channel_drop_receiver(channel_core& core) noexcept;

// channel_reserve returns an empty cell; null: the channel is closed. A stop point, and may yield.
[[nodiscard]] void* channel_reserve(channel_core& core);
// channel_try_reserve never parks, yields or stops; `unready` is a bounded channel that is full.
[[nodiscard]] void* channel_try_reserve(channel_core& core, channel_status& why);
void channel_unreserve(channel_core& core, void* cell) noexcept;

// channel_send passes the cell on; unless it answers `done` the cell stays with the caller, as it
// does when the exception of a stop leaves it.
[[nodiscard]] channel_status channel_send(channel_core& core, void* cell, deadline until);
[[nodiscard]] channel_status channel_try_send(channel_core& core, void* cell) noexcept;

// channel_front returns the oldest value and leaves it in the channel until channel_pop, which the
// caller does when it has moved the value out and destroyed it; null: see why.
[[nodiscard]] void* channel_front(channel_core& core, deadline until, channel_status& why);
[[nodiscard]] void* channel_try_front(channel_core& core, channel_status& why);
void channel_pop(channel_core& core) noexcept;

[[nodiscard]] bool channel_is_closed(const channel_core& core) noexcept;
[[nodiscard]] std::size_t channel_size(const channel_core& core) noexcept;
[[nodiscard]] std::size_t channel_capacity(const channel_core& core) noexcept;

// channel_require_capacity throws misuse for 0.
void channel_require_capacity(std::size_t capacity);

// message is a cell with a value in it, until it has been sent.
template <class T>
class message {
 public:
  message(channel_core& core, void* cell, T&& value) : core_(core), cell_(cell) {
    try {
      ::new (cell) T(std::move(value));
    } catch (...) {
      channel_unreserve(core, cell);
      throw;
    }
  }
  message(const message&) = delete;
  message& operator=(const message&) = delete;
  ~message() {
    if (cell_ == nullptr) return;
    std::destroy_at(&value());
    channel_unreserve(core_, cell_);
  }

  [[nodiscard]] void* cell() const noexcept { return cell_; }
  [[nodiscard]] T& value() const noexcept { return *static_cast<T*>(cell_); }
  void sent() noexcept { cell_ = nullptr; }

 private:
  channel_core& core_;
  void* cell_;
};

// sender_ref is one counted sender of a channel, or nothing.
class sender_ref {
 public:
  sender_ref() noexcept = default;
  explicit sender_ref(channel_core* adopted) noexcept : core_(adopted) {}
  sender_ref(const sender_ref& other) noexcept : core_(other.core_) {
    if (core_ != nullptr) channel_add_sender(*core_);
  }
  sender_ref(sender_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  sender_ref& operator=(sender_ref other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~sender_ref() {
    if (core_ != nullptr) channel_drop_sender(*core_);
  }

  [[nodiscard]] channel_core* get() const noexcept { return core_; }
  [[nodiscard]] channel_core& require() const {
    if (core_ == nullptr) throw_empty_endpoint("sender");
    return *core_;
  }

 private:
  channel_core* core_ = nullptr;
};

// receiver_ref is the one receiver of a channel, or nothing.
class receiver_ref {
 public:
  receiver_ref() noexcept = default;
  explicit receiver_ref(channel_core* adopted) noexcept : core_(adopted) {}
  receiver_ref(receiver_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  receiver_ref& operator=(receiver_ref&& other) noexcept {
    if (this != &other) {
      channel_core* const old = std::exchange(core_, std::exchange(other.core_, nullptr));
      if (old != nullptr) channel_drop_receiver(*old);
    }
    return *this;
  }
  ~receiver_ref() {
    if (core_ != nullptr) channel_drop_receiver(*core_);
  }

  [[nodiscard]] channel_core* get() const noexcept { return core_; }
  [[nodiscard]] channel_core& require() const {
    if (core_ == nullptr) throw_empty_endpoint("receiver");
    return *core_;
  }

 private:
  channel_core* core_ = nullptr;
};

// sender_access lets the rest of the library reach the core of a sender.
struct sender_access {
  template <class Sender>
  [[nodiscard]] static channel_core* core(const Sender& sender) noexcept {
    return sender.ref_.get();
  }
};

}  // namespace smarm::detail
