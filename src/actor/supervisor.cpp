// The supervisor's actor: its loop, its starts and stops, and the rules of restarts.
//
// The order of what happens is OTP's, step by step; where this differs is said in supervisor.hpp.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include <smarm/mailbox.hpp>
#include <smarm/registry.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/timer.hpp>

#include "actor/actor_box.hpp"
#include "actor/reports.hpp"
#include "actor/restart_delay.hpp"
#include "actor/supervisor_core.hpp"
#include "base/clock.hpp"
#include "sched/body.hpp"
#include "sched/stop.hpp"
#include "sched/thrown.hpp"

namespace smarm {

namespace detail {

namespace {

using std::chrono::nanoseconds;

std::int64_t now_seconds() noexcept { return monotonic_ns() / ns_per_second; }

// Calls a start; whatever it throws, but for the unwind of a stop, is a start that failed.
start_result call_start(const std::function<start_result()>& start) {
  const auto failed = [](exit_reason why) {
    return std::unexpected(start_error{start_error::what::failed, std::move(why), {}});
  };
  try {
    return start();
  } catch (const forced_stop&) {
    throw;
  } catch (const exit_request& request) {
    return failed(request.why);
  } catch (const stack_probe&) {
    std::abort();
  } catch (...) {
    return failed(caught_reason());
  }
}

std::optional<exit_reason> serve(starting& me, const supervisor_flags& flags,
                                 const std::vector<child_spec>& specs) {
  trap_exit(true);
  if (auto wrong = check_start(flags, specs)) me.fail(std::move(*wrong));
  supervisor_core core(me, flags, specs);
  if (auto failed = core.start_all()) me.fail(std::move(*failed));
  me.ready();
  return core.run();
}

start_result start_with(supervisor_flags flags, std::vector<child_spec> specs, bool linked_too) {
  start_settings settings{.name = flags.name, .stack_size = 0, .until = deadline::never()};
  const auto body = [flags = std::move(flags), specs = std::move(specs)](starting& me) {
    // The core is gone before the exit, so that no child outlives it in a closure.
    if (auto why = serve(me, flags, specs); why && !why->is_normal()) exit(std::move(*why));
  };
  return linked_too ? start_link(settings, body) : start(settings, body);
}

}  // namespace

supervisor_core::supervisor_core(const starting& me, const supervisor_flags& flags,
                                 const std::vector<child_spec>& specs)
    : flags_(flags),
      parent_(me.is_linked() ? me.parent() : pid{}),
      intensity_(flags.intensity, flags.period.count()),
      random_(static_cast<std::minstd_rand::result_type>(monotonic_ns() ^ self().index)),
      since_(deadline::clock::now()) {
  if (is_simple()) {
    template_ = std::make_shared<const child_spec>(specs.front());
    return;
  }
  for (const child_spec& spec : specs) {
    children_.push_back({.spec = std::make_shared<const child_spec>(spec), .start = spec.start});
  }
}

// ---- the loop --------------------------------------------------------------------------------

std::optional<exit_reason> supervisor_core::start_all() {
  const place failed = start_from(children_.begin());
  if (failed == children_.end()) return std::nullopt;
  const term why = failed->last_end ? failed->last_end->to_term() : term(atom("undefined"));
  exit_reason reason =
      exit_reason::shutdown(term::tuple({atom("failed_to_start_child"), failed->spec->id, why}));
  stop_from(children_.begin());
  return reason;
}

exit_reason supervisor_core::run() {
  while (!end_) {
    receive([this](supervisor_request request) { request.serve(this); },
            [this](const exit_signal& signal) { on_exit(signal); },
            [this](const retry& again) { on_retry(again); },
            [](const any_message& message) {
              detail::report_of_self(report_kind::unexpected, {},
                                     std::string("a message of type ") + message.type().name());
            });
  }
  stop_everything();
  return *end_;
}

void supervisor_core::tell(report_kind kind, const child& about, exit_reason why,
                           std::string text) const {
  try {
    emit_report({.kind = kind,
                 .who = self(),
                 .name = std::string(self_name()),
                 .reason = std::move(why),
                 .child = about.who,
                 .id = id_of(about),
                 .text = std::move(text)});
  } catch (const std::bad_alloc&) {
    // A report that cannot be made must not end the supervisor.
  }
}

// ---- starting --------------------------------------------------------------------------------

// The error, which the child keeps as its last end. A temporary child that ignores its start stays
// in the list, absent; the callers see to it.
std::optional<start_error> supervisor_core::start(place which) {
  const start_result started = call_start(which->start);
  if (!started) {
    if (started.error().is_ignored()) {
      which->who = {};
      return std::nullopt;
    }
    which->last_end = started.error().reason;
    return started.error();
  }
  try {
    by_pid_.insert_or_assign(*started, which);
    // A start that forgot the link; of a child that has ended already this gives a second signal,
    // which finds nobody when the first has been dealt with.
    if (!is_linked(*started)) (void)link(*started);
  } catch (const std::bad_alloc&) {
    // Nobody would look after it: it is no child, and the supervisor lives on.
    by_pid_.erase(*started);
    unlink(*started);
    kill(*started);
    which->last_end = exit_reason::error(std::current_exception());
    return start_error{start_error::what::failed, *which->last_end, {}};
  }
  which->who = *started;
  which->state = child_state::running;
  ++which->starts;
  which->since = deadline::clock::now();
  tell(report_kind::progress, *which, exit_reason::normal(), "started");
  return std::nullopt;
}

// Starts those from `first` on, all of which are absent, in order. The place of the first that
// fails, which is reported, else the end.
supervisor_core::place supervisor_core::start_from(place first) {
  for (place at = first; at != children_.end();) {
    const place now = at++;
    if (const auto failed = start(now)) {
      tell(report_kind::start_error, *now, failed->reason, to_string(*failed));
      return now;
    }
    (void)forget_if_over(now);
  }
  return children_.end();
}

// The answer to who added the child, or wants it started by hand.
supervisor_result<pid> supervisor_core::start_added(place which) {
  if (auto failed = start(which)) {
    return std::unexpected(supervisor_error{supervisor_error::what::start_failed, failed->holder,
                                            std::move(failed->reason)});
  }
  return which->state == child_state::running ? which->who : pid{};
}

// ---- stopping --------------------------------------------------------------------------------

// Takes the child out of the maps.
void supervisor_core::set_absent(place which) {
  if (which->state == child_state::running) by_pid_.erase(which->who);
  if (which->state == child_state::restarting) restarting_.erase(which->ticket);
  which->state = child_state::absent;
}

// A child that is absent and never comes again goes from the list: true.
bool supervisor_core::forget_if_over(place which) {
  if (which->state != child_state::absent) return false;
  if (!is_simple() && which->spec->restart != child_restart::temporary) return false;
  children_.erase(which);
  return true;
}

// The name that an actor was given at its spawn, or as much of it as has room: the slot's lock is
// held, under which nothing is allocated, and under which an actor that lives keeps its body.
std::string spawn_name_of(pid who) {
  std::array<char, 64> name{};
  std::size_t size = 0;
  if (slot* const found = find_slot(who)) {
    (void)if_box(*found, who.generation,
                 [&](actor_box&) { size = found->body->name.copy(name.data(), name.size()); });
  }
  return {name.data(), size};
}

// Reports an end that is not as told.
void supervisor_core::note_end(pid who, const child& of, const child_end& end) {
  const child_shutdown how = shutdown_of(*of.spec);
  if (!end) {
    std::string text =
        "killed, and not ended after " +
        std::to_string(std::chrono::floor<std::chrono::milliseconds>(flags_.kill_grace).count()) +
        " ms: left behind";
    std::string name = name_of(who);
    if (name.empty()) name = spawn_name_of(who);
    if (!name.empty()) text += ", named \"" + name + "\"";
    tell(report_kind::shutdown_error, of, exit_reason(atom("left_behind")), std::move(text));
  } else if (!is_expected(*end, how, of.spec->restart)) {
    tell(report_kind::shutdown_error, of, *end);
  }
}

void supervisor_core::stop_one(place which) {
  if (which->state == child_state::running) {
    // It stays in by_pid_ until it has ended, which costs nothing: no message is served meanwhile.
    const child_end end =
        detail::stop_child(which->who, shutdown_of(*which->spec), flags_.kill_grace);
    note_end(which->who, *which, end);
    which->last_end = end ? *end : exit_reason(atom("left_behind"));
  }
  set_absent(which);
}

// In reverse, from the last to `first`, which may go from the list with the others.
void supervisor_core::stop_from(place first) {
  place behind = children_.end();
  for (bool was_first = behind == first; !was_first;) {
    const place last = std::prev(behind);
    was_first = last == first;
    stop_one(last);
    if (!forget_if_over(last)) behind = last;
  }
}

void supervisor_core::stop_everything() {
  if (!is_simple()) {
    stop_from(children_.begin());
    return;
  }
  std::vector<pid> all;
  all.reserve(by_pid_.size());
  for (const auto& [who, which] : by_pid_) all.push_back(who);
  detail::stop_children(
      all, shutdown_of(*template_), flags_.kill_grace,
      [this](pid who, const child_end& end) { note_end(who, *by_pid_.find(who)->second, end); });
  by_pid_.clear();
  restarting_.clear();
  children_.clear();
}

// ---- restarting ------------------------------------------------------------------------------

void supervisor_core::on_exit(const exit_signal& signal) {
  if (parent_.is_valid() && signal.from == parent_) {
    end_ = signal.reason;
    return;
  }
  const auto found = by_pid_.find(signal.from);
  if (found == by_pid_.end()) return;  // a start that failed, a child that was stopped, a stranger
  const place which = found->second;
  const child_restart kind = which->spec->restart;
  const bool is_orderly = signal.reason.is_orderly();
  set_absent(which);
  which->last_end = signal.reason;
  which->attempts =
      attempts_after(flags_.backoff, which->attempts, deadline::clock::now() - which->since);
  if (kind == child_restart::permanent || !is_orderly) {
    tell(report_kind::child_terminated, *which, signal.reason);
  }
  if (kind == child_restart::permanent || (kind == child_restart::transient && !is_orderly)) {
    count_and_restart(which);
    return;
  }
  const bool was_significant = which->spec->significant;
  (void)forget_if_over(which);
  consider_auto_shutdown(was_significant);
}

void supervisor_core::consider_auto_shutdown(bool was_significant) {
  if (!was_significant || flags_.auto_shutdown == auto_shutdown_kind::never) return;
  const bool another = std::ranges::any_of(children_, [](const child& each) {
    return each.spec->significant && each.state != child_state::absent;
  });
  if (flags_.auto_shutdown == auto_shutdown_kind::all_significant && another) return;
  end_ = exit_reason::shutdown();
}

void supervisor_core::on_retry(const retry& again) {
  const auto found = restarting_.find(again.ticket);
  if (found == restarting_.end()) return;
  const place which = found->second;
  set_absent(which);
  if (again.is_counted) {
    restart(which);
  } else {
    count_and_restart(which);
  }
}

void supervisor_core::count_and_restart(place which) {
  if (!intensity_.add(now_seconds())) {
    tell(report_kind::shutdown, *which, exit_reason(atom("reached_max_restart_intensity")),
         std::to_string(flags_.intensity) + " in " + std::to_string(flags_.period.count()) + " s");
    (void)forget_if_over(which);
    end_ = exit_reason::shutdown();
    return;
  }
  const nanoseconds delay = next_delay(*which);
  if (delay.count() <= 0) {
    restart(which);
    return;
  }
  // Those who are to go with it go now. The child itself is absent, and not temporary.
  if (flags_.strategy == restart_strategy::one_for_all) stop_from(children_.begin());
  if (flags_.strategy == restart_strategy::rest_for_one) stop_from(which);
  put_off(which, delay, true);
}

nanoseconds supervisor_core::next_delay(child& of) {
  const restart_backoff& how = flags_.backoff;
  if (how.initial.count() <= 0) return nanoseconds(0);
  return restart_delay(how, ++of.attempts, std::generate_canonical<double, 24>(random_));
}

void supervisor_core::restart(place which) {
  switch (flags_.strategy) {
    case restart_strategy::one_for_one:
    case restart_strategy::simple_one_for_one:
      restart_one(which);
      break;
    case restart_strategy::one_for_all:
      restart_group(children_.begin());
      break;
    case restart_strategy::rest_for_one:
      restart_group(which);
      break;
  }
}

void supervisor_core::restart_one(place which) {
  if (const auto failed = start(which)) {
    tell(report_kind::start_error, *which, failed->reason, to_string(*failed));
    put_off(which, nanoseconds(0), false);
    return;
  }
  (void)forget_if_over(which);
}

void supervisor_core::restart_group(place first) {
  // `first` may be temporary, and then goes; what stands before it does not.
  const bool from_the_start = first == children_.begin();
  const place before = from_the_start ? children_.end() : std::prev(first);
  stop_from(first);
  const place failed = start_from(from_the_start ? children_.begin() : std::next(before));
  if (failed != children_.end()) put_off(failed, nanoseconds(0), false);
}

// Without a delay the try comes as a message, so that requests get their turn in between.
void supervisor_core::put_off(place which, nanoseconds delay, bool is_counted) {
  which->state = child_state::restarting;
  which->ticket = ++last_ticket_;
  restarting_.emplace(which->ticket, which);
  const retry again{which->ticket, is_counted};
  if (delay.count() > 0) {
    (void)send_after(delay, self(), again);
  } else {
    (void)send(self(), again);
  }
}

}  // namespace detail

start_result start_supervisor(supervisor_flags flags, std::vector<child_spec> specs) {
  return detail::start_with(std::move(flags), std::move(specs), false);
}

start_result start_supervisor_link(supervisor_flags flags, std::vector<child_spec> specs) {
  return detail::start_with(std::move(flags), std::move(specs), true);
}

child_spec supervisor_spec(term id, supervisor_flags flags, std::vector<child_spec> specs) {
  return {.id = std::move(id),
          .start = [flags = std::move(flags),
                    specs = std::move(specs)] { return start_supervisor_link(flags, specs); },
          .type = child_type::supervisor};
}

}  // namespace smarm
