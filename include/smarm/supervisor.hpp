// Supervisors start actors in order, start them again when they fail, and stop them in reverse.
//
//   auto tree = smarm::start_supervisor_link(
//       {.strategy = smarm::restart_strategy::rest_for_one, .intensity = 3, .period = 10s},
//       {{.id = smarm::atom("db"), .start = [] { return start_db(); }},
//        {.id = smarm::atom("web"), .start = [] { return start_web(); }, .shutdown = 30s}});
//   smarm::supervisor_ref(*tree).explain();
//
// A child is what `start` starts: an actor linked to the supervisor, as start_link makes it. More
// than `intensity` restarts within `period` and the supervisor gives up: it stops all children and
// ends as `shutdown`, which its own supervisor may see to. A supervisor ends with its parent, with
// the parent's reason, after it has stopped its children; other exit signals do not touch it. One
// that is killed stops nobody in order: the links tell its children `killed`.
//
// Beyond OTP: nobody waits for ever for a child that was killed and computes on without a stop
// point. After `kill_grace` it is reported, left behind and no child any more. And restarts may be
// held back (restart_backoff).
//
// Source: OTP 25, supervisor(3), "Supervisor Behaviour" in the design principles.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/start.hpp>
#include <smarm/term.hpp>

namespace smarm {

enum class child_restart : std::uint8_t {
  permanent,  // always
  transient,  // unless it ended as normal, shutdown or {shutdown,_}
  temporary,  // never; its spec goes with it
};

enum class child_type : std::uint8_t { worker, supervisor };

// child_shutdown is how a child is told to end: by `shutdown`, with a time to do so before it is
// killed, or by a kill at once. The default is 5 s for a worker and infinity for a supervisor. A
// negative time is a bad spec.
class child_shutdown {
 public:
  enum class kind : std::uint8_t { by_type, brutal_kill, timed, infinity };

  constexpr child_shutdown() noexcept = default;
  template <class Rep, class Period>
  constexpr child_shutdown(std::chrono::duration<Rep, Period> time) noexcept
      : kind_(kind::timed), time_(std::chrono::duration_cast<std::chrono::nanoseconds>(time)) {}

  [[nodiscard]] static constexpr child_shutdown brutal_kill() noexcept {
    return child_shutdown(kind::brutal_kill);
  }
  [[nodiscard]] static constexpr child_shutdown infinity() noexcept {
    return child_shutdown(kind::infinity);
  }
  [[nodiscard]] constexpr kind which() const noexcept { return kind_; }
  [[nodiscard]] constexpr std::chrono::nanoseconds time() const noexcept { return time_; }

 private:
  explicit constexpr child_shutdown(kind which) noexcept : kind_(which) {}

  kind kind_ = kind::by_type;
  std::chrono::nanoseconds time_{0};
};

// child_spec says what a child is. `start` is called by the supervisor, on its stack, at each
// start; it may park, and the supervisor serves nobody meanwhile. What it throws, also by
// exit(), is a failed start. `ignored` leaves a child without an actor.
struct child_spec {
  term id = {};                           // unique among its siblings; {} is no id
  std::function<start_result()> start{};  // as [] { return smarm::start_link({}, serve); }
  // of the template of a simple_one_for_one supervisor: makes a child of start_dynamic's argument
  std::function<start_result(const term&)> start_with{};
  child_restart restart = child_restart::permanent;
  child_shutdown shutdown = {};
  child_type type = child_type::worker;
  bool significant = false;  // its end may end the supervisor: auto_shutdown
};

enum class restart_strategy : std::uint8_t {
  one_for_one,   // only the child that failed
  one_for_all,   // all children are stopped and started again
  rest_for_one,  // the one that failed and those started after it
  // Many children of one template, started by start_dynamic, without ids and order; stopped all at
  // once. There is exactly one spec, the template.
  simple_one_for_one,
};

enum class auto_shutdown_kind : std::uint8_t {
  never,
  any_significant,  // the supervisor ends when a significant child has ended by itself for good
  all_significant,  // ... when the last one has
};

// restart_backoff holds restarts back: the n-th in a row of a child comes initial * factor^(n-1)
// after its end, `maximum` at most, less a random part of up to `jitter` (0 to 1) of that. A child
// that ran for longer than `maximum` begins again. The children that are to be restarted along with
// it are stopped at once. Off unless initial is positive.
struct restart_backoff {
  std::chrono::nanoseconds initial{0};
  std::chrono::nanoseconds maximum = std::chrono::seconds(30);
  double factor = 2;
  double jitter = 0.1;
};

struct supervisor_flags {
  restart_strategy strategy = restart_strategy::one_for_one;
  // More than `intensity` restarts within `period` are too many. Time is counted in whole seconds,
  // as in OTP: restarts up to almost a second more apart may still count together. A restart of a
  // group counts once; a start that fails is tried again, and each try counts.
  unsigned intensity = 1;
  std::chrono::seconds period{5};
  auto_shutdown_kind auto_shutdown = auto_shutdown_kind::never;
  std::string name = {};  // registered; empty: none
  restart_backoff backoff = {};
  // how long a killed child may take to unwind before it is left behind
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(5);
};

// start_supervisor starts a supervisor and its children, one after the other. Where child i cannot
// be started, those before it are stopped in reverse and the error's reason is
// {shutdown,{failed_to_start_child,Id,Why}}; for a spec or flags that make no sense it is
// {start_spec,Why} or {supervisor_data,Why}, as in OTP. One that is not linked has no parent: it
// ends by supervisor_ref::stop. The caller is an actor, else misuse. Parks; a stop point.
[[nodiscard]] start_result start_supervisor(supervisor_flags flags, std::vector<child_spec> specs);
[[nodiscard]] start_result start_supervisor_link(supervisor_flags flags,
                                                 std::vector<child_spec> specs);

// supervisor_spec is a child that is itself a supervisor, with these children.
[[nodiscard]] child_spec supervisor_spec(term id, supervisor_flags flags,
                                         std::vector<child_spec> specs);

struct supervisor_error {
  enum class what : std::uint8_t {
    no_such_supervisor,  // nobody under that pid or name, or it ended before it answered
    timed_out,           // no answer at the deadline; what was asked may still be done
    not_found,           // no child of that id or pid
    running,             // the child runs
    restarting,          // the child is about to be started again
    already_present,     // a child of that id is there, without an actor
    already_started,     // a child of that id runs: `child`
    simple_one_for_one,  // not to be asked of (or: only of) such a supervisor
    bad_spec,            // `reason` says what is wrong with it
    start_failed,        // `reason` says why
  };
  what kind = what::not_found;
  pid child = {};
  exit_reason reason = {};
  friend bool operator==(const supervisor_error&, const supervisor_error&) noexcept = default;
};

[[nodiscard]] std::string_view to_string(supervisor_error::what kind) noexcept;
[[nodiscard]] std::string to_string(const supervisor_error& error);

template <class T>
using supervisor_result = std::expected<T, supervisor_error>;

enum class child_state : std::uint8_t {
  running,
  absent,      // ignored its start, was stopped, or ended and is not to be restarted
  restarting,  // ended; the next try is under way
};

struct child_info {
  term id;  // the atom undefined for the children of a simple_one_for_one supervisor
  child_state state = child_state::absent;
  pid who = {};  // where it runs
  child_type type = child_type::worker;
  child_restart restart = child_restart::permanent;
  std::uint64_t restarts = 0;                // starts after the first
  std::optional<exit_reason> last_end = {};  // of the actor before, or of the start that failed
  std::optional<deadline::clock::time_point> since = {};  // of the present actor
};

struct child_counts {
  std::size_t specs = 0;
  std::size_t active = 0;       // children that have an actor
  std::size_t supervisors = 0;  // of the specs, or dynamic children, whether active or not
  std::size_t workers = 0;
  friend bool operator==(const child_counts&, const child_counts&) noexcept = default;
};

struct supervisor_info {
  pid who;
  std::string name = {};
  restart_strategy strategy = restart_strategy::one_for_one;
  unsigned intensity = 0;
  std::chrono::seconds period{0};
  std::size_t recent_restarts = 0;  // that count at present
  deadline::clock::time_point since = {};
  std::vector<child_info> children = {};  // in the order of their start
};

// supervisor_ref asks a supervisor, by pid or by name. Each call parks until the answer or the
// deadline and is a stop point; on a thread that is no actor it blocks that thread. The supervisor
// answers one after the other, and not while it starts or stops a child. A supervisor that asks
// itself (within a child's `start`) gets misuse. Who is no supervisor never answers.
class supervisor_ref {
 public:
  supervisor_ref(pid who) : who_(who) {}
  supervisor_ref(std::string name) : name_(std::move(name)) {}
  supervisor_ref(const char* name) : name_(name) {}

  // start_child adds a child at the end and starts it. An invalid pid: it ignored its start.
  supervisor_result<pid> start_child(child_spec spec, deadline until = deadline::never()) const;

  // start_dynamic starts a child of a simple_one_for_one supervisor: with the template's start_with
  // and an argument, or by a function of the caller's, which may hold arguments of any type. The
  // rest comes from the template; a restart calls the same again.
  supervisor_result<pid> start_dynamic(term argument, deadline until = deadline::never()) const;
  supervisor_result<pid> start_dynamic(std::function<start_result()> start,
                                       deadline until = deadline::never()) const;

  // terminate_child stops a child, which stays known unless it is temporary. By pid: of a
  // simple_one_for_one supervisor only. It may be the last one of a child that is restarting; any
  // other pid that has ended is as good as terminated.
  supervisor_result<void> terminate_child(term id, deadline until = deadline::never()) const;
  supervisor_result<void> terminate_child(pid child, deadline until = deadline::never()) const;
  // restart_child starts one that has no actor.
  supervisor_result<pid> restart_child(term id, deadline until = deadline::never()) const;
  // delete_child forgets one that has no actor.
  supervisor_result<void> delete_child(term id, deadline until = deadline::never()) const;

  // which_children: the last started first, as OTP lists them.
  supervisor_result<std::vector<child_info>> which_children(
      deadline until = deadline::never()) const;
  supervisor_result<child_counts> count_children(deadline until = deadline::never()) const;
  // child_of is the pid of a child that runs; not_found and restarting where there is none.
  supervisor_result<pid> child_of(term id, deadline until = deadline::never()) const;
  supervisor_result<supervisor_info> describe(deadline until = deadline::never()) const;

  // explain writes the tree for people: every child with its pid, time up, restarts and last end,
  // and the children of supervisors below it. It is told there who does not answer in time.
  [[nodiscard]] std::string explain(deadline until = std::chrono::seconds(5)) const;

  // stop ends the supervisor with that reason, its children in reverse first, and waits for its
  // end. Source: gen_server(3), stop/3.
  supervisor_result<void> stop(exit_reason why = exit_reason::normal(),
                               deadline until = deadline::never()) const;

 private:
  [[nodiscard]] std::optional<pid> target() const;

  pid who_ = {};
  std::string name_;
};

}  // namespace smarm
