// The order of a state machine's events, and its timeouts.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <smarm/detail/machine_core.hpp>
#include <smarm/errors.hpp>
#include <smarm/state_machine.hpp>

namespace smarm::detail {

namespace {

[[noreturn]] void throw_misuse(const char* call, const char* why) {
  throw misuse(std::string("smarm::state_machine::") + call + ": " + why);
}

full_envelope event_of(machine_timer kind, std::string name) {
  switch (kind) {
    case machine_timer::state:
      return envelope_of(state_timeout{});
    case machine_timer::event:
      return envelope_of(event_timeout{});
    case machine_timer::named:
      break;
  }
  return envelope_of(named_timeout{std::move(name)});
}

}  // namespace

machine_core& running_machine(const char* call) {
  auto* const machine = dynamic_cast<machine_core*>(&running_server(call));
  if (machine == nullptr) throw_misuse(call, "this server is no state machine");
  return *machine;
}

// ---- what a handler asks for -----------------------------------------------------------------

void machine_core::require_handler(const char* call) const {
  if (phase_ != phase::event) throw_misuse(call, "only the handler of an event may do this");
}

void machine_core::postpone() {
  require_handler("postpone");
  postpone_ = true;
}

void machine_core::repeat_state() {
  require_handler("repeat_state");
  repeat_ = true;
}

void machine_core::raise(full_envelope event) {
  if (phase_ == phase::enter) throw_misuse("raise", "not in enter");
  raised_.push_back(std::move(event));
}

void machine_core::set_timeout(deadline) {
  throw_misuse("set_timeout", "a state machine has start_event_timeout");
}

machine_core::timers::iterator machine_core::find_timer(machine_timer kind,
                                                        const std::string& name) noexcept {
  return std::ranges::find_if(timers_,
                              [&](const timer& t) { return t.kind == kind && t.name == name; });
}

bool machine_core::cancel_timer(machine_timer kind, const std::string& name) noexcept {
  const auto found = find_timer(kind, name);
  if (found == timers_.end()) return false;
  timers_.erase(found);
  return true;
}

void machine_core::start_timer(machine_timer kind, std::string name, deadline until) {
  (void)cancel_timer(kind, name);
  timers_.push_back({kind, until.has_passed(), true, until, std::move(name)});
}

// ---- events ----------------------------------------------------------------------------------

void machine_core::started() {
  enter_state();
  take_up(false);
}

void machine_core::process(full_envelope event) {
  (void)cancel_timer(machine_timer::event, {});
  for (timer& t : timers_) t.is_fresh = false;
  postpone_ = false;
  repeat_ = false;
  phase_ = phase::event;
  const bool is_whole = dispatch(event);
  phase_ = phase::other;
  if (is_stopping()) return;
  if (postpone_) {
    if (!is_whole) throw_misuse("postpone", "the event was not left whole");
    postponed_.push_back(std::move(event));
  }
  const bool changed = commit();
  if (changed) {
    // One that the handler has just started is the new state's.
    std::erase_if(timers_,
                  [](const timer& t) { return t.kind == machine_timer::state && !t.is_fresh; });
  }
  take_up(changed);
  if (changed || repeat_) enter_state();
}

// Puts what was raised in front of all, and before the older events those that waited for another
// state.
void machine_core::take_up(bool state_changed) {
  const auto to_front = [this](std::vector<full_envelope>& events) {
    held_.insert(held_.begin(), std::make_move_iterator(events.begin()),
                 std::make_move_iterator(events.end()));
    events.clear();
  };
  if (state_changed) to_front(postponed_);
  to_front(raised_);
}

void machine_core::enter_state() {
  phase_ = phase::enter;
  enter();
  phase_ = phase::other;
}

bool machine_core::take_own() {
  if (!held_.empty()) {
    full_envelope next = std::move(held_.front());
    held_.pop_front();
    process(std::move(next));
    return true;
  }
  if (timers_.empty()) return false;
  auto due = std::ranges::find_if(timers_, [](const timer& t) { return t.is_over; });
  if (due == timers_.end()) {
    // An event timeout is for when no message comes, so the mailbox is asked before it.
    due = std::ranges::min_element(timers_, {}, [](const timer& t) {
      return t.kind == machine_timer::event ? deadline::never() : t.until;
    });
    if (due->kind == machine_timer::event || !due->until.has_passed()) return false;
  }
  fire(due);
  return true;
}

deadline machine_core::next_due() const {
  deadline first;
  for (const timer& t : timers_) first = std::min(first, t.until);
  return first;
}

void machine_core::handle_due() {
  const auto due = std::ranges::min_element(timers_, {}, &timer::until);
  if (due != timers_.end()) fire(due);
}

void machine_core::fire(timers::iterator which) {
  full_envelope event = event_of(which->kind, std::move(which->name));
  timers_.erase(which);
  process(std::move(event));
}

}  // namespace smarm::detail
