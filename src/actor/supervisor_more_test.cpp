// What supervisors do besides the probe's cases: children that cannot be unwound, restarts that
// are held back, nested trees, bad specs, and requests that fail.
#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <smarm/blocking.hpp>
#include <smarm/supervisor.hpp>

#include "actor/supervisor_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::child_pid;
using test::die;
using test::end_child;
using test::events;
using test::events_here;
using test::go;
using test::is_alive;
using test::kill_child;
using test::long_enough;
using test::many;
using test::next_events;
using test::significant;
using test::start_here;
using test::start_parent;
using test::supervisor_end;
using test::take;
using test::worker;
using test::worker_options;
using enum child_restart;
using enum restart_strategy;
using what = supervisor_error::what;

class supervisor_more_test : public test::supervisor_test {};
SMARM_TEST_AT_1_2_8(supervisor_more_test);

// ---- children that cannot be unwound ---------------------------------------------------------

// One that no kill unwinds until it is told to go.
start_result start_stubborn() {
  return start_link({}, [](starting& me) {
    const stop_shield whole;
    me.ready();
    (void)receive<go>();
  });
}

child_spec stubborn(const term& id, child_shutdown shutdown) {
  return {.id = id,
          .start = start_stubborn,
          .start_with = {},
          .restart = transient,
          .shutdown = shutdown};
}

// The next report of that kind; the test listens.
std::optional<report> next_report(report_kind kind) {
  return receive(when([kind](const report& r) { return r.kind == kind; },
                      [](report r) { return std::optional(std::move(r)); }),
                 after(long_enough, [] { return std::optional<report>(); }));
}

void expect_left_behind(pid child) {
  const auto told = next_report(report_kind::shutdown_error);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->child, child);
  EXPECT_TRUE(told->reason.is("left_behind"));
  EXPECT_NE(told->text.find("left behind"), std::string::npos);
  EXPECT_TRUE(is_alive(child));
  send(child, go{});
  (void)await_end(child);
}

TEST_P(supervisor_more_test, who_cannot_be_unwound_is_left_behind_and_reported) {
  run([this] {
    listen();
    const auto top =
        start_here({.kill_grace = 10ms},
                   {stubborn(1, 5ms), stubborn(2, child_shutdown::brutal_kill()), worker(3)});
    for (const int id : {1, 2}) {
      const pid child = child_pid(top, id);
      EXPECT_TRUE(top.terminate_child(id).has_value());
      expect_left_behind(child);
      const pid again = top.restart_child(id).value();
      send(again, go{});
      (void)await_end(again);
    }
    EXPECT_TRUE(is_alive(child_pid(top, 3)));
  });
  // Nothing more is heard of them, least of all a down that nobody waits for.
  EXPECT_EQ(reported_kinds(),
            (std::vector{report_kind::shutdown_error, report_kind::shutdown_error}));
}

// A child that was not started by start_link has no registered name, but what it was spawned with.
TEST_P(supervisor_more_test, who_is_left_behind_is_reported_by_the_name_of_its_spawn) {
  run([this] {
    listen();
    std::atomic<bool> is_deaf = false;
    const auto start = [&is_deaf] {
      auto handle = spawn({.name = "deaf to all", .ties = linked}, [&is_deaf] {
        const stop_shield whole;
        is_deaf = true;
        (void)receive<go>();
      });
      while (!is_deaf) yield();
      return start_result(handle.id());
    };
    const auto top = start_here(
        {.kill_grace = 10ms},
        {{.id = 1, .start = start, .start_with = {}, .shutdown = child_shutdown::brutal_kill()}});
    const pid child = child_pid(top, 1);
    EXPECT_TRUE(top.terminate_child(1).has_value());
    const auto told = next_report(report_kind::shutdown_error);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->text, "killed, and not ended after 10 ms: left behind, named \"deaf to all\"");
    send(child, go{});
    (void)await_end(child);
  });
}

TEST_P(supervisor_more_test, a_group_restart_goes_on_without_who_is_left_behind) {
  run([this] {
    listen();
    const auto top =
        start_here({.strategy = one_for_all, .kill_grace = 10ms}, {stubborn(1, 5ms), worker(2)});
    (void)events_here();
    const pid left = child_pid(top, 1);
    kill_child(top, 2);
    EXPECT_EQ(next_events(1), (events{"start 2"}));
    expect_left_behind(left);
    EXPECT_NE(child_pid(top, 1), left);
    send(child_pid(top, 1), go{});
  });
}

TEST_P(supervisor_more_test, dynamic_children_that_cannot_be_unwound_are_left_behind_together) {
  run([this] {
    listen();
    child_spec spec = many();
    spec.shutdown = 5ms;
    const auto parent = start_parent({.strategy = simple_one_for_one, .kill_grace = 10ms}, {spec});
    const supervisor_ref top(parent.supervisor());
    std::vector<pid> left;
    for (int i = 0; i < 3; ++i) left.push_back(top.start_dynamic(start_stubborn).value());
    (void)top.start_dynamic(1);
    const monitor_ref watch = monitor(parent.supervisor(), to_mailbox);
    send(parent.who, die{exit_reason::shutdown()});
    EXPECT_EQ(test::down_of(watch), exit_reason::shutdown());
    EXPECT_EQ(events_here(), (events{"start 1", "stop 1 shutdown"}));
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(next_report(report_kind::shutdown_error)->text,
                "killed, and not ended after 10 ms: left behind");
    }
    for (const pid each : left) {
      EXPECT_TRUE(is_alive(each));
      send(each, go{});
      (void)await_end(each);
    }
  });
}

TEST_P(supervisor_more_test, who_computes_without_a_stop_point_is_left_behind) {
  if (schedulers() == 1) GTEST_SKIP() << "it would have the only scheduler";
  run([this] {
    listen();
    std::atomic<bool> enough = false;
    const auto compute = [&enough] {
      return start_link({}, [&enough](starting& me) {
        me.ready();
        while (!enough) {
        }
      });
    };
    const auto top =
        start_here({.kill_grace = 10ms}, {{.id = atom("pi"), .start = compute, .shutdown = 5ms}});
    const pid child = child_pid(top, atom("pi"));
    EXPECT_TRUE(top.terminate_child(atom("pi")).has_value());
    EXPECT_TRUE(next_report(report_kind::shutdown_error)->reason.is("left_behind"));
    EXPECT_TRUE(is_alive(child));
    enough = true;
    (void)await_end(child);
  });
}

// ---- restarts --------------------------------------------------------------------------------

TEST_P(supervisor_more_test, a_start_that_fails_is_tried_again_and_each_try_counts) {
  run([] {
    const worker_options how{.fails = exit_reason(atom("bad")),
                             .good_starts = std::make_shared<std::atomic<int>>(1)};
    const auto parent = start_parent({.intensity = 3, .period = 600s}, {worker(1, how)});
    EXPECT_EQ(events_here(), (events{"start 1"}));
    kill(child_pid(parent.supervisor(), 1));
    EXPECT_TRUE(take<supervisor_end>()->why.is_shutdown());
    EXPECT_EQ(events_here(), (events{"failstart 1", "failstart 1", "failstart 1"}));
  });
  using enum report_kind;
  EXPECT_EQ(reported_kinds(), (std::vector{child_terminated, start_error, start_error, start_error,
                                           report_kind::shutdown}));
}

TEST_P(supervisor_more_test, a_group_whose_restart_fails_is_tried_again_as_a_group) {
  run([] {
    const worker_options how{.fails = exit_reason(atom("bad")),
                             .good_starts = std::make_shared<std::atomic<int>>(1)};
    const auto parent = start_parent({.strategy = one_for_all, .intensity = 2, .period = 600s},
                                     {worker(1), worker(2, how), worker(3)});
    (void)events_here();
    kill(child_pid(parent.supervisor(), 3));
    EXPECT_TRUE(take<supervisor_end>()->why.is_shutdown());
    EXPECT_EQ(events_here(),
              (events{"stop 2 shutdown", "stop 1 shutdown", "start 1", "failstart 2",
                      "stop 1 shutdown", "start 1", "failstart 2", "stop 1 shutdown"}));
  });
}

TEST_P(supervisor_more_test, a_temporary_child_goes_with_the_group_for_good) {
  run([] {
    const auto top = start_here({.strategy = one_for_all},
                                {worker(1, temporary), worker(2), worker(3, temporary)});
    (void)events_here();
    kill_child(top, 2);
    EXPECT_EQ(next_events(3), (events{"stop 3 shutdown", "stop 1 shutdown", "start 2"}));
    EXPECT_EQ(top.count_children(), (child_counts{1, 1, 0, 1}));
  });
}

TEST_P(supervisor_more_test, a_dynamic_child_is_restarted_as_it_was_started) {
  run([] {
    const auto top = start_here({.strategy = simple_one_for_one, .intensity = 9}, {many()});
    const pid first = top.start_dynamic(atom("a")).value();
    const pid second =
        top.start_dynamic([log = self()] { return test::start_worker(log, atom("b")); }).value();
    (void)events_here();
    for (const pid each : {first, second}) kill(each);
    events again = next_events(2);
    std::ranges::sort(again);
    EXPECT_EQ(again, (events{"start a", "start b"}));
    EXPECT_EQ(top.count_children()->active, 2U);
    EXPECT_TRUE(top.terminate_child(first).has_value()) << "it has ended, as OTP has it";
    EXPECT_EQ(top.terminate_child(self()).error().kind, what::not_found);
    EXPECT_EQ(top.count_children()->active, 2U);
  });
}

TEST_P(supervisor_more_test, a_dynamic_child_can_be_terminated_while_it_is_restarting) {
  run([] {
    const test::worker_options once{.fails = exit_reason(atom("bad")),
                                    .good_starts = std::make_shared<std::atomic<int>>(1)};
    const auto top =
        start_here({.strategy = simple_one_for_one, .intensity = 1'000'000}, {many(once)});
    const pid first = top.start_dynamic(atom("a")).value();
    kill(first);
    EXPECT_EQ(next_events(3), (events{"start a", "failstart a", "failstart a"}));
    EXPECT_TRUE(top.terminate_child(first).has_value());
    EXPECT_EQ(top.count_children(), (child_counts{1, 0, 0, 0}));
  });
}

TEST_P(supervisor_more_test, a_start_that_forgets_the_link_makes_a_child_all_the_same) {
  run([] {
    const auto unlinked = [log = self()] {
      return start({}, [log](starting& me) {
        send(log, test::event{"start"});
        me.ready();
        test::wait_for_ever();
      });
    };
    const auto top = start_here({}, {{.id = 1, .start = unlinked}});
    kill(child_pid(top, 1));
    EXPECT_EQ(next_events(2), (events{"start", "start"}));
  });
}

TEST_P(supervisor_more_test, a_restart_is_held_back_as_long_as_the_back_off_says) {
  run([] {
    const auto top =
        start_here({.intensity = 9, .backoff = {.initial = 20ms, .jitter = 0}}, {worker(1)});
    (void)events_here();
    for (const auto least : {20ms, 40ms}) {
      const auto before = std::chrono::steady_clock::now();
      kill_child(top, 1);
      EXPECT_EQ(next_events(1), (events{"start 1"}));
      EXPECT_GE(std::chrono::steady_clock::now() - before, least);
    }
  });
}

TEST_P(supervisor_more_test, while_a_restart_is_held_back_its_group_is_stopped) {
  run([] {
    const auto top =
        start_here({.strategy = one_for_all, .backoff = {.initial = 1h, .maximum = 1h}},
                   {worker(1), worker(2), worker(3)});
    (void)events_here();
    kill_child(top, 2);
    EXPECT_EQ(next_events(2), (events{"stop 3 shutdown", "stop 1 shutdown"}));
    EXPECT_EQ(top.restart_child(2).error().kind, what::restarting);
    EXPECT_EQ(top.delete_child(2).error().kind, what::restarting);
    EXPECT_EQ(top.count_children()->active, 0U);
    // By hand it need not be waited for.
    EXPECT_TRUE(top.terminate_child(2).has_value());
    EXPECT_TRUE(top.restart_child(2).has_value());
    EXPECT_EQ(events_here(), (events{"start 2"}));
  });
}

TEST_P(supervisor_more_test, all_significant_ends_it_with_the_last_of_them) {
  run([] {
    const auto parent = start_parent(
        {.auto_shutdown = auto_shutdown_kind::all_significant},
        {significant(worker(1, transient)), worker(2), significant(worker(3, temporary))});
    (void)events_here();
    end_child(parent.supervisor(), 1, exit_reason::normal());
    EXPECT_TRUE(is_alive(parent.supervisor()));
    send(child_pid(parent.supervisor(), 3), test::end_with{exit_reason(atom("boom"))});
    EXPECT_EQ(take<supervisor_end>()->why, exit_reason::shutdown());
    EXPECT_EQ(events_here(), (events{"stop 1 normal", "stop 3 boom", "stop 2 shutdown"}));
  });
}

// ---- trees -----------------------------------------------------------------------------------

TEST_P(supervisor_more_test, a_tree_stops_from_its_leaves_and_an_inner_supervisor_is_restarted) {
  run([] {
    const auto parent = start_parent(
        {.intensity = 1, .period = 600s},
        {worker(1), supervisor_spec(atom("inner"), {.intensity = 0}, {worker(2), worker(3)})});
    EXPECT_EQ(events_here(), (events{"start 1", "start 2", "start 3"}));
    const supervisor_ref inner = child_pid(parent.supervisor(), atom("inner"));
    kill(child_pid(inner, 2));
    EXPECT_EQ(next_events(3), (events{"stop 3 shutdown", "start 2", "start 3"}));
    const monitor_ref watch = monitor(parent.supervisor(), to_mailbox);
    send(parent.who, die{exit_reason::shutdown()});
    EXPECT_TRUE(test::down_of(watch)->is_shutdown());
    EXPECT_EQ(events_here(), (events{"stop 3 shutdown", "stop 2 shutdown", "stop 1 shutdown"}));
  });
}

TEST_P(supervisor_more_test, the_children_of_a_killed_supervisor_learn_it_through_their_links) {
  run([] {
    const auto parent = start_parent({}, {worker(1)});
    (void)events_here();
    kill(parent.supervisor());
    EXPECT_EQ(next_events(1), (events{"stop 1 killed"}));
    EXPECT_TRUE(take<supervisor_end>()->why.is_killed());
  });
}

TEST_P(supervisor_more_test, explain_shows_the_whole_tree) {
  run([] {
    const auto top = start_here(
        {.name = "top"}, {worker(atom("db")),
                          supervisor_spec(atom("web"), {.strategy = simple_one_for_one}, {many()}),
                          worker(atom("idle"), {.ignores = true})});
    (void)supervisor_ref(child_pid(top, atom("web"))).start_dynamic(7);
    (void)events_here();
    kill_child(top, atom("db"));
    (void)next_events(1);
    const std::string tree = supervisor_ref("top").explain();
    for (const char* const part :
         {" \"top\", one_for_one, up ", ", 1 of 1 restarts in 5 s\n  db <",
          " permanent worker, 1 restart, last end: killed\n  web <", "permanent supervisor\n",
          "    supervisor <", ", simple_one_for_one, up ", "\n      undefined <",
          "\n  idle absent, permanent worker\n"}) {
      EXPECT_NE(tree.find(part), std::string::npos) << part << " is not in\n" << tree;
    }
  });
}

// ---- what is refused -------------------------------------------------------------------------

TEST_P(supervisor_more_test, specs_and_flags_that_make_no_sense_are_start_errors) {
  run([] {
    const auto why = [](const supervisor_flags& flags, const std::vector<child_spec>& specs) {
      const start_result refused = start_supervisor(flags, specs);
      return refused ? "started" : to_string(refused.error().reason.to_term());
    };
    EXPECT_EQ(why({}, {worker(1), worker(2), worker(1)}), "{start_spec,{duplicate_child_name,1}}");
    EXPECT_EQ(why({}, {worker({})}), "{start_spec,missing_id}");
    EXPECT_EQ(why({}, {{.id = 1}}), "{start_spec,missing_start}");
    EXPECT_EQ(why({}, {worker(1, child_shutdown(-1s))}), "{start_spec,{invalid_shutdown,-1000}}");
    EXPECT_EQ(why({.period = 0s}, {}), "{supervisor_data,{invalid_period,0}}");
    EXPECT_EQ(why({.strategy = simple_one_for_one}, {worker(1), worker(2)}),
              "{bad_start_spec,[1,2]}");
    EXPECT_EQ(events_here(), events{});
  });
}

TEST_P(supervisor_more_test, a_start_that_throws_or_asks_its_own_supervisor_has_failed) {
  run([] {
    const auto top = start_here({}, {});
    const auto error_of = [&](std::function<start_result()> start) {
      return top.start_child({.id = 1, .start = std::move(start)}).error();
    };
    const auto thrown = error_of([]() -> start_result { throw std::runtime_error("no disk"); });
    EXPECT_EQ(thrown.kind, what::start_failed);
    EXPECT_EQ(thrown.reason.text(), "no disk");
    const auto strange = error_of([]() -> start_result { throw 42; });
    EXPECT_EQ(strange.kind, what::start_failed);
    EXPECT_EQ(strange.reason.type_name(), "int");
    EXPECT_TRUE(error_of([]() -> start_result { exit(exit_reason(atom("no"))); }).reason.is("no"));
    const auto selfish = error_of([]() -> start_result {
      (void)supervisor_ref(self()).count_children();
      return pid();
    });
    EXPECT_TRUE(selfish.reason.is_error());
    EXPECT_EQ(top.count_children(), child_counts{});
    EXPECT_EQ(top.start_child({.id = 1}).error().kind, what::bad_spec);
    EXPECT_EQ(top.start_dynamic(1).error().kind, what::simple_one_for_one);
  });
}

TEST_P(supervisor_more_test, requests_fail_where_nobody_answers) {
  run([] {
    EXPECT_EQ(supervisor_ref("nobody").count_children().error().kind, what::no_such_supervisor);
    EXPECT_EQ(supervisor_ref(pid{}).count_children().error().kind, what::no_such_supervisor);
    const pid deaf = test::spawn_detached([] { (void)receive<go>(); });
    EXPECT_EQ(supervisor_ref(deaf).count_children(5ms).error().kind, what::timed_out);
    send(deaf, go{});
    (void)await_end(deaf);
  });
}

TEST_P(supervisor_more_test, a_request_to_a_supervisor_that_ends_before_it_answers_fails) {
  run([] {
    const auto parent =
        start_parent({}, {worker(1, child_shutdown::infinity(), {.waits_for_go = true})});
    const pid child = child_pid(parent.supervisor(), 1);
    (void)events_here();
    send(parent.who, die{exit_reason::shutdown()});
    EXPECT_EQ(next_events(1), (events{"stopping 1"}));  // so it is stopping, and serves nobody
    const pid asker = test::spawn_detached([top = parent.supervisor(), test = self()] {
      send(test, supervisor_ref(top).count_children().error());
    });
    const supervisor_ref busy(parent.supervisor());
    EXPECT_EQ(busy.count_children(5ms).error().kind, what::timed_out);
    send(child, go{});
    EXPECT_EQ(take<supervisor_error>()->kind, what::no_such_supervisor);
    (void)await_end(asker);
  });
}

TEST_P(supervisor_more_test, a_thread_that_is_no_actor_may_ask_too) {
  run([] {
    const auto top = start_here({.name = "asked"}, {worker(1)});
    const auto counts =
        blocking([] { return supervisor_ref("asked").count_children(long_enough); });
    EXPECT_EQ(counts, (child_counts{1, 1, 0, 1}));
  });
}

TEST_P(supervisor_more_test, stop_ends_it_in_order_with_the_reason_given) {
  run([] {
    const start_result top = start_supervisor({}, {worker(1), worker(2)});
    (void)events_here();
    const monitor_ref watch = monitor(*top, to_mailbox);
    EXPECT_TRUE(supervisor_ref(*top).stop().has_value());
    EXPECT_EQ(test::down_of(watch), exit_reason::normal());
    EXPECT_EQ(events_here(), (events{"stop 2 shutdown", "stop 1 shutdown"}));
    EXPECT_EQ(supervisor_ref(*top).stop().error().kind, what::no_such_supervisor);
  });
}

TEST_P(supervisor_more_test, strangers_exits_do_not_end_it_and_unknown_messages_are_reported) {
  run([this] {
    listen();
    const auto top = start_here({.name = "calm"}, {worker(1)});
    (void)test::reason_of([] { exit(*whereis("calm"), exit_reason(atom("boom"))); });
    send("calm", 42);
    const auto told = next_report(report_kind::unexpected);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->name, "calm");
    EXPECT_EQ(top.count_children()->active, 1U);
  });
}

}  // namespace
}  // namespace smarm
