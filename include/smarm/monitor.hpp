// monitor watches an actor and tells when it has ended, and why: one `down` for each monitor.
//
//   auto watch = smarm::monitor(worker.id());
//   smarm::down gone = watch.recv();               // waits for the end
//
//   auto [tx, rx] = smarm::channel<smarm::down>();
//   auto watch = smarm::monitor(worker.id(), tx);  // many monitors, one channel
//
//   auto watch = smarm::monitor(worker.id(), smarm::to_mailbox);  // among the caller's messages
//
// A monitor on an actor that has already ended, or on a pid that never was one, says so by a down
// with exit_kind::noproc at once. A down is allocated when the monitor is set, so that it
// arrives whatever the state of memory at the actor's end.
//
// Threads: monitor may be called by any thread; an actor watches actors of its own runtime, any
// other thread those of every runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <smarm/channel.hpp>
#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/pid.hpp>

namespace smarm {

class monitor_handle;

// monitor_id tells the monitors apart that deliver into one mailbox; elsewhere it is 0.
using monitor_id = std::uint64_t;

// down is the news that a watched actor has ended.
struct down {
  pid who;
  exit_reason reason;
  monitor_id ref = 0;     // of the monitor that tells
  std::string name = {};  // by which it was watched, where it was by name
};

// to_mailbox as monitor's second argument: the down comes to the caller's mailbox (mailbox.hpp), in
// order with what the watched actor sent before its end.
struct to_mailbox_t {};
inline constexpr to_mailbox_t to_mailbox;

namespace detail {
class monitor_hook;
struct monitor_access;
}  // namespace detail

// monitor_ref names one monitor that delivers into a channel. Dropping it leaves the monitor in
// place: only demonitor takes it off.
class monitor_ref {
 public:
  monitor_ref() noexcept = default;
  monitor_ref(monitor_ref&& other) noexcept : hook_(std::exchange(other.hook_, nullptr)) {}
  monitor_ref& operator=(monitor_ref&& other) noexcept;
  ~monitor_ref();

  // target is the pid that was given to monitor; misuse on an empty one.
  [[nodiscard]] pid target() const;

  // id is what the monitor's down will carry.
  [[nodiscard]] monitor_id id() const noexcept;

  // demonitor takes the monitor off and empties this reference: true if its down was not and will
  // not be delivered, false if it was. Where it goes to a mailbox none is delivered after this
  // call; elsewhere one that is just being delivered may still come. Any thread; never parks.
  bool demonitor() noexcept;

  // demonitor_and_flush also takes a down that is already in the caller's mailbox out of it.
  bool demonitor_and_flush() noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return hook_ != nullptr; }

 private:
  friend monitor_ref monitor(pid who, const sender<down>& into);
  friend struct detail::monitor_access;
  friend monitor_handle monitor(pid who);
  explicit monitor_ref(detail::monitor_hook* hook) noexcept : hook_(hook) {}

  detail::monitor_hook* hook_ = nullptr;
};

// monitor_handle is a monitor with a place of its own for the down. Dropping it takes it off.
class monitor_handle {
 public:
  // An empty handle; every wait on it throws misuse.
  monitor_handle() noexcept = default;
  monitor_handle(monitor_handle&&) noexcept = default;
  monitor_handle& operator=(monitor_handle&& other) noexcept;
  ~monitor_handle() { (void)ref_.demonitor(); }

  [[nodiscard]] pid target() const { return ref_.target(); }

  // recv waits for the down, and empties the handle. Parks; a stop point on entry and while
  // parked; blocks a thread that is no actor. recv_until gives up at the deadline (`timed_out`) and
  // try_recv at once (`empty`; never parks, no stop point); the handle then stays as it was.
  [[nodiscard]] down recv();
  [[nodiscard]] std::expected<down, recv_error> recv_until(deadline until);
  template <class Rep, class Period>
  [[nodiscard]] std::expected<down, recv_error> recv_for(
      std::chrono::duration<Rep, Period> duration) {
    return recv_until(deadline(duration));
  }
  [[nodiscard]] std::expected<down, recv_error> try_recv();

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(ref_); }

 private:
  friend struct detail::select_access;
  friend monitor_handle monitor(pid who);
  monitor_handle(monitor_ref ref, oneshot_receiver<down> rx) noexcept
      : ref_(std::move(ref)), rx_(std::move(rx)) {}

  monitor_ref ref_;
  oneshot_receiver<down> rx_;
};

// monitor watches `who` until the handle is dropped. Any thread; never parks; no stop point.
[[nodiscard]] monitor_handle monitor(pid who);

// monitor with a sender delivers the down into that channel, which must be unbounded (else misuse):
// the end of an actor waits for nobody. A channel whose receiver is gone loses it. Any thread;
// never parks; no stop point.
monitor_ref monitor(pid who, const sender<down>& into);

// monitor to_mailbox delivers the down into the caller's mailbox. The caller is an actor, else
// misuse. Never parks; no stop point. By name: nobody of that name is a down with noproc at once.
monitor_ref monitor(pid who, to_mailbox_t);
monitor_ref monitor(std::string_view name, to_mailbox_t);

}  // namespace smarm
