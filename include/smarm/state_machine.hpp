// State machines: servers whose events may wait for another state, with timeouts that belong to a
// state.
//
//   enum class door_state { closed, open };
//   struct door : smarm::state_machine<door, door_state> {
//     struct push {};
//     struct is_open { using reply = bool; };
//     door() : state_machine(door_state::closed) {}
//     void handle(door_state now, push) {
//       if (now == door_state::open) return postpone();       // until it is closed again
//       go_to(door_state::open);
//       start_state_timeout(5s);
//     }
//     void handle(smarm::state_timeout) { go_to(door_state::closed); }
//     bool handle(is_open) { return state() == door_state::open; }
//     void enter(door_state before) { ... }                   // wanted: told of each state
//   };
//   auto ref = smarm::start_machine<door>();                  // as start_server
//   ref->cast(door::push{});
//
// Handlers are those of a server (server.hpp), and may take the present state first. They get the
// event by const reference or a copy of it, and for a call that is answered later a from<R>&, so
// that what is postponed is still whole; a handler that takes its event by && cannot postpone it.
//
// What is asked for in a handler is done when it has returned: the reply goes out, the event is
// postponed, the state changes; then enter is called, and the next event taken:
//   - what was raised comes first, in that order; after a change of state then the postponed
//     events, oldest first; then what the machine holds already; then its messages;
//   - a state timeout ends when the state changes, a named one does not, and an event timeout ends
//     with any event. One whose time is over when it is started comes after the events that the
//     machine holds and before every message that it has not yet received.
// enter is called for the first state, after each change, and for repeat_state, never for go_to to
// the present state. It may start timeouts, and nothing else.
//
// this_server::stop, ignore and continue_with are for machines too.
// Difference from OTP: there is one way to write handlers, and data is the struct.
//
// Source: OTP 25, gen_statem(3).
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/machine_core.hpp>
#include <smarm/detail/machine_host.hpp>
#include <smarm/detail/server_host.hpp>
#include <smarm/server.hpp>
#include <smarm/this_server.hpp>

namespace smarm {

// state_machine is the base of a machine Self whose states are values of State. It is made by
// start_machine. What is protected is for handlers, the timeouts and raise also for constructors
// and enter; elsewhere each throws misuse. Nothing here parks.
template <class Self, class State>
  requires std::equality_comparable<State> && std::copyable<State>
class state_machine {
 public:
  using state_type = State;

  [[nodiscard]] State state() const { return state_; }

 protected:
  explicit state_machine(State first) : state_(first), previous_(first), next_(first) {}

  // go_to changes the state; to the present one it changes nothing. The last call counts.
  void go_to(State next) {
    detail::running_machine("go_to").require_handler("go_to");
    next_ = std::move(next);
  }
  // repeat_state has enter called as if the present state were entered again.
  void repeat_state() { detail::running_machine("repeat_state").repeat_state(); }
  // postpone puts the event back until the state has changed.
  void postpone() { detail::running_machine("postpone").postpone(); }
  // raise puts an event in front of all others.
  template <class M>
  void raise(M event) {
    using host = detail::machine_host<Self>;
    static_assert(host::template takes<M>, "the machine handles this event");
    detail::running_machine("raise").raise(
        detail::host_envelope(detail::cast_type<host, M>, std::move(event)));
  }

  // Each start takes the place of a timeout of the same kind, or name, that is running. A cancel is
  // true where there was one.
  void start_state_timeout(deadline until) { start(detail::machine_timer::state, {}, until); }
  bool cancel_state_timeout() { return cancel(detail::machine_timer::state, {}); }
  void start_event_timeout(deadline until) { start(detail::machine_timer::event, {}, until); }
  bool cancel_event_timeout() { return cancel(detail::machine_timer::event, {}); }
  void start_timeout(std::string name, deadline until) {
    start(detail::machine_timer::named, std::move(name), until);
  }
  bool cancel_timeout(const std::string& name) {
    return cancel(detail::machine_timer::named, name);
  }

 private:
  friend detail::machine_host<Self>;

  static void start(detail::machine_timer kind, std::string name, deadline until) {
    detail::running_machine("start_timeout").start_timer(kind, std::move(name), until);
  }
  static bool cancel(detail::machine_timer kind, const std::string& name) {
    return detail::running_machine("cancel_timeout").cancel_timer(kind, name);
  }
  [[nodiscard]] State previous() const { return previous_; }
  [[nodiscard]] bool commit() {
    previous_ = state_;
    state_ = next_;
    return !(state_ == previous_);
  }

  State state_;
  State previous_;
  State next_;
};

namespace detail {

template <class S>
concept is_machine = requires { typename S::state_type; } &&
                     std::derived_from<S, state_machine<S, typename S::state_type>>;

template <is_machine S>
struct host_for<S> {
  using type = machine_host<S>;
};

}  // namespace detail

// start_machine and start_machine_link are start_server and start_server_link.
template <class S, class... Args>
[[nodiscard]] server_start<S> start_machine(const start_settings& settings = {}, Args&&... args) {
  static_assert(detail::is_machine<S>, "a machine derives from state_machine<itself, its states>");
  return start_server<S>(settings, std::forward<Args>(args)...);
}
template <class S, class... Args>
[[nodiscard]] server_start<S> start_machine_link(const start_settings& settings = {},
                                                 Args&&... args) {
  static_assert(detail::is_machine<S>, "a machine derives from state_machine<itself, its states>");
  return start_server_link<S>(settings, std::forward<Args>(args)...);
}

}  // namespace smarm
