// machine_host runs one state machine of the user's: which handler an event goes to.
// Threads: the machine's own actor.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <smarm/call.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/machine_core.hpp>
#include <smarm/detail/server_host.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/start.hpp>

namespace smarm {

template <class Self, class State>
  requires std::equality_comparable<State> && std::copyable<State>
class state_machine;

namespace detail {

// handle_event calls handle(state, event...) where there is such a handler, else handle(event...).
template <class S, class... Args>
concept handles_in_state = requires(S& machine, Args... args) {
  machine.handle(machine.state(), static_cast<Args>(args)...);
};
template <class S, class... Args>
concept handles_in_any =
    requires(S& machine, Args... args) { machine.handle(static_cast<Args>(args)...); };
template <class S, class... Args>
concept handles_event = handles_in_state<S, Args...> || handles_in_any<S, Args...>;

template <class S, class... Args>
  requires handles_event<S, Args...>
decltype(auto) handle_event(S& machine, Args... args) {
  if constexpr (handles_in_state<S, Args...>) {
    return machine.handle(machine.state(), static_cast<Args>(args)...);
  } else {
    return machine.handle(static_cast<Args>(args)...);
  }
}

template <class S>
class machine_host final : public machine_core {
 public:
  using maker = std::move_only_function<void(std::optional<S>&)>;

  machine_host(starting& me, maker make) : machine_core(me), make_(std::move(make)) {}

  template <class M>
  static constexpr bool takes = handles_event<S, const M&> || handles_event<S, M&&>;
  template <class M>
  static constexpr bool answers_later = handles_event<S, const M&, from<reply_of<M>>&> ||
                                        handles_event<S, const M&, from<reply_of<M>>&&>;
  template <class M>
  static constexpr bool answers = answers_later<M> || takes<M>;

  [[nodiscard]] S& subject() noexcept { return *machine_; }

  template <class M>
  static void on_cast(server_core& core, envelope& sealed) {
    auto& host = static_cast<machine_host&>(core);
    host.give(payload_as<M>(sealed));
  }

  template <class M>
  static void on_call(server_core& core, envelope& sealed) {
    auto& host = static_cast<machine_host&>(core);
    auto& [message, back] = payload_as<call_payload<M>>(sealed);
    using handle_ref = from<reply_of<M>>&;
    using handle_taken = from<reply_of<M>>&&;
    if constexpr (handles_event<S, const M&, handle_ref>) {
      handle_event<S, const M&, handle_ref>(host.subject(), message, back);
    } else if constexpr (handles_event<S, const M&, handle_taken>) {
      handle_event<S, const M&, handle_taken>(host.subject(), message, std::move(back));
    } else if constexpr (std::is_void_v<reply_of<M>>) {
      host.give(message);
      host.answer(back);
    } else {
      reply_of<M> value = host.give(message);
      host.answer(back, std::move(value));
    }
    // Postponed, the call is answered by who handles it later.
    if (!back) host.is_whole_ = false;
  }

 private:
  using timeouts = infos<state_timeout, named_timeout, event_timeout, down, exit_signal>;
  using base_type = state_machine<S, typename S::state_type>;

  [[nodiscard]] base_type& base() noexcept { return *machine_; }

  template <class M>
  decltype(auto) give(M& message) {
    if constexpr (handles_event<S, const M&>) {
      return handle_event<S, const M&>(*machine_, message);
    } else {
      is_whole_ = false;
      return handle_event<S, M&&>(*machine_, std::move(message));
    }
  }

  template <class R, class... Value>
  void answer(from<R>& back, Value&&... value) {
    if (is_postponing()) return;
    end_before_reply();
    count_reply();
    (void)back.reply(std::forward<Value>(value)...);
  }

  void begin(starting& me) override {
    make_(machine_);
    make_ = nullptr;
    if constexpr (requires { machine_->init(me); }) machine_->init(me);
  }

  bool dispatch(full_envelope& event) override {
    is_whole_ = true;
    const message_type& type = *event->type;
    if (type.info == &typeid(host_tag<machine_host>)) {
      static_cast<const host_message_type&>(type).handle(*this, *event);
    } else if (try_each(*event, timeouts{}) || try_declared(*event)) {
    } else if constexpr (takes<any_message>) {
      is_whole_ = false;
      handle_event<S, any_message&&>(*machine_, message_access::wrap(std::move(event)));
    } else {
      report_unexpected(type);
    }
    return is_whole_;
  }

  bool commit() override { return base().commit(); }

  void enter() override {
    if constexpr (requires { machine_->enter(machine_->state()); }) {
      machine_->enter(base().previous());
    }
  }

  void terminate(const exit_reason& why) override {
    if constexpr (requires { machine_->terminate(why); }) machine_->terminate(why);
  }

  [[nodiscard]] const std::type_info& host_type() const noexcept override {
    return typeid(machine_host);
  }

  template <class M>
  bool try_info(envelope& event) {
    if constexpr (takes<M>) {
      if (event.type != &message_type_of<M>) return false;
      give(payload_as<M>(event));
      return true;
    } else {
      return false;
    }
  }
  template <class... Messages>
  bool try_each(envelope& event, infos<Messages...>) {
    return (try_info<Messages>(event) || ...);
  }
  bool try_declared(envelope& event) {
    if constexpr (requires { typename S::infos; }) {
      return try_each(event, typename S::infos{});
    } else {
      return false;
    }
  }

  maker make_;
  std::optional<S> machine_;
  bool is_whole_ = true;
};

}  // namespace detail
}  // namespace smarm
