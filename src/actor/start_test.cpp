// Starts that wait for the new actor's word.
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/config.hpp>
#include <smarm/guarded.hpp>
#include <smarm/report.hpp>
#include <smarm/start.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::exit_of;
using test::go;
using test::has;
using test::is_alive;
using test::take;
using test::wait_for_ever;
using what = start_error::what;

using start_test = test::actors_test;
SMARM_TEST_AT_1_2_8(start_test);

// The reports made while it lives, instead of lines on standard error.
class reports {
 public:
  reports()
      : before_(set_report_handler([this](const report& r) { seen_.lock()->push_back(r.kind); })) {}
  ~reports() { set_report_handler(std::move(before_)); }
  [[nodiscard]] std::vector<report_kind> seen() { return *seen_.lock(); }

 private:
  guarded<std::vector<report_kind>> seen_;
  report_handler before_;
};

TEST_P(start_test, returns_when_the_actor_is_ready) {
  run([] {
    bool made = false;
    const auto started = start({.name = "ready"}, [&, parent = self()](starting& me) {
      EXPECT_EQ(me.parent(), parent);
      made = true;
      me.ready();
      (void)receive<go>();
    });
    ASSERT_TRUE(started.has_value());
    EXPECT_TRUE(made);
    EXPECT_TRUE(is_alive(*started));
    EXPECT_EQ(whereis("ready"), *started);
    send(*started, go{});
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(start_test, a_failure_before_the_word_is_the_answer) {
  const reports quiet;
  run([] {
    const auto thrown = start({}, [](starting&) { throw std::runtime_error("no table"); });
    EXPECT_EQ(thrown.error().kind, what::failed);
    EXPECT_EQ(thrown.error().reason.text(), "no table");
    const auto refused = start({}, [](starting& me) { me.fail(exit_reason(atom("nope"))); });
    EXPECT_TRUE(refused.error().reason.is("nope"));
    const exit_reason own(term::tuple({atom("already_started"), atom("kernel")}));
    const auto likewise = start({}, [&own](starting& me) { me.fail(own); });
    EXPECT_EQ(likewise.error().kind, what::failed) << "it has no holder";
    EXPECT_EQ(likewise.error().reason, own);
    EXPECT_FALSE(has<down>());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(start_test, a_linked_start_that_fails_sends_its_signal_too) {
  const reports quiet;
  run([] {
    trap_exit(true);
    const auto refused = start_link({}, [](starting& me) { me.fail(exit_reason(atom("nope"))); });
    EXPECT_TRUE(refused.error().reason.is("nope"));
    EXPECT_TRUE(take<exit_signal>()->reason.is("nope"));
  });
}

TEST_P(start_test, nothing_to_do_is_an_answer) {
  run([] {
    EXPECT_TRUE(start({}, [](starting& me) { me.ignore(); }).error().is_ignored());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(start_test, who_is_not_ready_in_time_is_killed_without_a_trace) {
  run([] {
    trap_exit(true);
    const auto late = start_link({.until = deadline(5ms)}, [](starting&) { wait_for_ever(); });
    EXPECT_EQ(late.error().kind, what::timed_out);
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(start_test, a_name_that_is_taken_is_told_with_its_holder) {
  const reports quiet;
  run([] {
    const auto serve = [](starting& me) {
      me.ready();
      (void)receive<go>();
    };
    const auto first = start({.name = "s15"}, serve);
    const auto second = start({.name = "s15"}, serve);
    EXPECT_EQ(second.error().kind, what::already_started);
    EXPECT_EQ(second.error().holder, *first);
    send(*first, go{});
    (void)await_end(*first);
  });
}

TEST_P(start_test, a_starter_that_is_stopped_leaves_nobody_behind) {
  run([] {
    auto starter = spawn([root = self()] {
      (void)start({}, [root](starting&) {
        send(root, test::ready{self()});
        wait_for_ever();
      });
    });
    auto child = monitor(take<test::ready>()->who);  // before the end that it is to tell
    starter.request_stop();
    EXPECT_TRUE(child.recv().reason.is_killed());
    (void)starter.join();
  });
}

// Which ends make a report: Y6.
TEST_P(start_test, Y6_a_disorderly_end_is_reported_and_an_orderly_one_is_not) {
  reports made;
  run([] {
    const std::vector<exit_reason> orderly{exit_reason::normal(), exit_reason::shutdown(),
                                           exit_reason::shutdown(atom("x"))};
    const auto end_with = [](const exit_reason& why) {
      const auto started = start({}, [why](starting& me) {
        me.ready();
        (void)receive<go>();
        exit(why);
      });
      const monitor_ref watch = monitor(*started, to_mailbox);
      send(*started, go{});
      (void)test::down_of(watch);
    };
    for (const exit_reason& why : orderly) end_with(why);
    end_with(exit_reason(atom("boom")));
  });
  EXPECT_EQ(made.seen(), (std::vector{report_kind::crash}));
}

// Which ends of a plain actor are told of where nobody watches it: Y9.
TEST_P(start_test, Y9_an_error_of_a_plain_actor_is_reported_and_an_exit_with_a_reason_is_not) {
  static std::atomic<int> errors{0};
  static std::atomic<int> others{0};
  errors = 0;
  others = 0;
  config how = make_config();
  how.on_unobserved_failure = [](pid, std::string_view, const exit_reason& why) {
    ++(why.is_error() ? errors : others);
  };
  reports made;
  run(how, [] {
    spawn([] { exit(exit_reason(atom("boom"))); }).detach();
    spawn([] { throw std::runtime_error("boom"); }).detach();
  });
  EXPECT_EQ(errors.load(), 1);
  EXPECT_EQ(others.load(), 0);
  EXPECT_TRUE(made.seen().empty());
}

TEST_P(start_test, only_an_actor_starts) {
  EXPECT_THROW((void)start({}, [](starting&) {}), misuse);
  run([] {});
}

}  // namespace
}  // namespace smarm
