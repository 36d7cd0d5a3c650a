// Applications: trees with a name that are started, stopped and depend on each other; and the main
// function of a service.
//
//   int main() {
//     return smarm::run_application({.strategy = smarm::restart_strategy::one_for_one},
//                                   {{.id = smarm::atom("web"), .start = start_web}});
//   }
//
// A program of several parts that are started and stopped apart has a registry of them:
//
//   auto apps = smarm::applications::start_link();
//   apps->load({.name = "db", .start = start_db_tree});
//   apps->load({.name = "web", .needs = {"db"}, .start = start_web_tree});
//   apps->ensure_all_started("web");                          // db, then web
//
// Source: OTP 25, application(3); systemd: sd_notify(3), sd_watchdog_enabled(3).
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <smarm/config.hpp>
#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/start.hpp>
#include <smarm/supervisor.hpp>

namespace smarm {

// ---- the registry of applications ------------------------------------------------------------

struct application_spec {
  std::string name = {};
  std::vector<std::string> needs = {};    // must run before this one is started
  std::function<start_result()> start{};  // starts its supervisor, linked to the caller
  std::function<void()> stopped{};        // called when its supervisor has ended, however that was
};

// application_type says what the end of a running application means.
enum class application_type : std::uint8_t {
  temporary,  // it is reported, and the others go on
  transient,  // the same where it ended as normal, otherwise as permanent
  permanent,  // all others are stopped, and the registry ends
};

struct application_error {
  enum class what : std::uint8_t {
    no_registry,      // it has ended
    timed_out,        // no answer at the deadline; what was asked may still be done
    not_loaded,       // `name` is not known
    already_loaded,   // `name`
    already_started,  // `name`
    not_started,      // `name`: which must be started before, or was to be stopped
    start_failed,     // `name`; `reason` says why
    circular,         // `name` needs itself, by way of others
  };
  what kind = what::not_loaded;
  std::string name = {};
  exit_reason reason = {};
  friend bool operator==(const application_error&, const application_error&) noexcept = default;
};

[[nodiscard]] std::string to_string(const application_error& error);

template <class T>
using application_result = std::expected<T, application_error>;

struct running_application {
  std::string name;
  application_type type = application_type::temporary;
  pid supervisor = {};
};

// applications refers to a registry, an actor. It traps exits and ends with its parent, or when a
// permanent application ends, by the reason {shutdown,{application_terminated,Name,Why}}; it then
// stops all that run, the last started first. Each call parks until the answer or the deadline and
// is a stop point; on a thread that is no actor it blocks that thread. An application is started
// and stopped by an actor of its own, so that a start may ask the registry.
class applications {
 public:
  explicit applications(pid registry) noexcept : registry_(registry) {}

  // start_link starts a registry; with a name, registered.
  [[nodiscard]] static std::expected<applications, start_error> start_link(std::string name = {});

  [[nodiscard]] pid id() const noexcept { return registry_; }

  application_result<void> load(application_spec spec, deadline until = deadline::never()) const;
  // start starts one whose needs all run; otherwise not_started names the first that does not.
  application_result<void> start(std::string name,
                                 application_type type = application_type::temporary,
                                 deadline until = deadline::never()) const;
  // ensure_all_started starts it and what it needs, and tells what it started, in that order. Where
  // one fails, those that it started are stopped again.
  application_result<std::vector<std::string>> ensure_all_started(
      const std::string& name, application_type type = application_type::temporary,
      deadline until = deadline::never()) const;
  // stop stops it, whoever needs it, and returns when its tree has ended.
  application_result<void> stop(std::string name, deadline until = deadline::never()) const;
  // running: the last started first.
  application_result<std::vector<running_application>> running(
      deadline until = deadline::never()) const;

 private:
  pid registry_;
};

// ---- the main function of a service ----------------------------------------------------------

// What run_application returns.
inline constexpr int application_ended = 0;         // by a signal or by itself, in good order
inline constexpr int application_start_failed = 1;  // the tree could not be started
inline constexpr int application_failed = 2;  // the tree ended by itself, and not as it should
inline constexpr int application_stop_timed_out = 3;  // it was told to stop, and had to be killed

struct application_options {
  config runtime = {};
  // how long the tree may take to stop before it is killed; a second signal kills it at once
  std::chrono::nanoseconds stop_time = std::chrono::seconds(30);
  // A supervisor that gives up ends as `shutdown`, and so does one by auto_shutdown. A tree that
  // ends so by itself has failed, unless this says that it has done its work.
  bool shutdown_is_success = false;
  // how long actors may take to unwind at the end; see run_application
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(5);
};

// run_application runs a tree as a service, until SIGTERM or SIGINT or until the tree ends by
// itself, and returns an exit code for main. `start` starts the tree, linked to the caller.
//
// Where systemd (or what stands for it) has set NOTIFY_SOCKET, it is told READY=1 after the start,
// STOPPING=1 before the stop and, where WATCHDOG_USEC is set for this process, WATCHDOG=1 at half
// of that time, from an actor: where no actor runs any more, it is not told.
//
// A signal that comes during the start takes effect after it. At the end every actor that is left
// is asked to stop. LIMIT: an actor that computes on without a stop point cannot be ended; after
// kill_grace the process is then ended by _Exit with the code, without destructors.
//
// Any thread that is no actor; blocks it. Throws what runtime and signals throw.
int run_application(const application_options& options, std::function<start_result()> start);
int run_application(supervisor_flags flags, std::vector<child_spec> specs,
                    const application_options& options = {});

}  // namespace smarm
