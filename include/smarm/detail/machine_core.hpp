// machine_core is what a state machine has beyond a server: events that wait for another state,
// events that it has raised, and timeouts. It knows that there are states, not which.
//
// The next event is, in this order: the oldest that it holds (raised, or postponed and taken up
// again); a timeout that was over when it was started; a state or named timeout that is due; the
// oldest message; where there is none, an event timeout that is due.
//
// Invariants
//   1. A postponed event is whole: its handler got it by const reference and did not take the
//      caller's handle away.
//   2. At most one timeout for each kind and name; it is gone when its event is handled.
// Threads: the machine's own actor.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/server_core.hpp>
#include <smarm/start.hpp>

namespace smarm {

// The events of a state machine's timeouts.
struct state_timeout {};
struct event_timeout {};
struct named_timeout {
  std::string name;
};

namespace detail {

enum class machine_timer : std::uint8_t { state, named, event };

class machine_core : public server_core {
 public:
  explicit machine_core(starting& me) : server_core(me) { ask_for_own(); }

  // What a handler may ask for; see state_machine. `call` names the caller in a misuse.
  void require_handler(const char* call) const;
  void postpone();
  void repeat_state();
  void raise(full_envelope event);
  void start_timer(machine_timer kind, std::string name, deadline until);
  // cancel_timer: true if it had not been handled.
  bool cancel_timer(machine_timer kind, const std::string& name) noexcept;
  void set_timeout(deadline until) override;

 protected:
  // dispatch gives the event to its handler; true: it is whole and can be postponed afterwards.
  [[nodiscard]] virtual bool dispatch(full_envelope& event) = 0;
  // commit makes the state that was asked for the present one; true: it is another.
  [[nodiscard]] virtual bool commit() = 0;
  // enter is the call that tells of a state; the state before is the machine's to know.
  virtual void enter() = 0;

  [[nodiscard]] bool is_postponing() const noexcept { return postpone_; }

  void started() override;
  void handle(full_envelope sealed) override { process(std::move(sealed)); }
  bool take_own() override;
  [[nodiscard]] deadline next_due() const override;
  void handle_due() override;

 private:
  struct timer {
    machine_timer kind;
    bool is_over;   // was when it was started
    bool is_fresh;  // started by the handler that runs
    deadline until;
    std::string name;
  };
  using timers = std::vector<timer>;

  void process(full_envelope event);
  void take_up(bool state_changed);
  void enter_state();
  void fire(timers::iterator which);
  [[nodiscard]] timers::iterator find_timer(machine_timer kind, const std::string& name) noexcept;

  std::deque<full_envelope> held_;
  std::vector<full_envelope> postponed_;  // oldest first
  std::vector<full_envelope> raised_;     // by the handler that runs
  timers timers_;                         // in the order in which they were started
  enum class phase : std::uint8_t { other, event, enter };
  phase phase_ = phase::other;
  bool postpone_ = false;
  bool repeat_ = false;
};

// running_machine is the state machine that the calling actor is, else misuse.
[[nodiscard]] machine_core& running_machine(const char* call);

}  // namespace detail
}  // namespace smarm
