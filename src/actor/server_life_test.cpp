// What servers do besides answering: plain messages, timeouts, what is to be continued, and how
// they end.
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/registry.hpp>
#include <smarm/server.hpp>
#include <smarm/server_spec.hpp>

#include "actor/server_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::boom;
using test::down_of;
using test::go;
using test::has;
using test::quiet_end;
using test::reports;
using test::scripted;
using test::spawn_detached;
using test::started;
using test::started_below;
using test::take;
using test::terminated;
using test::trapping;
using test::wait_for_ever;
using what = call_error::what;

using server_life_test = test::actors_test;
SMARM_TEST_AT_1_2_8(server_life_test);

struct tick {
  int number;
};
struct unknown {};

// noting tells its maker of everything that is no call.
struct noting {
  using infos = smarm::infos<tick, std::unique_ptr<int>>;
  struct note {
    std::string text;
  };
  struct arm {
    deadline until;
  };
  struct steps {};
  struct ask {
    int number;
    using reply = void;
  };

  pid tell;

  void say(std::string text) const { send(tell, note{std::move(text)}); }
  void handle(tick t) const { say("tick " + std::to_string(t.number)); }
  void handle(const std::unique_ptr<int>& owned) const { say("owned " + std::to_string(*owned)); }
  void handle(const down& gone) const { say("down " + to_string(gone.reason)); }
  void handle(const exit_signal& s) const { say("exit " + to_string(s.reason)); }
  void handle(ask a) const { say("asked " + std::to_string(a.number)); }
  void handle(timeout) const { say("timeout"); }
  void handle(const arm& a) const { this_server::set_timeout(a.until); }
  void handle(const any_message& m) const { say(m.is<unknown>() ? "unknown" : "?"); }
  void handle(steps) const {
    this_server::continue_with([this] {
      say("first");
      this_server::continue_with([this] { say("third"); });
    });
    this_server::continue_with([this] { say("second"); });
  }
};

std::string noted() {
  const auto next = take<noting::note>();
  return next ? next->text : "nothing";
}

TEST_P(server_life_test, plain_messages_go_to_the_handler_of_their_type) {
  run([] {
    const auto ref = started<noting>(self());
    const pid child = spawn_detached([] {
      (void)receive<go>();
      exit(boom);
    });
    send(ref.id(), tick{3});
    send(ref.id(), std::make_unique<int>(4));
    send(ref.id(), unknown{});
    ref.cast(tick{5});
    EXPECT_EQ(noted(), "tick 3");
    EXPECT_EQ(noted(), "owned 4");
    EXPECT_EQ(noted(), "unknown");
    EXPECT_EQ(noted(), "tick 5");
    (void)ref.replace_state([child](noting&) {
      trap_exit(true);
      monitor(child, to_mailbox);
    });
    send(child, go{});
    EXPECT_EQ(noted(), "down boom");
    exit(ref.id(), quiet_end);
    EXPECT_EQ(noted(), "exit {shutdown,quiet}") << "not from its parent";
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_life_test, calls_casts_and_plain_messages_of_one_sender_keep_their_order) {
  run([] {
    const auto ref = started<noting>(self());
    std::vector<request<void>> asked;
    for (int i = 0; i < 20; ++i) {
      ref.cast(tick{i});
      asked.push_back(ref.send_request(noting::ask{i}));
      send(ref.id(), std::make_unique<int>(i));
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(noted(), "tick " + std::to_string(i));
      EXPECT_EQ(noted(), "asked " + std::to_string(i));
      EXPECT_EQ(noted(), "owned " + std::to_string(i));
    }
    for (auto& one : asked) EXPECT_TRUE(one.receive_response(60s).has_value());
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// link_of_chain calls the next of its kind.
struct link_of_chain {
  struct length {
    using reply = int;
  };
  int handle(length) { return 1 + next.call(length{}, 60s).value_or(0); }
  server_ref<link_of_chain> next;
};

TEST_P(server_life_test, a_server_may_call_another_of_its_kind) {
  run([] {
    std::vector<server_ref<link_of_chain>> chain{{}};
    for (int i = 0; i < 5; ++i) chain.push_back(started<link_of_chain>(chain.back()));
    EXPECT_EQ(chain.back().call(link_of_chain::length{}, 60s), 5);
    for (std::size_t i = 1; i < chain.size(); ++i) EXPECT_TRUE(chain[i].stop().has_value());
  });
}

TEST_P(server_life_test, a_message_that_nobody_handles_is_reported_and_dropped) {
  reports made;
  run([] {
    const auto ref = started();
    send(ref.id(), unknown{});
    server_ref<noting>(ref.id()).cast(tick{1});  // of another type of server
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 0);
    EXPECT_TRUE(ref.stop().has_value());
  });
  EXPECT_EQ(made.kinds(), (std::vector{report_kind::unexpected, report_kind::unexpected}));
}

TEST_P(server_life_test, a_state_of_another_type_of_server_is_not_touched) {
  const reports quiet;
  run([] {
    const auto ref = started();
    EXPECT_EQ(server_ref<noting>(ref.id()).get_state(2ms).error().kind, what::timed_out);
    EXPECT_TRUE(server_ref<noting>(ref.id()).stop().has_value()) << "which needs no type";
  });
}

TEST_P(server_life_test, a_timeout_comes_when_no_message_has_and_a_message_cancels_it) {
  run([] {
    const auto ref = started<noting>(self());
    // What is queued is a message that comes: also where the time is over already.
    ASSERT_TRUE(ref.suspend(60s).has_value());
    ref.cast(noting::arm{deadline(0s)});
    send(ref.id(), tick{1});
    ASSERT_TRUE(ref.resume(60s).has_value());
    EXPECT_EQ(noted(), "tick 1");
    ref.cast(noting::arm{deadline(1ms)});
    EXPECT_EQ(noted(), "timeout") << "and none before it";
    ref.cast(tick{2});
    EXPECT_EQ(noted(), "tick 2") << "and no second timeout";
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_life_test, a_request_of_the_system_does_not_cancel_a_timeout) {
  run([] {
    const auto ref = started<noting>(self());
    ref.cast(noting::arm{deadline(2ms)});
    EXPECT_TRUE(ref.statistics(60s).has_value());
    EXPECT_EQ(noted(), "timeout");
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_life_test, what_is_to_be_continued_comes_before_what_is_queued) {
  run([] {
    const auto ref = started<noting>(self());
    ASSERT_TRUE(ref.suspend(60s).has_value());
    ref.cast(noting::steps{});
    ref.cast(tick{1});
    ASSERT_TRUE(ref.resume(60s).has_value());
    for (const char* next : {"first", "second", "third", "tick 1"}) EXPECT_EQ(noted(), next);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_life_test, what_is_to_be_continued_waits_while_the_server_is_suspended) {
  run([] {
    const auto ref = started<noting>(self());
    ASSERT_TRUE(ref.suspend(60s).has_value());
    const auto ask_for_step = [](noting& me) {
      this_server::continue_with([&me] { me.say("step"); });
    };
    EXPECT_TRUE(ref.replace_state(ask_for_step, 60s).has_value());
    EXPECT_TRUE(ref.statistics(60s).has_value()) << "it goes on to answer the system";
    EXPECT_FALSE(has<noting::note>());
    ASSERT_TRUE(ref.resume(60s).has_value());
    EXPECT_EQ(noted(), "step");
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// endless has always something to do, in one way or the other.
struct endless {
  struct more {};
  struct steps {};
  void handle(more) const { server_ref<endless>(self()).cast(more{}); }
  void handle(steps) { step(); }
  void step() {
    this_server::continue_with([this] { step(); });
  }
};

TEST_P(server_life_test, a_server_that_is_never_idle_gives_way_and_can_be_killed) {
  run([] {
    const auto kill_it = [](const server_ref<endless>& ref) {
      sleep_for(1ms);
      kill(ref.id());
      EXPECT_TRUE(await_end(ref.id()).is_killed());
    };
    const auto casting = started<endless>();
    casting.cast(endless::more{});
    kill_it(casting);
    const auto continuing = started<endless>();
    continuing.cast(endless::steps{});
    kill_it(continuing);
  });
}

struct late_init {
  explicit late_init(std::unique_ptr<int> first) : value(std::move(first)) {
    this_server::continue_with([this] { ++*value; });
  }
  struct get {
    using reply = std::unique_ptr<int>;
  };
  std::unique_ptr<int> handle(get) { return std::move(value); }
  std::unique_ptr<int> value;
};

TEST_P(server_life_test, a_start_may_be_continued_and_what_it_takes_and_gives_only_moves) {
  run([] {
    const auto ref = started<late_init>(std::make_unique<int>(6));
    const auto got = ref.call(late_init::get{}, 60s);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(**got, 7);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

struct bad_end {
  void terminate(const exit_reason&) const { throw std::runtime_error("at the end"); }
};

TEST_P(server_life_test, a_terminate_that_throws_gives_the_reason) {
  reports made;
  run([] {
    const auto ref = started<bad_end>();
    const auto outcome = ref.stop();
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().reason.text(), "at the end");
  });
  EXPECT_EQ(made.kinds(), (std::vector{report_kind::server_terminate, report_kind::crash}));
}

TEST_P(server_life_test, a_suspended_server_obeys_its_parent) {
  const reports quiet;
  run([] {
    const auto [parent, server] = started_below<trapping>(boom);
    ASSERT_TRUE(server_ref<trapping>(server).suspend(60s).has_value());
    auto watch = monitor(server, to_mailbox);
    send(parent, go{});
    EXPECT_EQ(down_of(watch), boom);
    EXPECT_TRUE(has<terminated>());
  });
}

struct counts_signals {
  counts_signals() { trap_exit(true); }
  void handle(const exit_signal&) { ++signals; }
  int signals = 0;
};

TEST_P(server_life_test, a_suspended_server_without_a_parent_obeys_nobody) {
  run([] {
    const auto ref = started<counts_signals>();
    ASSERT_TRUE(ref.suspend(60s).has_value());
    std::thread([who = ref.id()] { exit(who, boom); }).join();  // from nobody, as the parent is
    const auto seen = [](const counts_signals& me) { return me.signals; };
    EXPECT_EQ(ref.replace_state(seen, 60s), 0);
    ASSERT_TRUE(ref.resume(60s).has_value());
    while (ref.replace_state(seen, 60s) != 1) yield();
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// bounded takes one message at a time, and is in its handler until `gate` has ended.
struct bounded {
  explicit bounded(pid until) : gate(until) { limit_mailbox(1); }
  void handle(go) const {
    const monitor_ref watch = monitor(gate, to_mailbox);
    (void)receive<down>();
  }
  pid gate;
};

TEST_P(server_life_test, a_full_mailbox_keeps_nobody_from_stopping_a_server) {
  const reports quiet;
  run([] {
    const pid gate = spawn_detached(wait_for_ever);
    const auto ref = started<bounded>(gate);
    ref.cast(go{});
    while (send(ref.id(), unknown{}) != delivery::full) yield();
    EXPECT_EQ(ref.statistics(0s).error().kind, what::timed_out);
    auto stopper = spawn([ref] { EXPECT_TRUE(ref.stop().has_value()); });
    kill(gate);
    EXPECT_TRUE(stopper.join().has_value());
  });
}

TEST_P(server_life_test, a_server_may_exit_by_its_own_hand_and_terminates) {
  run([] {
    const auto ref = started(0, self());
    auto watch = monitor(ref.id(), to_mailbox);
    ref.cast(scripted::act{[](scripted&) { exit(quiet_end); }});
    EXPECT_EQ(down_of(watch), quiet_end);
    EXPECT_EQ(take<terminated>()->why, quiet_end);
  });
}

TEST_P(server_life_test, a_stopped_server_is_unwound_without_terminate) {
  run([] {
    const auto ref = started<trapping>(self());
    auto watch = monitor(ref.id(), to_mailbox);
    ASSERT_TRUE(request_stop(ref.id()).has_value());
    EXPECT_TRUE(down_of(watch)->is_stopped());
    EXPECT_FALSE(has<terminated>());
  });
}

struct sum_from {
  struct total {
    using reply = std::string;
  };
  struct fail {};
  explicit sum_from(std::string first) : text(std::move(first)) {}
  std::string handle(total) { return text; }
  void handle(fail) {
    text += " and more";
    throw std::runtime_error("told to");
  }
  std::string text;
};

TEST_P(server_life_test, a_server_is_a_supervisors_child_and_begins_each_time_with_the_same) {
  const reports quiet;
  run([] {
    const auto child = server_spec<sum_from>("sum", {.name = "sum"}, "first");
    const auto tree = start_supervisor_link({}, {child});
    ASSERT_TRUE(tree.has_value());
    const auto sum = server_named<sum_from>("sum");
    const pid before = sum.id();
    auto watch = monitor(before, to_mailbox);
    sum.cast(sum_from::fail{});
    EXPECT_TRUE(down_of(watch)->is_error());
    while (!whereis("sum")) yield();
    EXPECT_NE(sum.id(), before);
    EXPECT_EQ(sum.call(sum_from::total{}, 60s).value(), "first");
    unlink(*tree);
    EXPECT_TRUE(supervisor_ref(*tree).stop(exit_reason::shutdown()).has_value());
  });
}

TEST_P(server_life_test, only_a_server_may_ask_for_what_a_server_can) {
  EXPECT_THROW(this_server::stop(), misuse);
  run([] {
    EXPECT_THROW(this_server::stop(), misuse);
    EXPECT_THROW(this_server::continue_with([] {}), misuse);
    EXPECT_THROW(this_server::set_timeout(1s), misuse);
    EXPECT_THROW(this_server::ignore(), misuse);
  });
}

}  // namespace
}  // namespace smarm
