// What the tests of supervisors share: workers that tell the test what becomes of them, parents
// that keep a supervisor, and the reports made meanwhile.
//
// A worker traps exits and sends its log `start Id`, `failstart Id` and `stop Id Reason`, each
// before its supervisor can go on, so that after the supervisor's answer they are all there.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <smarm/guarded.hpp>
#include <smarm/report.hpp>
#include <smarm/start.hpp>
#include <smarm/supervisor.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm::test {

struct event {
  std::string text;
};

// end_with tells a worker to end by itself.
struct end_with {
  exit_reason why;
};

struct worker_options {
  bool never_stops = false;               // once told to end it waits for ever, and can be killed
  bool waits_for_go = false;              // once told to end it says `stopping Id` and waits for go
  std::optional<exit_reason> fails = {};  // its start
  std::shared_ptr<std::atomic<int>> good_starts = {};  // how many starts go well before `fails`
  bool ignores = false;
};

[[noreturn]] inline void end_worker(pid log, const std::string& name, const worker_options& how,
                                    const exit_reason& why) {
  if (how.never_stops) wait_for_ever();
  if (how.waits_for_go) {
    send(log, event{"stopping " + name});
    (void)receive<go>();
  }
  send(log, event{"stop " + name + " " + why.message()});
  exit(why);
}

inline start_result start_worker(pid log, const term& id, const worker_options& how = {}) {
  const std::string name = to_string(id);
  return start_link({}, [log, name, how](starting& me) {
    trap_exit(true);
    const bool fails = how.fails && (!how.good_starts || how.good_starts->fetch_sub(1) <= 0);
    if (fails || how.ignores) send(log, event{"failstart " + name});
    if (fails) me.fail(*how.fails);
    if (how.ignores) return me.ignore();
    send(log, event{"start " + name});
    me.ready();
    receive(when([&](const exit_signal& s) { return s.from == me.parent(); },
                 [&](const exit_signal& s) { end_worker(log, name, how, s.reason); }),
            [&](const end_with& end) { end_worker(log, name, how, end.why); });
  });
}

// worker is the spec of one that logs to the calling actor.
inline child_spec worker(const term& id, const worker_options& how = {}) {
  return {.id = id,
          .start = [log = self(), id, how] { return start_worker(log, id, how); },
          .start_with = {}};
}
inline child_spec worker(const term& id, child_restart restart, const worker_options& how = {}) {
  child_spec spec = worker(id, how);
  spec.restart = restart;
  return spec;
}
inline child_spec worker(const term& id, child_shutdown shutdown, const worker_options& how = {}) {
  child_spec spec = worker(id, how);
  spec.shutdown = shutdown;
  return spec;
}
inline child_spec significant(child_spec spec) {
  spec.significant = true;
  return spec;
}
// many is the template of a simple_one_for_one supervisor: workers named by the argument.
inline child_spec many(const worker_options& how = {}) {
  return {.id = atom("x"), .start = {}, .start_with = [log = self(), how](const term& id) {
            return start_worker(log, id, how);
          }};
}

using events = std::vector<std::string>;

// next_events waits for so many events.
inline events next_events(std::size_t count) {
  events all;
  while (all.size() < count) {
    auto next = take<event>();
    if (!next) break;
    all.push_back(std::move(next->text));
  }
  return all;
}

// events_here takes those that are in the mailbox now.
inline events events_here() {
  events all;
  while (auto next = receive_for<event>(0s)) all.push_back(std::move(next->text));
  return all;
}

// start_here starts a supervisor linked to the caller, which ends with it.
inline supervisor_ref start_here(supervisor_flags flags, std::vector<child_spec> specs) {
  const start_result started = start_supervisor_link(std::move(flags), std::move(specs));
  if (!started) {
    ADD_FAILURE() << to_string(started.error());
    return pid();
  }
  return *started;
}

inline pid child_pid(const supervisor_ref& of, const term& id) {
  const auto found = of.child_of(id);
  EXPECT_TRUE(found.has_value()) << to_string(id);
  return found.value_or(pid());
}

// await_dealt_with waits until an actor has ended and its supervisor has seen to that.
inline void await_dealt_with(const supervisor_ref& of, const term& id, pid who) {
  (void)await_end(who);
  const deadline until(long_enough);
  for (auto now = of.child_of(id); now == who; now = of.child_of(id)) {
    ASSERT_FALSE(until.has_passed()) << "the end of the child goes unnoticed";
    yield();
  }
}

inline void kill_child(const supervisor_ref& of, const term& id) {
  const pid who = child_pid(of, id);
  kill(who);
  await_dealt_with(of, id, who);
}

// end_child tells a worker to end.
inline void end_child(const supervisor_ref& of, const term& id, const exit_reason& why) {
  const pid who = child_pid(of, id);
  send(who, end_with{why});
  await_dealt_with(of, id, who);
}

// A parent is an actor of its own that starts a supervisor and traps exits: it tells the test of
// the supervisor's end, and ends when told to or with the test.
struct die {
  exit_reason why;
};
struct supervisor_end {
  pid who;
  exit_reason why;
};
struct parent {
  pid who;
  start_result started;
  [[nodiscard]] pid supervisor() const { return started.value_or(pid()); }
};

inline parent start_parent(const supervisor_flags& flags, const std::vector<child_spec>& specs) {
  spawn_detached([test = self(), flags, specs] {
    trap_exit(true);
    const monitor_ref watch = monitor(test, to_mailbox);
    send(test, parent{self(), start_supervisor_link(flags, specs)});
    receive([](const die& d) { exit(d.why); },
            [&](const exit_signal& s) { send(test, supervisor_end{s.from, s.reason}); },
            when([&](const down& d) { return d.ref == watch.id(); }, [](const down&) {}));
  });
  const auto made = take<parent>();
  return made ? *made : parent{};
}

// supervisor_test is the fixture: reports go to the test instead of standard error.
class supervisor_test : public actors_test {
 protected:
  void SetUp() override {
    actors_test::SetUp();
    before_ = set_report_handler([this](const report& what) {
      if (what.kind == report_kind::progress) return;
      reports_.lock()->push_back(what);
      if (const pid to = *listener_.lock(); to.is_valid()) send(to, what);
    });
  }
  void TearDown() override {
    (void)set_report_handler(std::move(before_));
    before_ = {};
    reports_.lock()->clear();
    reports_.lock()->shrink_to_fit();
    actors_test::TearDown();
  }

  // run as the fixture's; fails where the root is ended from outside, which void runs swallow.
  template <class F>
  static void run(F&& root) {
    bool is_done = false;
    actors_test::run([&] {
      root();
      is_done = true;
    });
    EXPECT_TRUE(is_done) << "the test's own actor was ended";
  }

  // listen makes the calling actor get every report from now on as a message.
  void listen() { *listener_.lock() = self(); }

  // reported_kinds are those made so far, without those of actors that crash.
  [[nodiscard]] std::vector<report_kind> reported_kinds() {
    std::vector<report_kind> kinds;
    for (const report& each : *reports_.lock()) {
      if (each.kind != report_kind::crash) kinds.push_back(each.kind);
    }
    return kinds;
  }

 private:
  guarded<std::vector<report>> reports_;
  guarded<pid> listener_;
  report_handler before_;
};

}  // namespace smarm::test
