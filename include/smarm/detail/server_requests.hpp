// How a request finds its server, and the requests that every server serves.
#pragma once

#include <expected>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <smarm/call.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/server_core.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm::detail {

// server_address is a pid, or a name that is looked up at each use.
class server_address {
 public:
  server_address() noexcept = default;
  explicit server_address(pid who) noexcept : who_(who) {}
  explicit server_address(std::string name) noexcept : name_(std::move(name)) {}

  // find is who is there now; nobody's pid: none.
  [[nodiscard]] pid find() const noexcept;
  friend bool operator==(const server_address&, const server_address&) = default;

 private:
  pid who_;
  std::string name_;
};

[[nodiscard]] std::expected<void, call_error> stop_at(pid to, const exit_reason& why,
                                                      deadline until);

// ask_system has f(core) run by the server, between two messages.
template <class R, class F>
[[nodiscard]] call_result<R> ask_system(pid to, const std::type_info* host, F f, deadline until) {
  const auto make = [&](from<R> back) {
    return envelope_of(
        system_request{host, [f = std::move(f), back = std::move(back)](server_core& core) mutable {
                         if constexpr (std::is_void_v<R>) {
                           f(core);
                           (void)back.reply();
                         } else {
                           (void)back.reply(f(core));
                         }
                       }});
  };
  caller_ref caller;
  full_envelope sealed = seal<R>(make, caller);
  return ask_and_wait<R>(to, std::move(sealed), std::move(caller), until);
}

}  // namespace smarm::detail
