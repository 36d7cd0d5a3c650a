// Starts that wait for the new actor's word.
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/report.hpp>
#include <smarm/spawn.hpp>
#include <smarm/start.hpp>
#include <smarm/this_actor.hpp>

#include "actor/reports.hpp"
#include "sched/stop.hpp"
#include "sched/thrown.hpp"

namespace smarm {

struct starting_access {
  [[nodiscard]] static starting make(pid parent, bool linked,
                                     oneshot_sender<start_result> tell) noexcept {
    return starting(parent, linked, std::move(tell));
  }
};

namespace {

void report_crash(const exit_reason& why) noexcept {
  if (why.is_orderly()) return;
  try {
    detail::report_of_self(report_kind::crash, why);
  } catch (...) {
    // A report that cannot be made must not change how the actor ends.
  }
}

// The new actor: its name, its function, its report.
void begin(starting& me, const std::string& name, const std::function<void(starting&)>& function) {
  if (!name.empty()) {
    if (const auto named = register_name(name); !named) {
      const auto holder = whereis(name);
      me.fail(exit_reason(term::tuple({atom("already_started"), holder.value_or(pid{})})));
    }
  }
  try {
    function(me);
  } catch (const exit_request& request) {
    report_crash(request.why);
    throw;
  } catch (const detail::forced_stop&) {
    throw;
  } catch (const detail::stack_probe&) {
    std::abort();
  } catch (...) {
    const exit_reason why = detail::caught_reason();
    report_crash(why);
    exit(why);  // thrown again it would lose its stack
  }
}

// What the starter makes of an end before the word.
start_result failed_before_ready(exit_reason why) {
  const term* const detail = why.detail();
  if (detail != nullptr && detail->size() == 2 && (*detail)[0].is_atom("already_started") &&
      (*detail)[1].is(term::shape::pid)) {
    const pid holder = (*detail)[1].as_pid();
    return std::unexpected(start_error{start_error::what::already_started, std::move(why), holder});
  }
  return std::unexpected(start_error{start_error::what::failed, std::move(why), {}});
}

start_result start_with(const start_settings& settings, bool linked_too,
                        std::function<void(starting&)> function) {
  auto [tell, told] = oneshot<start_result>();
  spawn_options options{.name = settings.name,
                        .stack_size = settings.stack_size,
                        .ties = linked_too ? linked : bonds{}};
  auto [child, watch] = spawn_monitor(
      std::move(options), [parent = self(), linked_too, name = settings.name,
                           tell = std::move(tell), function = std::move(function)]() mutable {
        starting me = starting_access::make(parent, linked_too, std::move(tell));
        begin(me, name, function);
      });
  const pid who = child.id();
  // A starter that is stopped here leaves no half-started actor.
  struct abandon {
    pid who;
    bool armed = true;
    ~abandon() {
      if (armed) kill(who);
    }
  } unless_told{who};
  child.detach();
  auto word = told.recv_until(settings.until);
  if (word) {
    unless_told.armed = false;
    (void)watch.demonitor_and_flush();
    return std::move(*word);
  }
  if (word.error() == recv_error::timed_out) {
    if (linked_too) {
      unlink(who);
      receive(
          when([who](const exit_signal& s) { return s.from == who; }, [](const exit_signal&) {}),
          after(std::chrono::seconds(0), [] {}));
    }
    kill(who);
    unless_told.armed = false;
    (void)watch.demonitor_and_flush();
    return std::unexpected(
        start_error{start_error::what::timed_out, exit_reason(atom("timeout")), {}});
  }
  // It has gone without a word: why, its down tells.
  exit_reason why = receive(when([id = watch.id()](const down& d) { return d.ref == id; },
                                 [](down d) { return std::move(d.reason); }));
  unless_told.armed = false;
  return failed_before_ready(std::move(why));
}

}  // namespace

void starting::ready() {
  if (tell_) static_cast<void>(tell_.send(self()));
}

void starting::ignore() {
  is_ignored_ = true;
  if (tell_) {
    static_cast<void>(tell_.send(
        std::unexpected(start_error{start_error::what::ignored, exit_reason::normal(), {}})));
  }
}

void starting::fail(exit_reason why) {
  tell_.close();
  exit(std::move(why));
}

start_result start(const start_settings& settings, std::function<void(starting&)> function) {
  return start_with(settings, false, std::move(function));
}

start_result start_link(const start_settings& settings, std::function<void(starting&)> function) {
  return start_with(settings, true, std::move(function));
}

std::string to_string(const start_error& error) {
  switch (error.kind) {
    case start_error::what::failed:
      return "it ended before it was ready: " + error.reason.message();
    case start_error::what::ignored:
      return "there was nothing to do";
    case start_error::what::timed_out:
      return "it was not ready in time";
    case start_error::what::already_started:
      return "the name is taken by " + to_string(error.holder);
  }
  return "unknown";
}

}  // namespace smarm
