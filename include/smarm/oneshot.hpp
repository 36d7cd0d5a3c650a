// oneshot carries one value from one sender to one receiver: the reply to a request.
//
//   auto [tx, rx] = smarm::oneshot<int>();
//
// One allocation in all. A sender that goes without having sent closes it, and the receiver gets
// `closed`; a receiver that goes makes send hand the value back.
//
// Threads: each end may be used on any thread, actor or not, by one at a time.
#pragma once

#include <chrono>
#include <concepts>
#include <expected>
#include <memory>
#include <type_traits>
#include <utility>

#include <smarm/channel_error.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/oneshot_core.hpp>
#include <smarm/errors.hpp>

namespace smarm {

template <class T>
class oneshot_sender {
 public:
  using value_type = T;

  // An empty sender, as one that has sent; send throws misuse on it.
  oneshot_sender() noexcept = default;

  // send gives the value to the receiver and empties this sender; `closed` hands the value back
  // because the receiver is gone. Never parks; no stop point: a reply that was computed gets out.
  // Where T's move constructor throws, nothing was sent and this sender stays as it was.
  std::expected<void, send_error<T>> send(T value) {
    detail::oneshot_core& core = ref_.require();
    T* const place = ::new (detail::oneshot_place(core)) T(std::move(value));
    const detail::oneshot_sender_ref sent = std::move(ref_);
    if (detail::oneshot_send(core)) return {};
    const auto destroy = [](T* refused) { std::destroy_at(refused); };
    const std::unique_ptr<T, decltype(destroy)> refused(place, destroy);
    return std::unexpected(send_error<T>{send_failure::closed, std::move(*place)});
  }

  // close goes without sending; the receiver gets `closed`. Never parks.
  void close() noexcept { ref_ = {}; }

  // is_closed tells whether a send would be refused; true of an empty sender. Never parks.
  [[nodiscard]] bool is_closed() const noexcept {
    return ref_.get() == nullptr || detail::oneshot_receiver_gone(*ref_.get());
  }

  [[nodiscard]] explicit operator bool() const noexcept { return ref_.get() != nullptr; }

 private:
  template <class U>
  friend struct oneshot_ends;
  explicit oneshot_sender(detail::oneshot_core* core) noexcept : ref_(core) {}

  detail::oneshot_sender_ref ref_;
};

template <class T>
class oneshot_receiver {
 public:
  using value_type = T;

  // An empty receiver, as one that has received; every wait on it throws misuse.
  oneshot_receiver() noexcept = default;

  // recv waits for the value, or for `closed`, and empties this receiver. Parks; a stop point on
  // entry and while parked.
  [[nodiscard]] std::expected<T, recv_error> recv() { return recv_until(deadline::never()); }

  // recv_until gives up at the deadline with `timed_out`; the receiver then stays as it was.
  [[nodiscard]] std::expected<T, recv_error> recv_until(deadline until) {
    detail::oneshot_core& core = ref_.require();
    return take(core, detail::oneshot_receive(core, until));
  }
  template <class Rep, class Period>
  [[nodiscard]] std::expected<T, recv_error> recv_for(std::chrono::duration<Rep, Period> duration) {
    return recv_until(deadline(duration));
  }

  // try_recv answers `empty` where recv would park. Never parks; no stop point.
  [[nodiscard]] std::expected<T, recv_error> try_recv() {
    detail::oneshot_core& core = ref_.require();
    return take(core, detail::oneshot_try_receive(core));
  }

  // close makes a send hand its value back; a value already sent is destroyed. Never parks.
  void close() noexcept { ref_ = {}; }

  [[nodiscard]] explicit operator bool() const noexcept { return ref_.get() != nullptr; }

 private:
  friend struct detail::select_access;
  template <class U>
  friend struct oneshot_ends;
  friend class monitor_handle;
  explicit oneshot_receiver(detail::oneshot_core* core) noexcept : ref_(core) {}

  std::expected<T, recv_error> take(detail::oneshot_core& core, detail::channel_status status) {
    switch (status) {
      case detail::channel_status::unready:
        return std::unexpected(recv_error::empty);
      case detail::channel_status::timed_out:
        return std::unexpected(recv_error::timed_out);
      case detail::channel_status::closed:
        ref_ = {};
        return std::unexpected(recv_error::closed);
      case detail::channel_status::done:
        break;
    }
    // The core destroys the value with the receiver, also where the move throws.
    const detail::oneshot_receiver_ref received = std::move(ref_);
    return std::expected<T, recv_error>(std::in_place,
                                        std::move(*static_cast<T*>(detail::oneshot_place(core))));
  }

  detail::oneshot_receiver_ref ref_;
};

// oneshot_ends is what oneshot returns; made for a structured binding.
template <class T>
struct oneshot_ends {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::move_constructible<T>,
                "a oneshot carries a value that can be moved");
  oneshot_sender<T> tx;
  oneshot_receiver<T> rx;

  [[nodiscard]] static oneshot_ends make() {
    detail::oneshot_core* const core = detail::oneshot_create(detail::value_type_of<T>);
    return {oneshot_sender<T>(core), oneshot_receiver<T>(core)};
  }
};

// oneshot makes both ends. Any thread; never parks.
template <class T>
[[nodiscard]] oneshot_ends<T> oneshot() {
  return oneshot_ends<T>::make();
}

}  // namespace smarm
