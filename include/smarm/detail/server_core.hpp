// server_core is the loop of a server, with all that does not depend on its type; a host says what
// to do with a message: server_host for servers, machine_host for state machines.
//
// Invariants
//   1. One message is handled at a time, in the order of arrival; what a handler asked for
//      (continue_with, stop) is done before the next.
//   2. terminate is called once at most: when the server stops itself, is told to, fails, or, if it
//      traps exits, its parent ends. Never where it is unwound by a stop, a signal or a kill.
// Threads: the server's own actor.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/start.hpp>

namespace smarm {

// server_statistics is what a server counts since it was told to.
struct server_statistics {
  std::chrono::steady_clock::time_point since;
  std::uint64_t messages_in = 0;   // calls, casts and infos; no requests of the system's
  std::uint64_t messages_out = 0;  // replies that handlers returned
};

namespace detail {

class actor_box;
class server_core;

// host_tag<Host> is what an envelope that only a Host can open says it holds.
template <class Host>
struct host_tag {};

// host_message_type is the type of such an envelope.
struct host_message_type : message_type {
  void (*handle)(server_core& host, envelope& sealed);  // may move the payload's contents out
};

class server_core {
 public:
  explicit server_core(starting& me);
  server_core(const server_core&) = delete;
  server_core& operator=(const server_core&) = delete;
  virtual ~server_core();

  // run is the actor's life: begin, the word that it is ready, messages, the end.
  void run();

  // What a handler may ask for; see this_server.
  void stop(exit_reason why);
  void ignore() noexcept { is_ignored_ = true; }
  virtual void set_timeout(deadline until) { timeout_ = until; }
  void continue_with(std::move_only_function<void()> step);
  void hibernate() noexcept { is_to_hibernate_ = true; }

  void suspend(bool on) noexcept { is_suspended_ = on; }
  void count(bool on);
  [[nodiscard]] std::optional<server_statistics> statistics() const { return counted_; }

  // end_before_reply does what a handler's stop asks for before its reply goes out: who is answered
  // finds done what terminate does.
  void end_before_reply();
  void count_reply() noexcept {
    if (counted_) ++counted_->messages_out;
  }

 protected:
  // begin makes the server; what it throws fails the start. started runs when the starter goes on.
  virtual void begin(starting& me) = 0;
  virtual void started() {}
  // handle is given every message but the system's and the parent's exit.
  virtual void handle(full_envelope sealed) = 0;
  // take_own is asked before the mailbox is, where ask_for_own said so: true: something of the
  // server's own was due, and has been handled. next_due is when handle_due is called unless a
  // message comes.
  virtual bool take_own() { return false; }
  void ask_for_own() noexcept { has_own_ = true; }
  [[nodiscard]] virtual deadline next_due() const { return timeout_; }
  virtual void handle_due() = 0;
  virtual void terminate(const exit_reason& why) = 0;
  [[nodiscard]] virtual const std::type_info& host_type() const noexcept = 0;

  [[nodiscard]] bool is_stopping() const noexcept { return stopping_.has_value(); }
  void clear_timeout() noexcept { timeout_ = deadline::never(); }
  void report_unexpected(const message_type& of);

 private:
  template <class F>
  void guarded(F handler);
  void serve();
  [[nodiscard]] bool step();
  [[nodiscard]] inline full_envelope next_message();
  void take_message(full_envelope sealed);
  void run_terminate();
  void end();
  void report_end(const exit_reason& why);

  starting& me_;
  actor_box& box_;    // of the actor that it runs in
  const pid parent_;  // valid where it is linked
  deadline timeout_;
  std::deque<std::move_only_function<void()>> steps_;  // of continue_with
  std::optional<exit_reason> stopping_;
  std::optional<server_statistics> counted_;
  bool has_own_ = false;  // constant once made
  bool is_ignored_ = false;
  bool is_suspended_ = false;
  bool is_to_hibernate_ = false;  // in the next wait for a message
  bool is_terminated_ = false;
};

// system_request is served also while the server is suspended. `host` says for which host it is;
// null: for any.
struct system_request {
  const std::type_info* host;
  std::move_only_function<void(server_core&)> serve;
};

// running_server is the server that the calling actor is. Throws misuse, naming the call,
// elsewhere.
[[nodiscard]] server_core& running_server(const char* call);

}  // namespace detail
}  // namespace smarm
