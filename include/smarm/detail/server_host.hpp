// server_host runs one server of the user's: which handler a message goes to, and what becomes of
// what it returns.
//
// A message that was sent by call or cast brings its own way to the handler, made where the types
// of both are known. An info comes with its type alone, so the infos are tried one by one.
// Threads: the server's own actor.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <smarm/call.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/server_core.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/start.hpp>

namespace smarm {

// timeout is what a server is told when the time of this_server::set_timeout is over.
struct timeout {};

// infos lists the types of messages that a server takes from a plain send, as `using infos`.
template <class... Messages>
struct infos {};

namespace detail {

template <class M>
using reply_of = typename M::reply;

template <class S, class M>
concept handles = requires(S& server, M message) { server.handle(std::move(message)); };

// A call is answered by what its handler returns, or by the handle it is given.
template <class S, class M>
concept handles_later = requires(S& server, M message, from<reply_of<M>> back) {
  server.handle(std::move(message), std::move(back));
};
template <class S, class M>
concept handles_now = requires(S& server, M message) {
  { server.handle(std::move(message)) } -> std::convertible_to<reply_of<M>>;
};

template <class M>
struct call_payload {
  M message;
  from<reply_of<M>> back;
};

// host_envelope makes an envelope of that type around a value.
template <class Payload>
[[nodiscard]] full_envelope host_envelope(const host_message_type& type, Payload&& value) {
  envelope* const fresh = envelope_allocate(type);
  try {
    ::new (payload_of(*fresh)) std::decay_t<Payload>(std::forward<Payload>(value));
  } catch (...) {
    envelope_free(*fresh);
    throw;
  }
  return full_envelope(fresh);
}

template <class Host, class M>
inline constexpr host_message_type cast_type{
    {sizeof(M), alignof(M), message_type_of<M>.destroy, &typeid(host_tag<Host>)},
    &Host::template on_cast<M>};
template <class Host, class M>
inline constexpr host_message_type call_type{
    {sizeof(call_payload<M>), alignof(call_payload<M>), message_type_of<call_payload<M>>.destroy,
     &typeid(host_tag<Host>),
     shares_block<reply_of<M>, call_payload<M>> ? &call_give_back : nullptr},
    &Host::template on_call<M>};

template <class M>
[[nodiscard]] M& payload_as(envelope& sealed) noexcept {
  return *static_cast<M*>(payload_of(sealed));
}

template <class S>
class server_host final : public server_core {
 public:
  using maker = std::move_only_function<void(std::optional<S>&)>;

  server_host(starting& me, maker make) : server_core(me), make_(std::move(make)) {}

  // What may be cast to it and called of it.
  template <class M>
  static constexpr bool takes = handles<S, M>;
  template <class M>
  static constexpr bool answers = handles_now<S, M> || handles_later<S, M>;

  [[nodiscard]] S& subject() noexcept { return *server_; }

  template <class M>
  static void on_cast(server_core& core, envelope& sealed) {
    auto& host = static_cast<server_host&>(core);
    host.subject().handle(std::move(payload_as<M>(sealed)));
  }

  template <class M>
  static void on_call(server_core& core, envelope& sealed) {
    auto& host = static_cast<server_host&>(core);
    auto& [message, back] = payload_as<call_payload<M>>(sealed);
    if constexpr (handles_later<S, M>) {
      host.subject().handle(std::move(message), std::move(back));
    } else if constexpr (std::is_void_v<reply_of<M>>) {
      host.subject().handle(std::move(message));
      host.end_before_reply();
      host.count_reply();
      (void)back.reply();
    } else {
      reply_of<M> value = host.subject().handle(std::move(message));
      host.end_before_reply();
      host.count_reply();
      (void)back.reply(std::move(value));
    }
  }

 private:
  void begin(starting& me) override {
    make_(server_);
    make_ = nullptr;
    if constexpr (requires { server_->init(me); }) server_->init(me);
  }

  void handle(full_envelope sealed) override {
    clear_timeout();
    const message_type& type = *sealed->type;
    if (type.info == &typeid(host_tag<server_host>)) {
      static_cast<const host_message_type&>(type).handle(*this, *sealed);
    } else if (try_info<down>(sealed) || try_info<exit_signal>(sealed) || try_declared(sealed)) {
    } else if constexpr (handles<S, any_message>) {
      server_->handle(message_access::wrap(std::move(sealed)));
    } else {
      report_unexpected(type);
    }
  }

  void handle_due() override {
    clear_timeout();
    if constexpr (handles<S, timeout>) {
      server_->handle(timeout{});
    } else {
      report_unexpected(message_type_of<timeout>);
    }
  }

  void terminate(const exit_reason& why) override {
    if constexpr (requires { server_->terminate(why); }) server_->terminate(why);
  }

  [[nodiscard]] const std::type_info& host_type() const noexcept override {
    return typeid(server_host);
  }

  template <class M>
  bool try_info(full_envelope& sealed) {
    if constexpr (handles<S, M>) {
      if (sealed->type != &message_type_of<M>) return false;
      const full_envelope taken = std::move(sealed);
      server_->handle(std::move(payload_as<M>(*taken)));
      return true;
    } else {
      return false;
    }
  }

  template <class... Messages>
  bool try_each(full_envelope& sealed, infos<Messages...>) {
    static_assert((handles<S, Messages> && ...), "each of `infos` has its handle");
    return (try_info<Messages>(sealed) || ...);
  }
  bool try_declared(full_envelope& sealed) {
    if constexpr (requires { typename S::infos; }) {
      return try_each(sealed, typename S::infos{});
    } else {
      return false;
    }
  }

  maker make_;
  std::optional<S> server_;
};

// host_for is the host of a type of server.
template <class S>
struct host_for {
  using type = server_host<S>;
};
template <class S>
using host_of = typename host_for<S>::type;

}  // namespace detail
}  // namespace smarm
