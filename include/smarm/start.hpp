// A synchronous start: the starter goes on when the new actor says that it is ready, or has failed.
//
//   auto started = smarm::start_link({.name = "cache"}, [](smarm::starting& me) {
//     table t = load();        // an exception here is the starter's answer
//     me.ready();              // the starter has its pid now
//     serve(t);
//   });
//   if (!started) ... started.error() ...
//
// Servers, supervisors and their children start so: who depends on a child is started after it.
// Such an actor also reports its end (report_kind::crash) where that is not in good order.
//
// Sources: OTP 25, proc_lib(3): start_link/5, init_ack/2, init_fail.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/pid.hpp>
#include <smarm/registry.hpp>

namespace smarm {

struct start_error {
  enum class what : std::uint8_t {
    failed,           // it ended before it was ready: reason
    ignored,          // it said that there is nothing to do, and ended as normal
    timed_out,        // it was not ready at the deadline, and was killed
    already_started,  // who has the name it wanted: holder
  };
  what kind = what::failed;
  exit_reason reason = {};  // for already_started: {already_started,Holder}
  pid holder = {};

  [[nodiscard]] bool is_ignored() const noexcept { return kind == what::ignored; }
  friend bool operator==(const start_error&, const start_error&) noexcept = default;
};

[[nodiscard]] std::string to_string(const start_error& error);

using start_result = std::expected<pid, start_error>;

struct start_settings {
  std::string name = {};               // registered before the function runs; empty: none
  std::size_t stack_size = 0;          // as spawn_options
  deadline until = deadline::never();  // for becoming ready
};

// starting is the new actor's side of its start.
class starting {
 public:
  starting(const starting&) = delete;
  starting& operator=(const starting&) = delete;

  // parent is who started it.
  [[nodiscard]] pid parent() const noexcept { return parent_; }
  [[nodiscard]] bool is_linked() const noexcept { return linked_; }

  // ready lets the starter go on. Once; later calls do nothing. Never parks.
  void ready();
  // ignore tells the starter that there is nothing to do here; then the function returns.
  void ignore();
  [[nodiscard]] bool is_ignored() const noexcept { return is_ignored_; }
  // fail tells the starter why there is nothing, and ends the actor with that reason.
  [[noreturn]] void fail(exit_reason why);

 private:
  friend struct starting_access;
  starting(pid parent, bool linked, oneshot_sender<start_result> tell) noexcept
      : parent_(parent), linked_(linked), tell_(std::move(tell)) {}

  pid parent_;
  bool linked_;
  bool is_ignored_ = false;
  oneshot_sender<start_result> tell_;
};

// start runs the function as a new actor and waits until it is ready. start_link links it to the
// caller; where the start fails, a caller that traps exits gets the exit_signal as well, except
// after a timeout, and one that does not is ended by it, as in OTP 25. The caller is an actor, else
// misuse. Parks; a stop point: a start that is cut short by a stop leaves no actor behind.
[[nodiscard]] start_result start(const start_settings& settings,
                                 std::function<void(starting&)> function);
[[nodiscard]] start_result start_link(const start_settings& settings,
                                      std::function<void(starting&)> function);

}  // namespace smarm
