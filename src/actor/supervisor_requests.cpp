// What a supervisor does when it is asked: children added, stopped and told of. And what it accepts
// as a spec.
//
// Runs in the supervisor's actor, between two messages (supervisor_core.hpp).
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iterator>
#include <new>
#include <utility>

#include <smarm/this_actor.hpp>

#include "actor/supervisor_core.hpp"
#include "base/clock.hpp"
#include "sched/lookup.hpp"

namespace smarm::detail {

namespace {

using what = supervisor_error::what;

std::unexpected<supervisor_error> refused(what kind, pid child = {}) {
  return std::unexpected(supervisor_error{kind, child, {}});
}

term pair(const char* name, term value) { return term::tuple({atom(name), std::move(value)}); }

term bad_combination(term one, term other) {
  return pair("bad_combination", term::list({std::move(one), std::move(other)}));
}

std::optional<term> check_flags(const supervisor_flags& flags) {
  if (flags.period.count() <= 0) return pair("invalid_period", term(flags.period.count()));
  return std::nullopt;
}

}  // namespace

// ---- specs -----------------------------------------------------------------------------------

std::optional<term> check_spec(const child_spec& spec, const supervisor_flags& flags) {
  const bool is_template = flags.strategy == restart_strategy::simple_one_for_one;
  if (!is_template && spec.id == term()) return term(atom("missing_id"));
  if (!is_template && !spec.start) return term(atom("missing_start"));
  if (spec.significant && flags.auto_shutdown == auto_shutdown_kind::never) {
    return bad_combination(pair("auto_shutdown", atom("never")), pair("significant", atom("true")));
  }
  if (spec.significant && spec.restart == child_restart::permanent) {
    return bad_combination(pair("restart", atom("permanent")), pair("significant", atom("true")));
  }
  if (spec.shutdown.time().count() < 0) {
    const auto time = std::chrono::floor<std::chrono::milliseconds>(spec.shutdown.time());
    return pair("invalid_shutdown", term(time.count()));
  }
  return std::nullopt;
}

std::optional<exit_reason> check_start(const supervisor_flags& flags,
                                       const std::vector<child_spec>& specs) {
  if (auto wrong = check_flags(flags)) {
    return exit_reason(pair("supervisor_data", std::move(*wrong)));
  }
  if (flags.strategy == restart_strategy::simple_one_for_one && specs.size() != 1) {
    std::vector<term> ids;
    ids.reserve(specs.size());
    for (const child_spec& spec : specs) ids.push_back(spec.id);
    return exit_reason(pair("bad_start_spec", term::list(std::move(ids))));
  }
  for (auto at = specs.begin(); at != specs.end(); ++at) {
    auto wrong = check_spec(*at, flags);
    const auto same = [&](const child_spec& before) { return before.id == at->id; };
    if (!wrong && std::any_of(specs.begin(), at, same)) {
      wrong = pair("duplicate_child_name", at->id);
    }
    if (wrong) return exit_reason(pair("start_spec", std::move(*wrong)));
  }
  return std::nullopt;
}

// ---- finding and telling ---------------------------------------------------------------------

supervisor_core::place supervisor_core::find(const term& id) {
  return std::ranges::find_if(children_, [&](const child& each) { return each.spec->id == id; });
}

term supervisor_core::id_of(const child& of) const {
  return is_simple() ? term(atom("undefined")) : of.spec->id;
}

child_info supervisor_core::info_of(const child& of) const {
  child_info info{.id = id_of(of),
                  .state = of.state,
                  .type = of.spec->type,
                  .restart = of.spec->restart,
                  .restarts = of.starts > 0 ? of.starts - 1 : 0,
                  .last_end = of.last_end};
  if (of.state == child_state::running) {
    info.who = of.who;
    info.since = of.since;
  }
  return info;
}

std::vector<child_info> supervisor_core::which_children() const {
  std::vector<child_info> all;
  all.reserve(children_.size());
  for (const child& each : children_) all.push_back(info_of(each));
  std::ranges::reverse(all);
  return all;
}

child_counts supervisor_core::count_children() const {
  child_counts counts{.specs = is_simple() ? 1 : children_.size(), .active = by_pid_.size()};
  for (const child& each : children_) {
    ++(each.spec->type == child_type::supervisor ? counts.supervisors : counts.workers);
  }
  return counts;
}

supervisor_result<pid> supervisor_core::child_of(const term& id) {
  const place found = find(id);
  if (is_simple()) return refused(what::simple_one_for_one);
  if (found == children_.end() || found->state == child_state::absent) {
    return refused(what::not_found);
  }
  if (found->state == child_state::restarting) return refused(what::restarting);
  return found->who;
}

supervisor_info supervisor_core::describe() {
  supervisor_info info{.who = self(),
                       .name = flags_.name,
                       .strategy = flags_.strategy,
                       .intensity = flags_.intensity,
                       .period = flags_.period,
                       .recent_restarts = intensity_.recent(monotonic_ns() / ns_per_second),
                       .since = since_};
  info.children.reserve(children_.size());
  for (const child& each : children_) info.children.push_back(info_of(each));
  return info;
}

// The answer where there is no memory for one more child. In a handler.
std::unexpected<supervisor_error> supervisor_core::out_of_memory() {
  return std::unexpected(
      supervisor_error{what::start_failed, {}, exit_reason::error(std::current_exception())});
}

// ---- changing --------------------------------------------------------------------------------

supervisor_result<pid> supervisor_core::start_child(child_spec spec) {
  if (is_simple()) return refused(what::simple_one_for_one);
  if (auto wrong = check_spec(spec, flags_)) {
    return std::unexpected(supervisor_error{what::bad_spec, {}, exit_reason(*wrong)});
  }
  if (const place there = find(spec.id); there != children_.end()) {
    return there->state == child_state::running ? refused(what::already_started, there->who)
                                                : refused(what::already_present);
  }
  try {
    auto start = spec.start;
    children_.push_back(
        {.spec = std::make_shared<const child_spec>(std::move(spec)), .start = std::move(start)});
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  const place added = std::prev(children_.end());
  supervisor_result<pid> started = start_added(added);
  if (!started) {
    children_.erase(added);
  } else {
    (void)forget_if_over(added);
  }
  return started;
}

supervisor_result<pid> supervisor_core::start_dynamic(const std::function<start_result()>& start) {
  if (!is_simple()) return refused(what::simple_one_for_one);
  try {
    children_.push_back({.spec = template_, .start = start});
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  const place added = std::prev(children_.end());
  supervisor_result<pid> started = start_added(added);
  (void)forget_if_over(added);
  return started;
}

supervisor_result<pid> supervisor_core::start_dynamic(const term& argument) {
  if (!is_simple()) return refused(what::simple_one_for_one);
  if (!template_->start_with) {
    const term wrong = atom("missing_start");
    return std::unexpected(supervisor_error{what::bad_spec, {}, exit_reason(wrong)});
  }
  std::function<start_result()> start;
  try {
    start = [spec = template_, argument] { return spec->start_with(argument); };
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  return start_dynamic(start);
}

supervisor_result<void> supervisor_core::terminate_child(const term& id) {
  if (is_simple()) return refused(what::simple_one_for_one);
  const place found = find(id);
  if (found == children_.end()) return refused(what::not_found);
  stop_one(found);
  (void)forget_if_over(found);
  return {};
}

supervisor_result<void> supervisor_core::terminate_child(pid who) {
  if (!is_simple()) return refused(what::not_found);
  place which = children_.end();
  if (const auto found = by_pid_.find(who); found != by_pid_.end()) {
    which = found->second;
  } else {
    const auto again = std::ranges::find_if(
        restarting_, [who](const auto& each) { return each.second->who == who; });
    // As OTP: who has ended is as good as terminated.
    if (again == restarting_.end()) {
      if (find_slot(who) == nullptr) return {};
      return refused(what::not_found);
    }
    which = again->second;
  }
  stop_one(which);
  (void)forget_if_over(which);
  return {};
}

supervisor_result<pid> supervisor_core::restart_child(const term& id) {
  if (is_simple()) return refused(what::simple_one_for_one);
  const place found = find(id);
  if (found == children_.end()) return refused(what::not_found);
  if (found->state == child_state::running) return refused(what::running);
  if (found->state == child_state::restarting) return refused(what::restarting);
  return start_added(found);
}

supervisor_result<void> supervisor_core::delete_child(const term& id) {
  if (is_simple()) return refused(what::simple_one_for_one);
  const place found = find(id);
  if (found == children_.end()) return refused(what::not_found);
  if (found->state == child_state::running) return refused(what::running);
  if (found->state == child_state::restarting) return refused(what::restarting);
  children_.erase(found);
  return {};
}

}  // namespace smarm::detail
