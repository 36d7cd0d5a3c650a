// The main function of a service: signals, the service manager, and an end that comes.
//
// The root actor is the tree's parent. It waits for four things in its mailbox: a signal (from the
// watcher, an actor of its own since a wait for signals is one for a descriptor), the end of the
// tree, the tick of the watchdog, and while it stops the tree, the deadline.
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <smarm/application.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/report.hpp>
#include <smarm/runtime.hpp>
#include <smarm/signals.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/timer.hpp>

#include "io/notify_socket.hpp"
#include "sched/thrown.hpp"

namespace smarm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

struct signal_came {};
struct watchdog_tick {};

// ---- the service manager ---------------------------------------------------------------------

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What the service manager asked for, by the environment; read before the schedulers run.
class service_manager {
 public:
  service_manager() : address_(environment("NOTIFY_SOCKET")) {
    const auto time = number_of(environment("WATCHDOG_USEC"));
    const std::string whom = environment("WATCHDOG_PID");
    const bool is_meant = whom.empty() || number_of(whom) == ::getpid();
    if (!address_.empty() && time && *time > 0 && is_meant) watchdog_ = microseconds(*time) / 2;
  }

  // The time between two signs of life; nothing: nobody wants any.
  [[nodiscard]] std::optional<nanoseconds> watchdog() const noexcept { return watchdog_; }

  void tell(std::string_view state) const {
    if (address_.empty()) return;
    const auto told = detail::notify(address_, state, seconds(1));
    if (told) return;
    emit_report({.kind = report_kind::unexpected,
                 .who = self(),
                 .name = std::string(self_name()),
                 .text = "the service manager could not be told " + std::string(state) + ": " +
                         told.error().message()});
  }

 private:
  std::string address_;
  std::optional<nanoseconds> watchdog_;
};

// ---- the service -----------------------------------------------------------------------------

// The watcher tells the root of each signal, until it goes.
class signal_watcher {
 public:
  signal_watcher() {
    auto watcher = spawn({.name = "signals"},
                         [root = self(), arriving = signals({SIGTERM, SIGINT})]() mutable {
                           for (;;) {
                             (void)arriving.recv();
                             send(root, signal_came{});
                           }
                         });
    who_ = watcher.id();
    watcher.detach();
  }
  signal_watcher(const signal_watcher&) = delete;
  signal_watcher& operator=(const signal_watcher&) = delete;
  ~signal_watcher() { (void)request_stop(who_); }

 private:
  pid who_;
};

class service {
 public:
  service(const application_options& options, const service_manager& manager, pid tree)
      : options_(options), manager_(manager), tree_(tree) {
    if (const auto period = manager_.watchdog()) {
      watchdog_ = send_interval(*period, self(), watchdog_tick{});
    }
  }
  service(const service&) = delete;
  service& operator=(const service&) = delete;
  ~service() { (void)cancel_timer(watchdog_); }

  // run returns the code when the tree has ended or was left.
  [[nodiscard]] int run() {
    manager_.tell("READY=1");
    const auto by_itself = wait(deadline::never());
    manager_.tell("STOPPING=1");
    if (!by_itself) return stop();
    const bool is_good =
        by_itself->is_normal() || (by_itself->is_shutdown() && options_.shutdown_is_success);
    return is_good ? application_ended : application_failed;
  }

 private:
  // wait waits for the end of the tree; nothing: a signal came first, or the deadline.
  [[nodiscard]] std::optional<exit_reason> wait(deadline until) {
    std::optional<exit_reason> end;
    bool is_over = false;
    while (!is_over) {
      receive([&](signal_came) { is_over = true; },
              when([this](const exit_signal& s) { return s.from == tree_; },
                   [&](exit_signal s) {
                     end = std::move(s.reason);
                     is_over = true;
                   }),
              [this](watchdog_tick) { manager_.tell("WATCHDOG=1"); },
              after(until, [&] { is_over = true; }));
    }
    return end;
  }

  [[nodiscard]] int stop() {
    exit(tree_, exit_reason::shutdown());
    if (wait(deadline(options_.stop_time))) return application_ended;
    kill(tree_);
    (void)wait(deadline(options_.kill_grace));
    return application_stop_timed_out;
  }

  const application_options& options_;
  const service_manager& manager_;
  pid tree_;
  timer_ref watchdog_;
};

start_result start_tree(const std::function<start_result()>& start) {
  try {
    start_result started = start();
    if (started && !is_linked(*started)) (void)link(*started);
    return started;
  } catch (const detail::stack_probe&) {
    std::abort();
  } catch (const std::exception&) {
    return std::unexpected(start_error{start_error::what::failed, detail::caught_reason(), {}});
  }
}

int serve(const application_options& options, const service_manager& manager,
          const std::function<start_result()>& start) {
  trap_exit(true);
  const signal_watcher watcher;
  const start_result tree = start_tree(start);
  if (tree) return service(options, manager, *tree).run();
  emit_report({.kind = report_kind::start_error,
               .who = self(),
               .name = std::string(self_name()),
               .reason = tree.error().reason,
               .text = "the application could not be started"});
  return application_start_failed;
}

// Everybody else is asked to stop; who cannot be unwound is ended with the process.
void end_everybody(runtime& ours, nanoseconds grace, int code) {
  const stop_shield not_me;
  ours.stop_all();
  const deadline until(grace);
  while (ours.counts().actors > 1) {
    if (until.has_passed()) {
      emit_report({.kind = report_kind::shutdown_error,
                   .who = self(),
                   .name = std::string(self_name()),
                   .reason = exit_reason(atom("left_behind")),
                   .text = std::to_string(ours.counts().actors - 1) +
                           " actors cannot be ended; the process ends without them"});
      std::_Exit(code);
    }
    sleep_for(milliseconds(1));
  }
}

}  // namespace

int run_application(const application_options& options, std::function<start_result()> start) {
  const service_manager manager;
  runtime ours(options.runtime);
  int code = application_failed;
  ours.run([&] {
    code = serve(options, manager, start);
    end_everybody(ours, options.kill_grace, code);
  });
  return code;
}

int run_application(supervisor_flags flags, std::vector<child_spec> specs,
                    const application_options& options) {
  return run_application(options, [flags = std::move(flags), specs = std::move(specs)] {
    return start_supervisor_link(flags, specs);
  });
}

}  // namespace smarm
