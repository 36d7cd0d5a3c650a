// The registry of applications: an actor that keeps their states, and one more for each that runs,
// its master, which starts the tree, waits for its end and stops it.
//
// Protocol. The registry spawns a master linked to itself and goes on; the master starts the tree
// and sends master_ready. To stop it the registry sends the exit signal `shutdown`, which the
// master obeys as a supervisor obeys its parent; its end comes back through the link and tells how
// the tree ended. Who asked for a start or a stop waits for its answer meanwhile and is kept in
// `waiting`; a registry that ends drops them, which tells them.
//
// Threads: the registry's actor; references ask it by application_request.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <smarm/application.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/report.hpp>
#include <smarm/this_actor.hpp>

#include "actor/child_stop.hpp"
#include "actor/reports.hpp"
#include "sched/thrown.hpp"

namespace smarm {

namespace {

using what = application_error::what;
using answer = oneshot_sender<application_result<void>>;

class registry_core;

struct application_request {
  std::move_only_function<void(registry_core*)> serve;
};

struct master_ready {
  pid master;
  start_result tree;
};

std::unexpected<application_error> refused(what kind, std::string name, exit_reason why = {}) {
  return std::unexpected(application_error{kind, std::move(name), std::move(why)});
}

// ---- the master ------------------------------------------------------------------------------

start_result start_tree(const application_spec& spec) {
  const auto failed = [](exit_reason why) {
    return std::unexpected(start_error{start_error::what::failed, std::move(why), {}});
  };
  try {
    return spec.start();
  } catch (const exit_request& request) {
    return failed(request.why);
  } catch (const detail::stack_probe&) {
    std::abort();
  } catch (const std::exception&) {
    return failed(detail::caught_reason());
  }
}

// Ends with the reason with which the tree ended, or was told to.
void run_master(pid registry, const application_spec& spec) {
  trap_exit(true);
  const start_result tree = start_tree(spec);
  send(registry, master_ready{self(), tree});
  if (!tree) return;
  if (!is_linked(*tree)) (void)link(*tree);
  exit_signal end =
      receive(when([&](const exit_signal& s) { return s.from == registry || s.from == *tree; },
                   [](exit_signal s) { return s; }));
  if (end.from == registry) {
    (void)detail::stop_child(*tree, child_shutdown::infinity(), std::chrono::seconds(0));
  }
  if (spec.stopped) spec.stopped();
  if (!end.reason.is_normal()) exit(std::move(end.reason));
}

// ---- the registry ----------------------------------------------------------------------------

class registry_core {
 public:
  explicit registry_core(const starting& me) noexcept : parent_(me.parent()) {}

  [[nodiscard]] exit_reason run();

  application_result<void> load(application_spec spec);
  void start(const std::string& name, application_type type, answer to);
  void stop(const std::string& name, answer to);
  [[nodiscard]] std::vector<running_application> running() const;

 private:
  enum class state : std::uint8_t { loaded, starting, running, stopping };
  struct entry {
    std::shared_ptr<const application_spec> spec;
    state now = state::loaded;
    application_type type = application_type::temporary;
    pid master = {};
    pid supervisor = {};
    std::vector<answer> waiting = {};
  };

  void on_ready(const master_ready& word);
  void on_exit(const exit_signal& signal);
  void on_end(const std::string& name, entry& of, const exit_reason& why);
  void stop_everything();
  static void stop_master(pid master);
  [[nodiscard]] std::map<std::string, entry>::iterator find_master(pid who);
  static void answer_all(entry& of, const application_result<void>& result);

  const pid parent_;
  std::map<std::string, entry> entries_;
  std::vector<std::string> order_;  // of the starts of those that run or stop
  std::optional<exit_reason> end_;
};

exit_reason registry_core::run() {
  while (!end_) {
    receive([this](application_request request) { request.serve(this); },
            [this](const master_ready& word) { on_ready(word); },
            [this](const exit_signal& signal) { on_exit(signal); },
            [](const any_message& message) {
              detail::report_of_self(report_kind::unexpected, {},
                                     std::string("a message of type ") + message.type().name());
            });
  }
  stop_everything();
  return *end_;
}

application_result<void> registry_core::load(application_spec spec) {
  std::string name = spec.name;
  if (entries_.contains(name)) return refused(what::already_loaded, std::move(name));
  entries_.emplace(std::move(name),
                   entry{.spec = std::make_shared<const application_spec>(std::move(spec))});
  return {};
}

void registry_core::start(const std::string& name, application_type type, answer to) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    (void)to.send(refused(what::not_loaded, name));
    return;
  }
  entry& of = found->second;
  if (of.now == state::starting) {
    of.waiting.push_back(std::move(to));
    return;
  }
  if (of.now != state::loaded) {
    (void)to.send(refused(what::already_started, name));
    return;
  }
  for (const std::string& needed : of.spec->needs) {
    const auto other = entries_.find(needed);
    if (other == entries_.end() || other->second.now != state::running) {
      (void)to.send(refused(what::not_started, needed));
      return;
    }
  }
  of.now = state::starting;
  of.type = type;
  of.waiting.push_back(std::move(to));
  auto master = spawn({.name = name, .stack_size = 0, .ties = linked},
                      [registry = self(), spec = of.spec] { run_master(registry, *spec); });
  of.master = master.id();
  master.detach();
}

void registry_core::on_ready(const master_ready& word) {
  const auto found = find_master(word.master);
  if (found == entries_.end()) return;
  entry& of = found->second;
  if (word.tree) {
    of.now = state::running;
    of.supervisor = *word.tree;
    order_.push_back(found->first);
    answer_all(of, {});
  } else {
    of.now = state::loaded;
    of.master = {};
    answer_all(of, refused(what::start_failed, found->first, word.tree.error().reason));
  }
}

void registry_core::stop(const std::string& name, answer to) {
  const auto found = entries_.find(name);
  const bool runs = found != entries_.end() &&
                    (found->second.now == state::running || found->second.now == state::stopping);
  if (!runs) {
    (void)to.send(refused(what::not_started, name));
    return;
  }
  entry& of = found->second;
  of.waiting.push_back(std::move(to));
  if (of.now == state::stopping) return;
  of.now = state::stopping;
  exit(of.master, exit_reason::shutdown());
}

void registry_core::on_exit(const exit_signal& signal) {
  if (signal.from == parent_) {
    end_ = signal.reason;
    return;
  }
  const auto found = find_master(signal.from);
  if (found != entries_.end()) on_end(found->first, found->second, signal.reason);
}

// A master has ended, and its tree with it.
void registry_core::on_end(const std::string& name, entry& of, const exit_reason& why) {
  const state before = std::exchange(of.now, state::loaded);
  std::erase(order_, name);
  of.master = {};
  of.supervisor = {};
  if (before == state::stopping) {
    answer_all(of, {});
    return;
  }
  if (before == state::starting) {  // the master was ended before it could say anything
    answer_all(of, refused(what::start_failed, name, why));
    return;
  }
  emit_report({.kind = report_kind::child_terminated,
               .who = self(),
               .name = std::string(self_name()),
               .reason = why,
               .id = atom(name),
               .text = "an application has ended"});
  const bool is_fatal = of.type == application_type::permanent ||
                        (of.type == application_type::transient && !why.is_normal());
  if (is_fatal) {
    end_ = exit_reason::shutdown(
        term::tuple({atom("application_terminated"), atom(name), why.to_term()}));
  }
}

// The last started first, then those that are about to start.
void registry_core::stop_everything() {
  while (!order_.empty()) {
    stop_master(entries_.at(order_.back()).master);
    order_.pop_back();
  }
  for (const auto& [name, of] : entries_) {
    if (of.now == state::starting) stop_master(of.master);
  }
}

// Requests that come meanwhile are dropped, which answers them: a start that asks the registry
// would otherwise wait for it, and it for the start.
void registry_core::stop_master(pid master) {
  const monitor_ref watch = monitor(master, to_mailbox);
  exit(master, exit_reason::shutdown());
  bool has_ended = false;
  while (!has_ended) {
    receive(when([&](const down& d) { return d.ref == watch.id(); },
                 [&](const down&) { has_ended = true; }),
            [](application_request) {});
  }
}

std::vector<running_application> registry_core::running() const {
  std::vector<running_application> all;
  for (auto name = order_.rbegin(); name != order_.rend(); ++name) {
    const entry& of = entries_.at(*name);
    all.push_back({.name = *name, .type = of.type, .supervisor = of.supervisor});
  }
  return all;
}

std::map<std::string, registry_core::entry>::iterator registry_core::find_master(pid who) {
  return std::ranges::find_if(entries_,
                              [who](const auto& each) { return each.second.master == who; });
}

void registry_core::answer_all(entry& of, const application_result<void>& result) {
  for (answer& each : std::exchange(of.waiting, {})) (void)each.send(result);
}

// ---- references ------------------------------------------------------------------------------

// ask runs `question`, which answers by the sender that it is given, in the registry.
template <class T, class F>
application_result<T> ask(pid registry, deadline until, F question) {
  if (is_actor() && self() == registry) {
    throw misuse("smarm::applications: the registry asks itself");
  }
  auto ends = oneshot<application_result<T>>();
  application_request request{
      [tell = std::move(ends.tx), question = std::move(question)](registry_core* core) mutable {
        question(*core, std::move(tell));
      }};
  if (send(registry, std::move(request)) != delivery::sent) return refused(what::no_registry, {});
  auto got = ends.rx.recv_until(until);
  if (got) return std::move(*got);
  return refused(got.error() == recv_error::timed_out ? what::timed_out : what::no_registry, {});
}

}  // namespace

std::expected<applications, start_error> applications::start_link(std::string name) {
  const start_result started = smarm::start_link({.name = std::move(name)}, [](starting& me) {
    trap_exit(true);
    exit_reason why;
    {
      registry_core core(me);
      me.ready();
      why = core.run();
    }
    if (!why.is_normal()) exit(std::move(why));
  });
  if (!started) return std::unexpected(started.error());
  return applications(*started);
}

application_result<void> applications::load(application_spec spec, deadline until) const {
  return ask<void>(registry_, until,
                   [spec = std::move(spec)](registry_core& core, answer to) mutable {
                     (void)to.send(core.load(std::move(spec)));
                   });
}

application_result<void> applications::start(std::string name, application_type type,
                                             deadline until) const {
  return ask<void>(registry_, until,
                   [name = std::move(name), type](registry_core& core, answer to) {
                     core.start(name, type, std::move(to));
                   });
}

application_result<void> applications::stop(std::string name, deadline until) const {
  return ask<void>(registry_, until, [name = std::move(name)](registry_core& core, answer to) {
    core.stop(name, std::move(to));
  });
}

application_result<std::vector<running_application>> applications::running(deadline until) const {
  using all = std::vector<running_application>;
  return ask<all>(registry_, until,
                  [](registry_core& core, oneshot_sender<application_result<all>> to) {
                    (void)to.send(core.running());
                  });
}

application_result<std::vector<std::string>> applications::ensure_all_started(
    const std::string& name, application_type type, deadline until) const {
  std::vector<std::string> started;
  std::vector<std::string> wanted{name};  // each is needed by the one before
  while (!wanted.empty()) {
    auto result = start(wanted.back(), type, until);
    if (result) started.push_back(wanted.back());
    if (result || result.error().kind == what::already_started) {
      wanted.pop_back();
      continue;
    }
    application_error error = std::move(result.error());
    if (error.kind == what::not_started) {
      if (std::ranges::find(wanted, error.name) == wanted.end()) {
        wanted.push_back(error.name);
        continue;
      }
      error.kind = what::circular;
    }
    for (auto each = started.rbegin(); each != started.rend(); ++each) (void)stop(*each, until);
    return std::unexpected(std::move(error));
  }
  return started;
}

std::string to_string(const application_error& error) {
  const std::string name = "\"" + error.name + "\"";
  switch (error.kind) {
    case what::no_registry:
      return "the registry of applications has ended";
    case what::timed_out:
      return "no answer in time";
    case what::not_loaded:
      return name + " is not loaded";
    case what::already_loaded:
      return name + " is already loaded";
    case what::already_started:
      return name + " is already started";
    case what::not_started:
      return name + " is not started";
    case what::start_failed:
      return name + " could not be started: " + error.reason.message();
    case what::circular:
      return name + " needs itself";
  }
  return "unknown";
}

}  // namespace smarm
