// supervisor_core is a supervisor from the inside: its children and the rules of their restarts.
//
// Invariants
//   1. children_ stands in the order of starts; for simple_one_for_one it holds the children of the
//      template, which stands apart.
//   2. by_pid_ has exactly the children that are running, restarting_ exactly those that are
//      restarting, by the ticket that their next try carries. So a try that comes late, after the
//      child was stopped or started by hand, finds nobody.
//   3. end_ is set once the supervisor is to end; no child is started from then on.
//
// Threads: the supervisor's actor only. References ask it by supervisor_request, a function that
// runs between two messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <smarm/link.hpp>
#include <smarm/report.hpp>
#include <smarm/start.hpp>
#include <smarm/supervisor.hpp>

#include "actor/child_stop.hpp"
#include "actor/restart_intensity.hpp"

namespace smarm::detail {

class supervisor_core;

// supervisor_request is a call: it runs in the supervisor and answers by what it holds.
struct supervisor_request {
  std::move_only_function<void(supervisor_core*)> serve;
};

// retry is the supervisor's message to itself: try to start that child again.
struct retry {
  std::uint64_t ticket;
  bool is_counted;  // the restart was counted when it was put off
};

// check_spec says what is wrong with a spec, as OTP names it; nothing: it is good.
[[nodiscard]] std::optional<term> check_spec(const child_spec& spec, const supervisor_flags& flags);
// check_start says what is wrong with flags and specs: the reason of a start that fails at once.
[[nodiscard]] std::optional<exit_reason> check_start(const supervisor_flags& flags,
                                                     const std::vector<child_spec>& specs);

class supervisor_core {
 public:
  supervisor_core(const starting& me, const supervisor_flags& flags,
                  const std::vector<child_spec>& specs);
  supervisor_core(const supervisor_core&) = delete;
  supervisor_core& operator=(const supervisor_core&) = delete;

  // start_all starts the children; the reason why it could not, when it has stopped them again.
  [[nodiscard]] std::optional<exit_reason> start_all();
  // run serves until the supervisor is to end, stops the children and returns the reason.
  [[nodiscard]] exit_reason run();

  // What references ask for.
  supervisor_result<pid> start_child(child_spec spec);
  supervisor_result<pid> start_dynamic(const std::function<start_result()>& start);
  supervisor_result<pid> start_dynamic(const term& argument);
  supervisor_result<void> terminate_child(const term& id);
  supervisor_result<void> terminate_child(pid who);
  supervisor_result<pid> restart_child(const term& id);
  supervisor_result<void> delete_child(const term& id);
  [[nodiscard]] std::vector<child_info> which_children() const;
  [[nodiscard]] child_counts count_children() const;
  [[nodiscard]] supervisor_result<pid> child_of(const term& id);
  [[nodiscard]] supervisor_info describe();
  void stop(const exit_reason& why) { end_ = why; }

 private:
  struct child {
    std::shared_ptr<const child_spec> spec;
    std::function<start_result()> start;
    child_state state = child_state::absent;
    pid who = {};              // of the present actor or, while restarting, the one before
    std::uint64_t ticket = 0;  // of the next try, while restarting
    std::uint64_t starts = 0;  // that went well
    unsigned attempts = 0;     // restarts in a row, for the back-off
    std::optional<exit_reason> last_end = {};
    deadline::clock::time_point since = {};
  };
  using children = std::list<child>;
  using place = children::iterator;

  [[nodiscard]] bool is_simple() const noexcept {
    return flags_.strategy == restart_strategy::simple_one_for_one;
  }
  [[nodiscard]] place find(const term& id);
  [[nodiscard]] term id_of(const child& of) const;
  [[nodiscard]] child_info info_of(const child& of) const;

  // Starting.
  [[nodiscard]] std::optional<start_error> start(place which);
  [[nodiscard]] place start_from(place first);
  [[nodiscard]] supervisor_result<pid> start_added(place which);
  [[nodiscard]] static std::unexpected<supervisor_error> out_of_memory();

  // Stopping.
  void stop_one(place which);
  void stop_from(place first);
  void stop_everything();
  void note_end(pid who, const child& of, const child_end& end);
  void set_absent(place which);
  bool forget_if_over(place which);

  // Restarting.
  void on_exit(const exit_signal& signal);
  void on_retry(const retry& again);
  void count_and_restart(place which);
  void restart(place which);
  void restart_one(place which);
  void restart_group(place first);
  void put_off(place which, std::chrono::nanoseconds delay, bool is_counted);
  [[nodiscard]] std::chrono::nanoseconds next_delay(child& of);
  void consider_auto_shutdown(bool was_significant);

  void tell(report_kind kind, const child& about, exit_reason why, std::string text = {}) const;

  const supervisor_flags flags_;
  const pid parent_;                            // nobody's pid where the supervisor is not linked
  std::shared_ptr<const child_spec> template_;  // simple_one_for_one only
  children children_;
  std::unordered_map<pid, place> by_pid_;
  std::unordered_map<std::uint64_t, place> restarting_;
  std::uint64_t last_ticket_ = 0;
  restart_intensity intensity_;
  std::minstd_rand random_;
  const deadline::clock::time_point since_;
  std::optional<exit_reason> end_;
};

}  // namespace smarm::detail
