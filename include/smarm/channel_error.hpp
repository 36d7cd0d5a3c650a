// What a send or a receive answers when it did not happen: shared by channel, oneshot and monitor.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace smarm {

enum class send_failure : std::uint8_t {
  closed,     // the receiver is gone, or has closed the channel
  timed_out,  // the deadline passed while the channel was full
  full,       // try_send found no room
};

// send_error says why a value was not sent, and hands it back.
template <class T>
struct send_error {
  send_failure why = send_failure::closed;
  T value;
};

enum class recv_error : std::uint8_t {
  closed,     // nothing is queued, and nobody is left who could send
  timed_out,  // the deadline passed while nothing was queued
  empty,      // try_recv found nothing queued
};

[[nodiscard]] constexpr std::string_view to_string(send_failure why) noexcept {
  switch (why) {
    case send_failure::closed:
      return "closed";
    case send_failure::timed_out:
      return "timed out";
    case send_failure::full:
      return "full";
  }
  return "unknown";
}

[[nodiscard]] constexpr std::string_view to_string(recv_error why) noexcept {
  switch (why) {
    case recv_error::closed:
      return "closed";
    case recv_error::timed_out:
      return "timed out";
    case recv_error::empty:
      return "empty";
  }
  return "unknown";
}

}  // namespace smarm
