// The loop of a server, and how requests get to it.
#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <smarm/call.hpp>
#include <smarm/errors.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/report.hpp>
#include <smarm/server.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/mailbox_wait.hpp"
#include "actor/names.hpp"
#include "actor/reply_cell.hpp"
#include "actor/reports.hpp"
#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/stop.hpp"
#include "sched/thrown.hpp"

namespace smarm {

namespace detail {

namespace {

// attempt runs f; what it throws is why it failed. A stop is no failure and passes.
template <class F>
std::optional<exit_reason> attempt(F& f) {
  try {
    f();
    return std::nullopt;
  } catch (const forced_stop&) {
    throw;
  } catch (const exit_request& request) {
    return request.why;
  } catch (const stack_probe&) {
    std::abort();
  } catch (...) {
    return caught_reason();
  }
}

// The type's name as people write it.
std::string readable(const std::type_info& type) {
  int status = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  const std::unique_ptr<char, void (*)(void*)> owner(name, &std::free);
  return status == 0 ? name : type.name();
}

constexpr pattern system_only{&message_type_of<system_request>, nullptr, nullptr};

bool is_exit_of(const void* parent, const void* signal) {
  return static_cast<const exit_signal*>(signal)->from == *static_cast<const pid*>(parent);
}

}  // namespace

// ---- the loop --------------------------------------------------------------------------------

server_core::server_core(starting& me)
    : me_(me), box_(self_box("start_server")), parent_(me.is_linked() ? me.parent() : pid{}) {
  box_.server = this;
}

server_core::~server_core() { box_.server = nullptr; }

void server_core::run() {
  begin(me_);
  if (is_ignored_ || me_.is_ignored()) {
    me_.ignore();
    return;
  }
  if (stopping_) me_.fail(*stopping_);
  me_.ready();
  guarded([this] { started(); });
  serve();
  end();
}

template <class F>
void server_core::guarded(F handler) {
  // What a handler threw counts, whatever it asked for before.
  if (auto failed = attempt(handler)) stopping_ = std::move(failed);
}

// The next message that may be taken now; null: next_due has come.
[[gnu::always_inline]] inline full_envelope server_core::next_message() {
  if (!is_suspended_) {
    box_.take_turn();
    if (std::exchange(is_to_hibernate_, false)) (void)box_.hibernate(next_due());
    return box_.take_first(next_due());
  }
  std::size_t which = 0;
  const std::array wanted{system_only,
                          pattern{&message_type_of<exit_signal>, &is_exit_of, &parent_}};
  // Without a parent no signal is its: not even one from a thread that is no actor, whose sender is
  // nobody as well.
  return mailbox_take(std::span(wanted).first(parent_.is_valid() ? 2 : 1), deadline::never(),
                      which);
}

void server_core::serve() {
  while (!stopping_) {
    if (!is_suspended_ && (has_own_ || !steps_.empty()) && step()) continue;
    if (full_envelope sealed = next_message()) {
      take_message(std::move(sealed));
    } else {
      guarded([this] { handle_due(); });
    }
  }
}

// Does something that comes before the next message; false: there is nothing.
bool server_core::step() {
  box_.take_turn();  // steps may go on for ever
  if (steps_.empty()) {
    bool found = false;
    guarded([&] { found = take_own(); });
    return found || stopping_;
  }
  auto next = std::move(steps_.front());
  steps_.pop_front();
  guarded([&] { next(); });
  return true;
}

void server_core::take_message(full_envelope sealed) {
  if (sealed->type == &message_type_of<system_request>) {
    auto& request = *static_cast<system_request*>(payload_of(*sealed));
    if (request.host == nullptr || *request.host == host_type()) {
      guarded([&] { request.serve(*this); });
    } else {
      report_unexpected(*sealed->type);
    }
    return;
  }
  if (sealed->type == &message_type_of<exit_signal> && parent_.is_valid()) {
    auto& signal = *static_cast<exit_signal*>(payload_of(*sealed));
    if (signal.from == parent_) {
      stop(std::move(signal.reason));
      return;
    }
  }
  if (counted_) ++counted_->messages_in;
  guarded([&] { handle(std::move(sealed)); });
}

void server_core::stop(exit_reason why) {
  if (!stopping_) stopping_ = std::move(why);
}

void server_core::continue_with(std::move_only_function<void()> step) {
  steps_.push_back(std::move(step));
}

void server_core::count(bool on) {
  counted_.reset();
  if (on) counted_.emplace().since = std::chrono::steady_clock::now();
}

void server_core::end_before_reply() {
  if (stopping_) run_terminate();
}

void server_core::run_terminate() {
  if (is_terminated_) return;
  is_terminated_ = true;
  guarded([this] { terminate(exit_reason(*stopping_)); });
}

void server_core::end() {
  run_terminate();
  const exit_reason why = *stopping_;
  if (!why.is_orderly()) report_end(why);
  if (!why.is_normal()) exit(why);  // also an error, which so keeps its stack
}

void server_core::report_end(const exit_reason& why) {
  report_of_self(report_kind::server_terminate, why);
}

void server_core::report_unexpected(const message_type& of) {
  report_of_self(report_kind::unexpected, {}, "a message of type " + readable(*of.info));
}

server_core& running_server(const char* call) {
  server_core* const server = is_actor() ? self_box(call).server : nullptr;
  if (server == nullptr) {
    throw misuse(std::string("smarm::this_server::") + call + ": this actor is no server");
  }
  return *server;
}

// ---- requests --------------------------------------------------------------------------------

bool reply_send(reply_cell& cell) noexcept {
  slot* const me = scheduler::current_slot();
  // Not live: its destructors answer, and it takes its lock to look for messages no more.
  if (me == nullptr || !cell.hangs_on(*me, me->generation) || !me->state.is_live(me->generation)) {
    cell.take_off();
    const bool taken = cell.send();
    cell.drop_answerer();
    return taken;
  }
  const bool taken = cell.send();
  // relaxed: its own, and it has one, since the cell hangs on it.
  static_cast<actor_box*>(me->extension.load(relaxed))->note_answered(cell);
  return taken;
}

namespace {

bool is_self(pid who, const slot* me) noexcept {
  return me != nullptr && who.index == me->index && who.generation == me->generation;
}

// Posts the request; an `expecting` caller, who is the running actor, is given its wait for the
// reply, begun in the step that puts the request into the mailbox.
[[gnu::always_inline]] inline post_status post(pid to, full_envelope& request, reply_cell& cell,
                                               waker* expecting) {
  waker wake;
  post_status result = post_status::noproc;
  (void)with_box(to, [&](actor_box& box) {
    // A full mailbox keeps nobody from suspending or stopping the server.
    if (!box.has_room() && request->type != &message_type_of<system_request>) {
      result = post_status::full;
      return;
    }
    // It has a box, which is an extension, and with_box saw it live under the lock.
    cell.hang_on(*box.home, to.generation);
    if (expecting != nullptr) {
      *expecting = begin_wait();
      cell.expect(*expecting);
    }
    wake = box.append(*request.release());
    result = post_status::sent;
  });
  wake.wake();
  return result;
}

}  // namespace

post_status post_request(pid to, full_envelope& request, reply_cell& cell) {
  if (is_self(to, slot_of_self())) return post_status::calling_self;
  return post(to, request, cell, nullptr);
}

post_status post_and_wait(pid to, full_envelope& request, reply_cell& cell, deadline until,
                          reply_status& outcome) {
  const slot* const me = scheduler::current_slot();
  if (is_self(to, me)) return post_status::calling_self;
  stop_point();
  // A thread's first wait takes a lock, so it begins later.
  if (me == nullptr) {
    const post_status posted = post(to, request, cell, nullptr);
    if (posted == post_status::sent) outcome = cell.wait(until);
    return posted;
  }
  waker wait;
  const post_status posted = post(to, request, cell, &wait);
  if (posted == post_status::sent) outcome = cell.wait_expected(wait, until);
  return posted;
}

call_error error_of(post_status refused) noexcept {
  switch (refused) {
    case post_status::full:
      return {call_error::what::full, {}};
    case post_status::calling_self:
      return {call_error::what::calling_self, {}};
    default:
      return {call_error::what::noproc, exit_reason::noproc()};
  }
}

pid server_address::find() const noexcept { return name_.empty() ? who_ : pid_of_name(name_); }

std::expected<void, call_error> stop_at(pid to, const exit_reason& why, deadline until) {
  const auto ask_for_end = [&](from<void> unanswered) {
    // The answer is the end itself.
    return envelope_of(system_request{
        nullptr, [why, unanswered = std::move(unanswered)](server_core& server) mutable {
          const from<void> dropped = std::move(unanswered);
          server.stop(why);
        }});
  };
  caller_ref caller;
  full_envelope sealed = seal<void>(ask_for_end, caller);
  const auto outcome = ask_and_wait<void>(to, std::move(sealed), std::move(caller), until);
  if (!outcome && outcome.error().kind == call_error::what::died && outcome.error().reason == why) {
    return {};
  }
  return outcome;
}

}  // namespace detail

deadline default_call_deadline() noexcept {
  return deadline::from_ns(
      detail::coarse_monotonic_ns() + detail::coarse_tick_max_ns +
      std::chrono::duration_cast<std::chrono::nanoseconds>(default_call_timeout).count());
}

std::string to_string(const call_error& error) {
  switch (error.kind) {
    case call_error::what::timed_out:
      return "no reply in time";
    case call_error::what::noproc:
      return "there is no such server";
    case call_error::what::died:
      return "the server ended: " + error.reason.message();
    case call_error::what::calling_self:
      return "a server cannot call itself";
    case call_error::what::noconnection:
      return "the connection to its node was lost";
    case call_error::what::full:
      return "its mailbox is full";
  }
  return "unknown";
}

namespace this_server {

void stop(exit_reason why) { detail::running_server("stop").stop(std::move(why)); }

void ignore() { detail::running_server("ignore").ignore(); }

void hibernate() { detail::running_server("hibernate").hibernate(); }

void set_timeout(deadline until) { detail::running_server("set_timeout").set_timeout(until); }

void continue_with(std::move_only_function<void()> step) {
  detail::running_server("continue_with").continue_with(std::move(step));
}

}  // namespace this_server

}  // namespace smarm
