// wait_reason says why an actor is parked: one value for each kind of wait, shown in dumps.
// A new kind of wait gets a value of its own; none is used for two.
#pragma once

#include <cstdint>
#include <string_view>

namespace smarm::detail {

enum class wait_reason : std::uint8_t {
  none,
  sleep,
  join,
  channel_receive,
  channel_send,
  oneshot_receive,
  mutex_lock,
  condition_variable,
  semaphore_acquire,
  monitor,
  mailbox,
  select,
  reply,
  fd_readable,
  fd_writable,
  blocking_job,
  signal,
};

[[nodiscard]] constexpr std::string_view to_string(wait_reason reason) noexcept {
  switch (reason) {
    case wait_reason::none:
      return "none";
    case wait_reason::sleep:
      return "sleep";
    case wait_reason::join:
      return "join";
    case wait_reason::channel_receive:
      return "channel receive";
    case wait_reason::channel_send:
      return "channel send";
    case wait_reason::oneshot_receive:
      return "oneshot receive";
    case wait_reason::mutex_lock:
      return "mutex lock";
    case wait_reason::condition_variable:
      return "condition variable";
    case wait_reason::semaphore_acquire:
      return "semaphore acquire";
    case wait_reason::monitor:
      return "monitor";
    case wait_reason::mailbox:
      return "mailbox";
    case wait_reason::select:
      return "select";
    case wait_reason::reply:
      return "reply";
    case wait_reason::fd_readable:
      return "fd readable";
    case wait_reason::fd_writable:
      return "fd writable";
    case wait_reason::blocking_job:
      return "blocking job";
    case wait_reason::signal:
      return "signal";
  }
  return "unknown";
}

}  // namespace smarm::detail
