// References to supervisors: requests with a deadline, and the tree as text.
//
// A request holds the sender of a oneshot; where the supervisor ends before it answers, the request
// dies with its mailbox and the caller learns it. Any thread.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/registry.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/this_actor.hpp>

#include "actor/supervisor_core.hpp"

namespace smarm {

namespace {

using detail::supervisor_core;
using detail::supervisor_request;
using what = supervisor_error::what;

std::unexpected<supervisor_error> failed(what kind) {
  return std::unexpected(supervisor_error{kind, {}, {}});
}

template <class T>
supervisor_result<T> result_of(supervisor_result<T> result) {
  return result;
}
template <class T>
supervisor_result<T> result_of(T result) {
  return result;
}

// ask runs `question` in the supervisor and brings its answer.
template <class F>
auto ask(const std::optional<pid>& whom, deadline until, F question) {
  using result = decltype(result_of(question(std::declval<supervisor_core&>())));
  if (!whom) return result(failed(what::no_such_supervisor));
  if (is_actor() && self() == *whom) {
    throw misuse("smarm::supervisor_ref: a supervisor asks itself");
  }
  auto ends = oneshot<result>();
  supervisor_request request{
      [tell = std::move(ends.tx), question = std::move(question)](supervisor_core* core) mutable {
        (void)tell.send(result_of(question(*core)));
      }};
  if (send(*whom, std::move(request)) != delivery::sent) {
    return result(failed(what::no_such_supervisor));
  }
  auto answer = ends.rx.recv_until(until);
  if (answer) return std::move(*answer);
  return result(
      failed(answer.error() == recv_error::timed_out ? what::timed_out : what::no_such_supervisor));
}

std::string_view name_of(restart_strategy strategy) noexcept {
  switch (strategy) {
    case restart_strategy::one_for_one:
      return "one_for_one";
    case restart_strategy::one_for_all:
      return "one_for_all";
    case restart_strategy::rest_for_one:
      return "rest_for_one";
    case restart_strategy::simple_one_for_one:
      return "simple_one_for_one";
  }
  return "unknown";
}

std::string_view name_of(child_restart restart) noexcept {
  switch (restart) {
    case child_restart::permanent:
      return "permanent";
    case child_restart::transient:
      return "transient";
    case child_restart::temporary:
      return "temporary";
  }
  return "unknown";
}

std::string time_since(deadline::clock::time_point then) {
  const std::chrono::duration<double> time = deadline::clock::now() - then;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f s", time.count());
  return text.data();
}

std::string state_of(const child_info& child) {
  switch (child.state) {
    case child_state::running:
      return to_string(child.who) + (child.since ? ", up " + time_since(*child.since) : "");
    case child_state::absent:
      return "absent";
    case child_state::restarting:
      return "restarting";
  }
  return "unknown";
}

std::string line_of(const child_info& child) {
  std::string line = to_string(child.id) + " " + state_of(child) + ", ";
  line += name_of(child.restart);
  line += child.type == child_type::supervisor ? " supervisor" : " worker";
  if (child.restarts > 0) {
    line +=
        ", " + std::to_string(child.restarts) + (child.restarts == 1 ? " restart" : " restarts");
  }
  if (child.last_end) line += ", last end: " + child.last_end->message();
  return line;
}

void explain_tree(const supervisor_ref& whom, deadline until, const std::string& indent,
                  std::string& out) {
  const auto info = whom.describe(until);
  if (!info) {
    out += indent + "(" + to_string(info.error()) + ")\n";
    return;
  }
  out += indent + "supervisor " + to_string(info->who);
  if (!info->name.empty()) out += " \"" + info->name + "\"";
  out += ", " + std::string(name_of(info->strategy)) + ", up " + time_since(info->since) + ", " +
         std::to_string(info->recent_restarts) + " of " + std::to_string(info->intensity) +
         " restarts in " + std::to_string(info->period.count()) + " s\n";
  for (const child_info& child : info->children) {
    out += indent + "  " + line_of(child) + "\n";
    if (child.type == child_type::supervisor && child.state == child_state::running) {
      explain_tree(child.who, until, indent + "    ", out);
    }
  }
}

}  // namespace

std::string_view to_string(supervisor_error::what kind) noexcept {
  switch (kind) {
    case what::no_such_supervisor:
      return "no such supervisor";
    case what::timed_out:
      return "no answer in time";
    case what::not_found:
      return "not found";
    case what::running:
      return "running";
    case what::restarting:
      return "restarting";
    case what::already_present:
      return "already present";
    case what::already_started:
      return "already started";
    case what::simple_one_for_one:
      return "simple_one_for_one";
    case what::bad_spec:
      return "bad spec";
    case what::start_failed:
      return "start failed";
  }
  return "unknown";
}

std::string to_string(const supervisor_error& error) {
  std::string text(to_string(error.kind));
  if (error.child.is_valid()) text += " " + to_string(error.child);
  if (error.kind == what::bad_spec || error.kind == what::start_failed) {
    text += ": " + error.reason.message();
  }
  return text;
}

std::optional<pid> supervisor_ref::target() const { return name_.empty() ? who_ : whereis(name_); }

supervisor_result<pid> supervisor_ref::start_child(child_spec spec, deadline until) const {
  return ask(target(), until, [spec = std::move(spec)](supervisor_core& core) mutable {
    return core.start_child(std::move(spec));
  });
}

supervisor_result<pid> supervisor_ref::start_dynamic(term argument, deadline until) const {
  return ask(target(), until, [argument = std::move(argument)](supervisor_core& core) {
    return core.start_dynamic(argument);
  });
}

supervisor_result<pid> supervisor_ref::start_dynamic(std::function<start_result()> start,
                                                     deadline until) const {
  return ask(target(), until, [start = std::move(start)](supervisor_core& core) {
    return core.start_dynamic(start);
  });
}

supervisor_result<void> supervisor_ref::terminate_child(term id, deadline until) const {
  return ask(target(), until,
             [id = std::move(id)](supervisor_core& core) { return core.terminate_child(id); });
}

supervisor_result<void> supervisor_ref::terminate_child(pid child, deadline until) const {
  return ask(target(), until,
             [child](supervisor_core& core) { return core.terminate_child(child); });
}

supervisor_result<pid> supervisor_ref::restart_child(term id, deadline until) const {
  return ask(target(), until,
             [id = std::move(id)](supervisor_core& core) { return core.restart_child(id); });
}

supervisor_result<void> supervisor_ref::delete_child(term id, deadline until) const {
  return ask(target(), until,
             [id = std::move(id)](supervisor_core& core) { return core.delete_child(id); });
}

supervisor_result<std::vector<child_info>> supervisor_ref::which_children(deadline until) const {
  return ask(target(), until, [](supervisor_core& core) { return core.which_children(); });
}

supervisor_result<child_counts> supervisor_ref::count_children(deadline until) const {
  return ask(target(), until, [](supervisor_core& core) { return core.count_children(); });
}

supervisor_result<pid> supervisor_ref::child_of(term id, deadline until) const {
  return ask(target(), until,
             [id = std::move(id)](supervisor_core& core) { return core.child_of(id); });
}

supervisor_result<supervisor_info> supervisor_ref::describe(deadline until) const {
  return ask(target(), until, [](supervisor_core& core) { return core.describe(); });
}

std::string supervisor_ref::explain(deadline until) const {
  std::string out;
  explain_tree(*this, until, "", out);
  return out;
}

supervisor_result<void> supervisor_ref::stop(exit_reason why, deadline until) const {
  const std::optional<pid> whom = target();
  if (!whom) return failed(what::no_such_supervisor);
  auto watch = monitor(*whom);
  const auto told = ask(whom, until, [why = std::move(why)](supervisor_core& core) {
    core.stop(why);
    return supervisor_result<void>();
  });
  if (!told) return told;
  const auto gone = watch.recv_until(until);
  if (!gone) return failed(what::timed_out);
  return {};
}

}  // namespace smarm
