// Supervisors do what OTP's do. The names are those of the probe that was run on OTP 25; the
// expected events are copied from there.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <smarm/supervisor.hpp>

#include "actor/supervisor_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::child_pid;
using test::die;
using test::end_child;
using test::event;
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
using enum child_restart;
using enum restart_strategy;
using what = supervisor_error::what;

using supervisor_test = test::supervisor_test;
SMARM_TEST_AT_1_2_8(supervisor_test);

std::vector<child_spec> three() { return {worker(1), worker(2), worker(3)}; }

// end_of waits for the end of a parent's supervisor, as the parent tells it.
exit_reason end_of(const test::parent& of) {
  const auto end = take<supervisor_end>();
  EXPECT_TRUE(end && end->who == of.supervisor());
  return end ? end->why : exit_reason();
}

// stop_by tells the parent to end and returns how the supervisor then ended.
exit_reason stop_by(const test::parent& of, const exit_reason& why) {
  const monitor_ref watch = monitor(of.supervisor(), to_mailbox);
  send(of.who, die{why});
  return test::down_of(watch).value_or(exit_reason());
}

TEST_P(supervisor_test, U1_children_start_in_order_and_stop_in_reverse) {
  run([] {
    const auto parent = start_parent({}, three());
    EXPECT_EQ(events_here(), (events{"start 1", "start 2", "start 3"}));
    EXPECT_TRUE(stop_by(parent, exit_reason::shutdown()).is_shutdown());
    EXPECT_EQ(events_here(), (events{"stop 3 shutdown", "stop 2 shutdown", "stop 1 shutdown"}));
  });
}

TEST_P(supervisor_test, U2_one_for_one_restarts_only_the_one_that_failed) {
  run([] {
    const auto top = start_here({.strategy = one_for_one}, {worker(1), worker(2)});
    (void)events_here();
    kill_child(top, 1);
    EXPECT_EQ(next_events(1), (events{"start 1"}));
    (void)top.which_children();
    EXPECT_EQ(events_here(), events{});
  });
}

TEST_P(supervisor_test, U3_one_for_all_stops_the_others_in_reverse_and_starts_all) {
  run([] {
    const auto top = start_here({.strategy = one_for_all}, three());
    (void)events_here();
    kill_child(top, 2);
    EXPECT_EQ(next_events(5),
              (events{"stop 3 shutdown", "stop 1 shutdown", "start 1", "start 2", "start 3"}));
  });
}

TEST_P(supervisor_test, U4_rest_for_one_restarts_those_started_after_it_too) {
  run([] {
    const auto top = start_here({.strategy = rest_for_one}, three());
    (void)events_here();
    kill_child(top, 2);
    EXPECT_EQ(next_events(3), (events{"stop 3 shutdown", "start 2", "start 3"}));
    (void)top.which_children();
    EXPECT_EQ(events_here(), events{});
  });
}

TEST_P(supervisor_test, U5_too_many_restarts_stop_the_others_and_the_supervisor_ends_as_shutdown) {
  run([] {
    // A period that a loaded machine does not outlast.
    const auto parent = start_parent({.intensity = 1, .period = 600s}, {worker(1), worker(2)});
    (void)events_here();
    kill_child(parent.supervisor(), 1);
    EXPECT_EQ(next_events(1), (events{"start 1"}));
    kill_child(parent.supervisor(), 1);
    EXPECT_EQ(end_of(parent), exit_reason::shutdown());
    EXPECT_EQ(events_here(), (events{"stop 2 shutdown"}));
  });
}

TEST_P(supervisor_test, U6_permanent_transient_and_temporary_children_against_each_end) {
  run([] {
    const term p = atom("p");
    const term t = atom("t");
    const term x = atom("x");
    const auto top =
        start_here({.intensity = 100}, {worker(p), worker(t, transient), worker(x, temporary)});
    (void)events_here();
    const exit_reason boom(atom("boom"));
    const auto starts_after = [&](const term& id, const exit_reason& how) {
      end_child(top, id, how);
      return std::ranges::count(events_here(), "start " + to_string(id));
    };
    EXPECT_EQ(starts_after(p, exit_reason::normal()), 1);
    EXPECT_EQ(starts_after(p, exit_reason::shutdown()), 1);
    EXPECT_EQ(starts_after(p, boom), 1);
    EXPECT_EQ(starts_after(t, boom), 1);
    EXPECT_EQ(starts_after(t, exit_reason::normal()), 0);
    EXPECT_EQ(starts_after(x, boom), 0);
    const auto left = top.which_children();
    ASSERT_EQ(left->size(), 2U);
    EXPECT_EQ(left->at(0).id, t);
    EXPECT_EQ(left->at(0).state, child_state::absent);
    EXPECT_EQ(left->at(1).id, p);
    EXPECT_EQ(left->at(1).state, child_state::running);
  });
}

TEST_P(supervisor_test, U7_a_transient_child_that_shuts_down_stays_known_and_is_not_restarted) {
  run([] {
    const term t = atom("t");
    const auto top = start_here({.intensity = 100}, {worker(t, transient)});
    (void)events_here();
    end_child(top, t, exit_reason::shutdown());
    EXPECT_EQ(events_here(), (events{"stop t shutdown"}));
    EXPECT_TRUE(top.restart_child(t).has_value());
    (void)events_here();
    end_child(top, t, exit_reason::shutdown(atom("foo")));
    EXPECT_EQ(events_here(), (events{"stop t {shutdown,foo}"}));
    const auto left = top.which_children();
    ASSERT_EQ(left->size(), 1U);
    EXPECT_EQ(left->front().state, child_state::absent);
    EXPECT_EQ(left->front().last_end, exit_reason::shutdown(atom("foo")));
  });
}

TEST_P(supervisor_test, U8_brutal_kill_and_a_time_that_is_over_kill_and_others_end_in_order) {
  run([] {
    const auto parent = start_parent({}, {worker(1, child_shutdown::brutal_kill()),
                                          worker(2, child_shutdown(30ms), {.never_stops = true}),
                                          worker(3, child_shutdown(long_enough))});
    (void)events_here();
    const monitor_ref first = monitor(child_pid(parent.supervisor(), 1), to_mailbox);
    const monitor_ref second = monitor(child_pid(parent.supervisor(), 2), to_mailbox);
    EXPECT_EQ(stop_by(parent, exit_reason::shutdown()), exit_reason::shutdown());
    EXPECT_EQ(test::down_of(first), exit_reason::killed());
    EXPECT_EQ(test::down_of(second), exit_reason::killed());
    EXPECT_EQ(events_here(), (events{"stop 3 shutdown"}));
  });
  // Of the kills only the one that was not meant.
  EXPECT_EQ(reported_kinds(), (std::vector{report_kind::shutdown_error}));
}

TEST_P(supervisor_test, U9_a_start_that_fails_stops_those_before_it_and_says_which_and_why) {
  run([] {
    const auto parent =
        start_parent({}, {worker(1), worker(2, {.fails = exit_reason(atom("bad"))}), worker(3)});
    ASSERT_FALSE(parent.started.has_value());
    EXPECT_EQ(to_string(parent.started.error().reason.to_term()),
              "{shutdown,{failed_to_start_child,2,bad}}");
    EXPECT_EQ(events_here(), (events{"start 1", "failstart 2", "stop 1 shutdown"}));
  });
  EXPECT_EQ(reported_kinds(), (std::vector{report_kind::start_error}));
}

TEST_P(supervisor_test, U10_a_child_that_ignores_its_start_stays_known_unless_it_is_temporary) {
  run([] {
    const auto top =
        start_here({}, {worker(1, {.ignores = true}), worker(2, temporary, {.ignores = true})});
    const auto left = top.which_children();
    ASSERT_EQ(left->size(), 1U);
    EXPECT_EQ(left->front().id, term(1));
    EXPECT_EQ(left->front().state, child_state::absent);
  });
}

TEST_P(supervisor_test, U11_simple_one_for_one_children_are_known_by_pid) {
  run([] {
    const auto top = start_here({.strategy = simple_one_for_one}, {many()});
    const pid a = top.start_dynamic(atom("a")).value();
    const pid b = top.start_dynamic(atom("b")).value();
    EXPECT_EQ(events_here(), (events{"start a", "start b"}));
    std::vector<pid> there;
    const auto known = top.which_children();
    for (const child_info& each : known.value()) {
      EXPECT_TRUE(each.id.is_atom("undefined"));
      there.push_back(each.who);
    }
    EXPECT_EQ(there, (std::vector{b, a}));
    EXPECT_TRUE(top.terminate_child(a).has_value());
    EXPECT_FALSE(is_alive(a));
    EXPECT_EQ(top.terminate_child(atom("x")).error().kind, what::simple_one_for_one);
    EXPECT_EQ(top.count_children(), (child_counts{1, 1, 0, 1}));
  });
}

TEST_P(supervisor_test, U12_the_end_of_a_significant_child_ends_the_supervisor) {
  run([] {
    const auto parent = start_parent({.auto_shutdown = auto_shutdown_kind::any_significant},
                                     {worker(1), significant(worker(2, transient))});
    (void)events_here();
    send(child_pid(parent.supervisor(), 2), test::end_with{exit_reason::normal()});
    EXPECT_EQ(end_of(parent), exit_reason::shutdown());
    EXPECT_EQ(events_here(), (events{"stop 2 normal", "stop 1 shutdown"}));
  });
}

TEST_P(supervisor_test, U13_significant_goes_neither_with_never_nor_with_permanent) {
  run([] {
    const auto reason_with = [](const supervisor_flags& flags, const child_spec& spec) {
      return to_string(start_parent(flags, {spec}).started.error().reason.to_term());
    };
    EXPECT_EQ(reason_with({}, significant(worker(2, transient))),
              "{start_spec,{bad_combination,[{auto_shutdown,never},{significant,true}]}}");
    EXPECT_EQ(
        reason_with({.auto_shutdown = auto_shutdown_kind::any_significant}, significant(worker(2))),
        "{start_spec,{bad_combination,[{restart,permanent},{significant,true}]}}");
  });
}

TEST_P(supervisor_test, U15_terminate_restart_and_delete_answer_by_the_childs_state) {
  run([] {
    const auto top = start_here({}, {worker(1)});
    EXPECT_EQ(top.restart_child(1).error().kind, what::running);
    EXPECT_TRUE(top.terminate_child(1).has_value());
    EXPECT_EQ(top.which_children()->front().state, child_state::absent);
    EXPECT_TRUE(top.restart_child(1).has_value());
    EXPECT_EQ(top.delete_child(1).error().kind, what::running);
    EXPECT_TRUE(top.terminate_child(1).has_value());
    EXPECT_TRUE(top.delete_child(1).has_value());
    EXPECT_EQ(top.restart_child(1).error().kind, what::not_found);
    EXPECT_EQ(top.delete_child(1).error().kind, what::not_found);
    EXPECT_EQ(top.terminate_child(1).error().kind, what::not_found);
  });
}

TEST_P(supervisor_test, U16_a_second_child_of_an_id_is_already_started_or_already_present) {
  run([] {
    const auto top = start_here({}, {worker(1)});
    const auto running = top.start_child(worker(1));
    EXPECT_EQ(running.error().kind, what::already_started);
    EXPECT_EQ(running.error().child, child_pid(top, 1));
    (void)top.terminate_child(1);
    EXPECT_EQ(top.start_child(worker(1)).error().kind, what::already_present);
  });
}

TEST_P(supervisor_test, U18_a_killed_parent_ends_the_supervisor_after_its_children) {
  run([] {
    const auto parent = start_parent({}, {worker(1)});
    (void)events_here();
    const monitor_ref watch = monitor(parent.supervisor(), to_mailbox);
    kill(parent.who);
    EXPECT_EQ(test::down_of(watch), exit_reason::killed());
    EXPECT_EQ(events_here(), (events{"stop 1 shutdown"}));
  });
}

TEST_P(supervisor_test, U19_the_restart_of_a_group_counts_once) {
  run([] {
    const auto parent =
        start_parent({.strategy = one_for_all, .intensity = 1, .period = 600s}, three());
    (void)events_here();
    kill_child(parent.supervisor(), 2);
    (void)next_events(5);
    EXPECT_EQ(supervisor_ref(parent.supervisor()).count_children()->active, 3U);
    (void)stop_by(parent, exit_reason::shutdown());
  });
}

TEST_P(supervisor_test, U21_the_end_of_a_temporary_child_is_no_restart) {
  run([] {
    const auto parent = start_parent({.intensity = 0}, {worker(1, temporary), worker(2)});
    kill_child(parent.supervisor(), 1);
    EXPECT_EQ(supervisor_ref(parent.supervisor()).count_children(), (child_counts{1, 1, 0, 1}));
    (void)stop_by(parent, exit_reason::shutdown());
  });
}

TEST_P(supervisor_test, U23_the_children_of_simple_one_for_one_stop_side_by_side) {
  run([] {
    constexpr int number = 10;
    child_spec spec = many({.waits_for_go = true});
    spec.shutdown = long_enough;
    const auto parent = start_parent({.strategy = simple_one_for_one, .intensity = 0}, {spec});
    std::vector<pid> all;
    for (int i = 1; i <= number; ++i) {
      all.push_back(supervisor_ref(parent.supervisor()).start_dynamic(i).value());
    }
    (void)events_here();
    const monitor_ref watch = monitor(parent.supervisor(), to_mailbox);
    send(parent.who, die{exit_reason::shutdown()});
    // Each has begun to stop before any has ended.
    for (const std::string& each : next_events(number)) EXPECT_TRUE(each.starts_with("stopping"));
    for (const pid each : all) send(each, go{});
    EXPECT_EQ(test::down_of(watch), exit_reason::shutdown());
    EXPECT_EQ(events_here().size(), std::size_t{number});
  });
  EXPECT_TRUE(reported_kinds().empty());
}

TEST_P(supervisor_test, U25_a_supervisor_ends_with_its_parents_reason) {
  run([] {
    const auto parent = start_parent({}, {worker(1)});
    (void)events_here();
    const exit_reason odd(atom("odd_reason"));
    EXPECT_EQ(stop_by(parent, odd), odd);
    EXPECT_EQ(events_here(), (events{"stop 1 shutdown"}));
  });
}

// The rule itself is tested in restart_intensity_test.cpp, without waiting.
TEST_P(supervisor_test, U26_old_restarts_do_not_count) {
  run([] {
    const auto parent = start_parent({.intensity = 1, .period = 1s}, {worker(1)});
    kill_child(parent.supervisor(), 1);
    sleep_for(2100ms);  // the time itself is what is tested
    kill_child(parent.supervisor(), 1);
    EXPECT_TRUE(supervisor_ref(parent.supervisor()).child_of(1).has_value());
    (void)stop_by(parent, exit_reason::shutdown());
  });
}

TEST_P(supervisor_test, Y10_a_failing_child_and_giving_up_are_reported) {
  run([] {
    const auto parent = start_parent({.intensity = 0}, {worker(1)});
    kill_child(parent.supervisor(), 1);
    (void)end_of(parent);
  });
  EXPECT_EQ(reported_kinds(), (std::vector{report_kind::child_terminated, report_kind::shutdown}));
}

}  // namespace
}  // namespace smarm
