// Goal: the stack of an error goes where its reason goes: to links, to callers of a server, into
// the reports; and what is no error has none. Method: a function whose name is looked for in the
// text.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/report.hpp>
#include <smarm/server.hpp>
#include <smarm/server_spec.hpp>
#include <smarm/supervisor.hpp>

#include "actor/actor_fixture.hpp"
#include "actor/server_fixture.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {

// Exported, so that it is found with and without debug information.
namespace error_stack_frames {

[[gnu::noinline]] void fails_as_told(int number) {
  if (number >= 0) throw std::runtime_error("as it should");
}

}  // namespace error_stack_frames

namespace {

using error_stack_frames::fails_as_told;
using test::await_end;
using test::scripted;
using test::take;

using error_stack_test = test::actors_test;
SMARM_TEST_AT_1_2_8(error_stack_test);

bool names_it(const std::string& text) { return text.find("fails_as_told") != std::string::npos; }

TEST_P(error_stack_test, a_link_and_a_monitor_hand_the_stack_on) {
  run([] {
    trap_exit(true);
    auto [child, watch] = spawn_monitor({.ties = linked}, [] { fails_as_told(1); });
    const auto signal = take<exit_signal>();
    const auto gone = take<down>();
    ASSERT_TRUE(signal && gone);
    EXPECT_TRUE(names_it(signal->reason.stack_text())) << signal->reason.stack_text();
    EXPECT_TRUE(std::ranges::equal(signal->reason.stack(), gone->reason.stack()));
    EXPECT_EQ(child.join().error(), signal->reason);
  });
}

TEST_P(error_stack_test, signals_and_kills_have_none) {
  run([] {
    const pid told = test::spawn_detached([] { test::wait_for_ever(); });
    exit(told, exit_reason(atom("enough")));
    EXPECT_TRUE(await_end(told).stack().empty());
    const pid killed = test::spawn_detached([] { test::wait_for_ever(); });
    kill(killed);
    EXPECT_TRUE(await_end(killed).stack().empty());
  });
}

TEST_P(error_stack_test, a_handlers_error_reaches_the_caller_and_the_end_of_the_server) {
  run([] {
    test::reports seen;
    const auto server = test::started();
    const pid who = server.id();
    auto watch = monitor(who);
    const auto answer = server.call(scripted::run{[](scripted&) {
      fails_as_told(1);
      return 1;
    }});
    ASSERT_FALSE(answer.has_value());
    EXPECT_TRUE(names_it(answer.error().reason.stack_text())) << answer.error().reason.stack_text();
    EXPECT_TRUE(names_it(watch.recv_for(test::long_enough)->reason.stack_text()));
    EXPECT_EQ(seen.kinds(), (std::vector{report_kind::server_terminate, report_kind::crash}));
    for (const report& each : seen.all()) {
      EXPECT_TRUE(names_it(each.reason.stack_text())) << to_string(each);
      EXPECT_EQ(names_it(to_string(each)), each.kind == report_kind::crash) << to_string(each);
    }
  });
}

TEST_P(error_stack_test, a_supervisors_reports_have_it) {
  run([] {
    test::reports seen;
    const auto tree =
        start_supervisor_link({}, {server_spec<scripted>("child", {.name = "faulty"})});
    ASSERT_TRUE(tree.has_value());
    const supervisor_ref supervisor(*tree);
    const auto before = supervisor.child_of("child");
    ASSERT_TRUE(before.has_value());
    server_ref<scripted>(*before).cast(scripted::act{[](scripted&) { fails_as_told(1); }});
    (void)await_end(*before);
    while (supervisor.child_of("child") == before) yield();
    int told = 0;
    for (const report& each : seen.all()) {
      if (each.kind == report_kind::child_terminated) told += names_it(to_string(each)) ? 1 : 0;
    }
    EXPECT_EQ(told, 1);
    (void)supervisor.stop(exit_reason::shutdown());
  });
}

TEST_P(error_stack_test, a_start_that_throws_is_reported_with_it) {
  run([] {
    trap_exit(true);
    test::reports seen;
    child_spec child;
    child.id = atom("never");
    child.start = []() -> start_result {
      fails_as_told(1);
      return pid();
    };
    const auto tree = start_supervisor_link({}, {child});
    ASSERT_FALSE(tree.has_value());
    const auto all = seen.all();
    const auto wrong = std::ranges::find(all, report_kind::start_error, &report::kind);
    ASSERT_NE(wrong, all.end());
    EXPECT_TRUE(names_it(to_string(*wrong))) << to_string(*wrong);
  });
}

}  // namespace
}  // namespace smarm
