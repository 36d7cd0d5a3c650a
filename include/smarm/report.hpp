// Reports: what servers, supervisors and failing actors have to say to those who run the system.
//
// They have the kinds that OTP's logger reports have, and go to one handler of the process, by
// default by to_string on standard error. Orderly ends (normal, shutdown) are no reports.
//
// Sources: OTP's SASL error logging, "Supervisor Report", "Crash Report"; gen_server(3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/term.hpp>

namespace smarm {

enum class report_kind : std::uint8_t {
  crash,             // an actor that was started with an acknowledgement ended in disorder
  server_terminate,  // a server's handler failed, or told it to stop with a bad reason
  child_terminated,  // a supervisor's child ended and was not told to
  start_error,       // a supervisor could not start a child
  shutdown,          // a supervisor gives up: too many restarts
  shutdown_error,    // a child ended otherwise than told, or had to be killed or left behind
  progress,          // a supervisor has started a child
  unexpected,        // a message that nobody handles
};

[[nodiscard]] std::string_view to_string(report_kind kind) noexcept;

// report is one event. A child's pid and id stand in a supervisor's reports only.
struct report {
  report_kind kind = report_kind::crash;
  pid who = {};           // who reports
  std::string name = {};  // its registered name, or the name given at spawn
  exit_reason reason = {};
  pid child = {};
  term id = {};           // of the child
  std::string text = {};  // more, for people
};

// to_string is a line, and below it, where the reason is an error with a stack, that stack: a line
// a function, indented (exit_reason::stack_text). A server_terminate has none, since the crash that
// follows has it.
[[nodiscard]] std::string to_string(const report& what);

// report_handler is called by the actor that reports, on its scheduler. It may send; it should not
// park, since what it reports on waits meanwhile. What it throws is swallowed.
using report_handler = std::function<void(const report&)>;

// set_report_handler puts a handler in the place of the one before and returns that; an empty one
// stands for the line on standard error (progress is left out there). Any thread; never parks.
report_handler set_report_handler(report_handler handler);

// emit_report gives a report to the handler. Any thread.
void emit_report(const report& what) noexcept;

}  // namespace smarm
