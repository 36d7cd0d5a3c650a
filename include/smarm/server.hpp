// Servers: an actor that owns a plain struct and handles one typed message after another.
//
//   struct counter {
//     struct add   { int by; using reply = int; };    // a call: has a reply
//     struct reset {};                                // a cast
//     int value = 0;
//     int  handle(add m) { return value += m.by; }
//     void handle(reset) { value = 0; }
//   };
//   auto ref = smarm::start_server<counter>({.name = "hits"});   // expected: the start may fail
//   ref->call(counter::add{2}, 5s);                              // expected<int, call_error>
//   ref->cast(counter::reset{});
//
// What a server S may have
//   S(args...)                       runs in the new actor; an exception is the starter's answer
//   void init(starting&)             then this: may ignore() or fail(reason)
//   R handle(M)                      where M::reply is R: a call, answered by what is returned
//   void handle(M, from<R>)          likewise, answered by the handle, now or later, by anybody
//   void handle(M)                   a cast, or a message of a plain send listed in S::infos
//   void handle(down), handle(exit_signal), handle(timeout)
//   void handle(any_message)         of a plain send, whatever is left
//   void terminate(const exit_reason&)
// A message that nobody handles is reported (report_kind::unexpected) and dropped.
//
// Ends. A handler that throws, or exits, ends the server with that; this_server::stop does so in
// good order. terminate is then called, and when the parent (the starter, where it is linked) ends
// and the server traps exits; it is not called on a kill, an untrapped signal or request_stop. A
// reason that is not orderly is reported: server_terminate, then crash.
//
// Differences from OTP: a thrown value is no return value but an error, since early returns need no
// throw here. The reply of a handler that also stops goes out after terminate, as there.
//
// Source: OTP 25, gen_server(3), sys(3).
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <smarm/call.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/server_core.hpp>
#include <smarm/detail/server_host.hpp>
#include <smarm/detail/server_requests.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/pid.hpp>
#include <smarm/start.hpp>
#include <smarm/this_server.hpp>

namespace smarm {

// server_ref is an address of a server of type S. A value, copied freely; nobody checks that who
// lives there is an S, but a message of the wrong server's is dropped as unexpected.
//
// Every function may be called by any thread, actor or not. Those that take a deadline park (they
// block a thread that is no actor) and are stop points.
template <class S>
class server_ref {
 public:
  // An address of nobody.
  server_ref() noexcept = default;
  explicit server_ref(pid who) noexcept : address_(who) {}
  explicit server_ref(std::string name) noexcept : address_(std::move(name)) {}

  // id is who is there now; nobody's pid where the name is free.
  [[nodiscard]] pid id() const noexcept { return address_.find(); }

  // call sends the message and waits for its reply. Throws std::bad_alloc, and what moving the
  // message or the reply throws.
  template <class M>
  call_result<detail::reply_of<M>> call(M message, deadline until = default_call_deadline()) const {
    detail::caller_ref caller;
    detail::full_envelope sealed = seal(message, caller);
    return detail::ask_and_wait<detail::reply_of<M>>(address_.find(), std::move(sealed),
                                                     std::move(caller), until);
  }

  // send_request is a call whose reply is taken later. Never parks; no stop point.
  template <class M>
  [[nodiscard]] request<detail::reply_of<M>> send_request(M message) const {
    detail::caller_ref caller;
    detail::full_envelope sealed = seal(message, caller);
    return detail::ask<detail::reply_of<M>>(address_.find(), std::move(sealed), std::move(caller));
  }

  // cast sends a message that has no reply. To nobody is as good, as in OTP. Never parks.
  template <class M>
  void cast(M message) const {
    using host = detail::host_of<S>;
    static_assert(!requires { typename M::reply; }, "a message with a reply is called, not cast");
    static_assert(host::template takes<M>, "the server handles this cast");
    detail::full_envelope sealed =
        detail::host_envelope(detail::cast_type<host, M>, std::move(message));
    (void)detail::post(address_.find(), sealed);
  }

  // stop has the server stop with that reason and waits for its end. noproc: it had ended before;
  // died: it ended with another reason.
  call_result<void> stop(const exit_reason& why = {}, deadline until = deadline::never()) const {
    return detail::stop_at(address_.find(), why, until);
  }

  // suspend has it handle nothing but requests of the system, and its parent's exit, until resume;
  // everything else stays queued in order.
  call_result<void> suspend(deadline until = default_call_deadline()) const {
    return system<void>([](detail::server_core& core) { core.suspend(true); }, until);
  }
  call_result<void> resume(deadline until = default_call_deadline()) const {
    return system<void>([](detail::server_core& core) { core.suspend(false); }, until);
  }

  // get_state is a copy of the server as it is between two messages. For people who look for
  // faults, and for tests.
  call_result<S> get_state(deadline until = default_call_deadline()) const {
    return replace_state([](const S& server) { return S(server); }, until);
  }
  // replace_state runs f(S&) in the server between two messages and returns what it does. What f
  // throws is thrown here, and the server lives on.
  template <std::invocable<S&> F>
  auto replace_state(F f, deadline until = default_call_deadline()) const
      -> call_result<std::invoke_result_t<F, S&>>;

  // start_statistics has it count from now on, from zero; statistics is the count so far, or
  // nothing where it does not count.
  call_result<void> start_statistics(deadline until = default_call_deadline()) const {
    return system<void>([](detail::server_core& core) { core.count(true); }, until);
  }
  call_result<void> stop_statistics(deadline until = default_call_deadline()) const {
    return system<void>([](detail::server_core& core) { core.count(false); }, until);
  }
  call_result<std::optional<server_statistics>> statistics(
      deadline until = default_call_deadline()) const {
    return system<std::optional<server_statistics>>(
        [](detail::server_core& core) { return core.statistics(); }, until);
  }

  friend bool operator==(const server_ref&, const server_ref&) = default;

 private:
  // seal makes the envelope of a call, and the caller's half of its cell.
  template <class M>
  static detail::full_envelope seal(M& message, detail::caller_ref& caller) {
    using host = detail::host_of<S>;
    static_assert(host::template answers<M>, "the server handles this call");
    return detail::seal_call<detail::reply_of<M>, detail::call_payload<M>>(
        detail::call_type<host, M>, message, caller);
  }

  template <class R, class F>
  call_result<R> system(F f, deadline until) const {
    return detail::ask_system<R>(address_.find(), nullptr, std::move(f), until);
  }

  detail::server_address address_;
};

template <class S>
template <std::invocable<S&> F>
auto server_ref<S>::replace_state(F f, deadline until) const
    -> call_result<std::invoke_result_t<F, S&>> {
  using host = detail::host_of<S>;
  using result = std::invoke_result_t<F, S&>;
  using outcome = std::expected<result, std::exception_ptr>;
  auto attempt = [f = std::move(f)](detail::server_core& core) mutable -> outcome {
    S& subject = static_cast<host&>(core).subject();
    try {
      if constexpr (std::is_void_v<result>) {
        std::invoke(f, subject);
        return {};
      } else {
        return std::invoke(f, subject);
      }
    } catch (const std::exception&) {
      return std::unexpected(std::current_exception());
    }
  };
  auto answer =
      detail::ask_system<outcome>(address_.find(), &typeid(host), std::move(attempt), until);
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (!*answer) std::rethrow_exception(answer->error());
  if constexpr (std::is_void_v<result>) {
    return {};
  } else {
    return std::move(**answer);
  }
}

// server_named is the server that has that name whenever it is used.
template <class S>
[[nodiscard]] server_ref<S> server_named(std::string name) {
  return server_ref<S>(std::move(name));
}

template <class S>
call_result<void> stop_server(const server_ref<S>& which, const exit_reason& why = {},
                              deadline until = deadline::never()) {
  return which.stop(why, until);
}

namespace detail {

template <class S, class... Args>
[[nodiscard]] std::function<void(starting&)> life_of(Args&&... args) {
  using host = host_of<S>;
  // Shared, since a std::function must be copyable and the arguments need not be.
  auto make = std::make_shared<typename host::maker>(
      [kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)](
          std::optional<S>& place) mutable {
        std::apply([&](auto&... each) { place.emplace(std::move(each)...); }, kept);
      });
  return [make](starting& me) {
    host running(me, std::move(*make));
    running.run();
  };
}

template <class S>
[[nodiscard]] std::expected<server_ref<S>, start_error> ref_of(start_result started) {
  if (!started) return std::unexpected(std::move(started.error()));
  return server_ref<S>(*started);
}

}  // namespace detail

template <class S>
using server_start = std::expected<server_ref<S>, start_error>;

// start_server starts a server S(args...) and waits until it is ready; start_server_link links it
// to the caller, which is its parent then. As start and start_link (start.hpp): the caller is an
// actor; parks; a stop point.
template <class S, class... Args>
[[nodiscard]] server_start<S> start_server(const start_settings& settings = {}, Args&&... args) {
  return detail::ref_of<S>(start(settings, detail::life_of<S>(std::forward<Args>(args)...)));
}
template <class S, class... Args>
[[nodiscard]] server_start<S> start_server_link(const start_settings& settings = {},
                                                Args&&... args) {
  return detail::ref_of<S>(start_link(settings, detail::life_of<S>(std::forward<Args>(args)...)));
}

}  // namespace smarm
