// Servers, behaviour by behaviour as OTP 25 has them. S and Y numbers are the names these have in
// the project's list of what Erlang does; the rest is our own.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <smarm/registry.hpp>
#include <smarm/server.hpp>

#include "actor/server_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::boom;
using test::down_of;
using test::go;
using test::has;
using test::holding;
using test::plain_child;
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

using server_test = test::actors_test;
SMARM_TEST_AT_1_2_8(server_test);

TEST_P(server_test, a_server_keeps_what_its_messages_make_of_it) {
  struct counter {
    struct add {
      int by;
      using reply = int;
    };
    struct reset {};
    int value = 0;
    int handle(add m) { return value += m.by; }
    void handle(reset) { value = 0; }
  };
  run([] {
    const auto ref = start_server<counter>({.name = "hits"});
    ASSERT_TRUE(ref.has_value());
    EXPECT_EQ(ref->call(counter::add{2}, 60s), 2);
    EXPECT_EQ(ref->call(counter::add{3}, 60s), 5);
    ref->cast(counter::reset{});
    EXPECT_EQ(server_named<counter>("hits").call(counter::add{1}, 60s), 1);
    EXPECT_TRUE(ref->stop().has_value());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

// A request shares the block of its reply's cell, where their alignment allows it.
TEST_P(server_test, calls_of_any_alignment_are_answered) {
  struct alignas(64) wide {
    int value = 0;
  };
  struct server {
    struct narrow_to_wide {
      int value;
      using reply = wide;
    };
    struct alignas(64) wide_to_narrow {
      int value;
      using reply = int;
    };
    wide handle(narrow_to_wide m) { return {m.value}; }
    int handle(const wide_to_narrow& m) {
      return reinterpret_cast<std::uintptr_t>(&m) % 64 == 0 ? m.value : -1;
    }
  };
  run([] {
    const auto ref = started<server>();
    EXPECT_EQ(ref.call(server::narrow_to_wide{1}, 60s)->value, 1);
    EXPECT_EQ(ref.call(server::wide_to_narrow{2}, 60s), 2);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// What it was asked stays until the handler is over, whatever has become of the reply meanwhile.
TEST_P(server_test, a_handler_that_has_answered_and_waits_keeps_its_request) {
  struct server {
    struct ask {
      std::shared_ptr<int> value;
      using reply = int;
    };
    int sum = 0;
    void handle(const ask& m, from<int> back) {
      EXPECT_TRUE(back.reply(*m.value));
      for (int i = 0; i < 3; ++i) (void)receive<go>();
      sum += *m.value;
      EXPECT_EQ(m.value.use_count(), 1) << "nobody else has it";
    }
  };
  run([] {
    const auto ref = started<server>();
    for (int round = 1; round <= 10; ++round) {
      EXPECT_EQ(ref.call(server::ask{std::make_shared<int>(round)}, 60s), round);
      for (int i = 0; i < 3; ++i) send(ref.id(), go{});
    }
    EXPECT_EQ(ref.get_state(60s)->sum, 55);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// A call that its server does not know is a message like others: it may be kept, and handed on.
TEST_P(server_test, a_call_of_another_servers_goes_where_it_is_put) {
  struct collector {
    std::vector<any_message>* into;
    void handle(any_message m) { into->push_back(std::move(m)); }
  };
  run([] {
    std::vector<any_message> kept;
    {
      const auto ref = started<collector>(&kept);
      const server_ref<scripted> wrong(ref.id());
      auto pending = wrong.send_request(scripted::get{});
      EXPECT_EQ(wrong.call(scripted::get{}, 2ms).error().kind, what::timed_out);
      ASSERT_TRUE(ref.stop().has_value());
      EXPECT_EQ(pending.receive_response(60s).error().kind, what::died);
    }
    EXPECT_EQ(kept.size(), 2U);
    kept.clear();
  });
}

TEST_P(server_test, S1_a_call_that_times_out_leaves_no_late_reply) {
  run([] {
    const auto ref = started();
    const auto late = ref.call(scripted::run{[](scripted& me) {
                                 me.value = holding(me);
                                 return 7;
                               }},
                               2ms);
    EXPECT_EQ(late.error().kind, what::timed_out);
    send(ref.id(), go{});
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 1) << "the late reply has been given by now";
    EXPECT_EQ(mailbox_size(), 0U);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, S2_a_server_that_dies_or_is_not_there_fails_the_call) {
  const reports quiet;
  run([] {
    const auto ref = started();
    const auto died = ref.call(scripted::run{[](scripted&) -> int { exit(boom); }}, 60s);
    EXPECT_EQ(died.error(), (call_error{what::died, boom}));
    const auto gone = ref.call(scripted::get{}, 60s);
    EXPECT_EQ(gone.error(), (call_error{what::noproc, exit_reason::noproc()}));
    const auto nobody = server_named<scripted>("no such server").call(scripted::get{}, 60s);
    EXPECT_EQ(nobody.error().kind, what::noproc);
  });
}

TEST_P(server_test, S2_a_death_is_told_to_who_waits_in_the_queue_and_for_another_to_answer) {
  run([] {
    const auto ref = started();
    const pid keeper = spawn_detached([top = self()] {
      const auto back = receive<from<int>>();
      send(top, go{});
      (void)receive<go>();
      EXPECT_FALSE(back.is_awaited());
    });
    auto handed_on = ref.send_request(scripted::run_later{
        [keeper](scripted&, from<int> back) { send(keeper, std::move(back)); }});
    (void)take<go>();
    auto held = ref.send_request(scripted::run{[top = self()](scripted& me) {
      send(top, go{});
      return holding(me);
    }});
    (void)take<go>();
    auto queued = ref.send_request(scripted::get{});
    auto watch = monitor(ref.id(), to_mailbox);
    kill(ref.id());
    for (auto* one : {&handed_on, &held, &queued}) {
      const auto outcome = one->receive_response(60s);
      ASSERT_FALSE(outcome.has_value());
      EXPECT_EQ(outcome.error(), (call_error{what::died, exit_reason::killed()}));
    }
    EXPECT_EQ(down_of(watch), exit_reason::killed());
    send(keeper, go{});
    (void)await_end(keeper);
  });
}

TEST_P(server_test, S3_a_cast_to_nobody_is_as_good) {
  run([] {
    const pid dead = spawn_detached([] {});
    (void)await_end(dead);
    server_ref<scripted>(dead).cast(scripted::act{});
    server_named<scripted>("nobody at all").cast(scripted::act{});
    server_ref<scripted>().cast(scripted::act{});
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

struct failing {
  failing() { exit(exit_reason(atom("nope"))); }
};
struct idle {
  idle() { this_server::ignore(); }
};
struct choosy {
  void init(starting& me) const {
    if (choice == 0) me.ignore();
    if (choice == 1) me.fail(boom);
    if (choice == 2) this_server::stop(boom);
    if (choice == 3) throw std::runtime_error("no table");
  }
  int choice;
};

TEST_P(server_test, S5_a_start_may_fail_or_be_ignored) {
  const reports quiet;
  run([] {
    trap_exit(true);
    const auto failed = start_server_link<failing>();
    EXPECT_TRUE(failed.error().reason.is("nope"));
    EXPECT_TRUE(take<exit_signal>()->reason.is("nope"));
    EXPECT_TRUE(start_server<idle>().error().is_ignored());
    EXPECT_TRUE(start_server<choosy>({}, 0).error().is_ignored());
    EXPECT_EQ(start_server<choosy>({}, 1).error().reason, boom);
    EXPECT_EQ(start_server<choosy>({}, 2).error().reason, boom);
    EXPECT_EQ(start_server<choosy>({}, 3).error().reason.text(), "no table");
    EXPECT_EQ(mailbox_size(), 0U);
    const auto fine = start_server<choosy>({}, 4);
    EXPECT_TRUE(stop_server(*fine).has_value());
  });
}

TEST_P(server_test, S6_who_does_not_trap_exits_ends_with_its_parent_unasked) {
  run([] {
    const auto [parent, server] = started_below<plain_child>(boom);
    auto watch = monitor(server, to_mailbox);
    send(parent, go{});
    EXPECT_EQ(down_of(watch), boom);
    EXPECT_FALSE(has<terminated>());
  });
}

TEST_P(server_test, S7_who_traps_exits_terminates_with_its_parent) {
  const reports quiet;
  run([] {
    const auto [parent, server] = started_below<trapping>(boom);
    auto watch = monitor(server, to_mailbox);
    send(parent, go{});
    EXPECT_EQ(down_of(watch), boom);
    const auto last = take<terminated>();
    EXPECT_EQ(last->who, server);
    EXPECT_EQ(last->why, boom);
  });
}

TEST_P(server_test, S9_a_handler_that_throws_terminates_and_ends_with_its_exception) {
  const reports quiet;
  run([] {
    const auto ref = started(0, self());
    auto watch = monitor(ref.id(), to_mailbox);
    ref.cast(scripted::act{[](scripted&) { throw std::out_of_range("oops"); }});
    const auto why = down_of(watch);
    ASSERT_TRUE(why && why->is_error());
    EXPECT_EQ(why->text(), "oops");
    EXPECT_EQ(take<terminated>()->why, *why) << "the same exception";
  });
}

// Not as OTP, where a thrown value is a return value: here it is an error, and an early reply goes
// by the handle.
TEST_P(server_test, S10_an_early_reply_needs_no_throw_and_a_thrown_value_is_an_error) {
  const reports quiet;
  run([] {
    const auto ref = started();
    const auto early = ref.call(scripted::run_later{[](scripted& me, from<int> back) {
                                  EXPECT_TRUE(back.reply(5));
                                  me.value = 6;
                                }},
                                60s);
    EXPECT_EQ(early, 5);
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 6);
    const auto thrown = ref.call(scripted::run{[](scripted&) -> int { throw 17; }}, 60s);
    EXPECT_EQ(thrown.error().kind, what::died);
    EXPECT_EQ(thrown.error().reason.type_name(), "int");
  });
}

TEST_P(server_test, S11_a_server_that_calls_itself_is_told_so) {
  run([] {
    const auto ref = started();
    const auto outcome =
        ref.call(scripted::run{[ref](scripted&) {
                   return static_cast<int>(ref.call(scripted::get{}, 60s).error().kind);
                 }},
                 60s);
    EXPECT_EQ(outcome, static_cast<int>(what::calling_self));
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, S12_another_actor_may_reply) {
  run([] {
    const auto ref = started();
    const auto reply = ref.call(scripted::run_later{[](scripted&, from<int> back) {
                                  spawn_detached([back = std::move(back)]() mutable {
                                    EXPECT_TRUE(back.reply(11));
                                    EXPECT_THROW((void)back.reply(12), misuse);
                                  });
                                }},
                                60s);
    EXPECT_EQ(reply, 11);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, S14_a_stop_terminates_and_a_stopped_server_cannot_be_stopped) {
  run([] {
    const auto ref = started(0, self());
    auto watch = monitor(ref.id(), to_mailbox);
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_TRUE(take<terminated>()->why.is_normal());
    EXPECT_EQ(down_of(watch), exit_reason::normal());
    EXPECT_EQ(ref.stop().error().kind, what::noproc);
  });
}

TEST_P(server_test, S15_a_name_that_is_taken_is_told_with_its_holder) {
  const reports quiet;
  run([] {
    const auto first = start_server<scripted>({.name = "s15"});
    const auto second = start_server<scripted>({.name = "s15"});
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().kind, start_error::what::already_started);
    EXPECT_EQ(second.error().holder, first->id());
    EXPECT_TRUE(first->stop().has_value());
  });
}

TEST_P(server_test, S16_messages_are_handled_in_the_order_in_which_they_were_sent) {
  run([] {
    const auto ref = started();
    for (int i = 0; i < 50; ++i) {
      ref.cast(scripted::act{[i](scripted& me) {
        EXPECT_EQ(me.value, i);
        me.value = i + 1;
      }});
    }
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 50);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, S17_a_kill_asks_nobody) {
  run([] {
    const auto ref = started<trapping>(self());
    auto watch = monitor(ref.id(), to_mailbox);
    kill(ref.id());
    EXPECT_EQ(down_of(watch), exit_reason::killed());
    EXPECT_FALSE(has<terminated>());
  });
}

// slow_end lets everybody else go first when it terminates.
struct slow_end {
  struct last {
    using reply = int;
  };
  int handle(last) {
    this_server::stop(quiet_end);
    return 9;
  }
  void terminate(const exit_reason& why) const {
    for (int i = 0; i < 20; ++i) yield();
    send(tell, terminated{self(), why});
  }
  pid tell;
};

TEST_P(server_test, S18_a_handler_may_reply_and_stop) {
  run([] {
    const auto ref = started<slow_end>(self());
    auto watch = monitor(ref.id(), to_mailbox);
    EXPECT_EQ(ref.call(slow_end::last{}, 60s), 9);
    EXPECT_TRUE(has<terminated>()) << "terminate comes before the reply";
    EXPECT_EQ(down_of(watch), quiet_end);
  });
}

struct slow_start {
  slow_start() { wait_for_ever(); }
};

TEST_P(server_test, S19_a_start_that_takes_too_long_leaves_no_trace) {
  run([] {
    trap_exit(true);
    const auto late = start_server_link<slow_start>({.until = deadline(3ms)});
    EXPECT_EQ(late.error().kind, start_error::what::timed_out);
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(server_test, S20_a_request_can_be_waited_for_again) {
  run([] {
    const auto ref = started();
    auto asked = ref.send_request(scripted::run{holding});
    EXPECT_EQ(asked.wait_response(1ms).error().kind, what::timed_out);
    EXPECT_EQ(asked.check_response().error().kind, what::timed_out);
    send(ref.id(), go{});
    EXPECT_EQ(asked.receive_response(60s), 1);
    EXPECT_THROW((void)asked.check_response(), misuse);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, Y1_the_state_can_be_read_and_replaced) {
  run([] {
    const auto ref = started(42);
    EXPECT_EQ(ref.get_state(60s)->value, 42);
    EXPECT_EQ(ref.replace_state([](scripted& s) { return ++s.value; }, 60s), 43);
    EXPECT_TRUE(ref.replace_state([](scripted& s) { s.value += 1; }, 60s).has_value());
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 44);
    EXPECT_THROW((void)ref.replace_state([](scripted&) { throw std::out_of_range("no"); }, 60s),
                 std::out_of_range);
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 44) << "it lives on";
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, Y2_a_suspended_server_answers_the_system_and_queues_the_rest) {
  run([] {
    const auto ref = started(1);
    ASSERT_TRUE(ref.suspend(60s).has_value());
    EXPECT_EQ(ref.call(scripted::get{}, 2ms).error().kind, what::timed_out);
    EXPECT_EQ(ref.get_state(60s)->value, 1);
    ref.cast(scripted::act{[](scripted& me) { me.value += 10; }});
    ref.cast(scripted::act{[](scripted& me) { me.value *= 2; }});
    EXPECT_EQ(ref.get_state(60s)->value, 1);
    ASSERT_TRUE(ref.resume(60s).has_value());
    EXPECT_EQ(ref.call(scripted::get{}, 60s), 22) << "in order";
    ASSERT_TRUE(ref.suspend(60s).has_value());
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, Y5_messages_are_counted_once_that_was_asked_for) {
  run([] {
    const auto ref = started();
    EXPECT_FALSE(ref.statistics(60s)->has_value());
    ASSERT_TRUE(ref.start_statistics(60s).has_value());
    (void)ref.call(scripted::get{}, 60s);
    ref.cast(scripted::act{[](scripted&) {}});
    (void)ref.call(scripted::get{}, 60s);
    const auto counted = ref.statistics(60s);
    ASSERT_TRUE(counted && *counted);
    EXPECT_EQ((*counted)->messages_in, 3U);
    EXPECT_EQ((*counted)->messages_out, 2U);
    ASSERT_TRUE(ref.stop_statistics(60s).has_value());
    EXPECT_FALSE(ref.statistics(60s)->has_value());
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(server_test, Y7_a_failure_is_reported_by_the_server_and_then_as_a_crash) {
  reports made;
  run([] {
    const auto end_by = [](auto fail) {
      const auto ref = started();
      auto watch = monitor(ref.id(), to_mailbox);
      ref.cast(scripted::act{fail});
      (void)down_of(watch);
    };
    end_by([](scripted&) { throw std::runtime_error("x"); });
    end_by([](scripted&) { throw 17; });
  });
  EXPECT_EQ(made.kinds(), (std::vector{report_kind::server_terminate, report_kind::crash,
                                       report_kind::server_terminate, report_kind::crash}));
}

TEST_P(server_test, Y8_an_orderly_stop_is_not_reported) {
  reports made;
  run([] {
    for (const exit_reason& why : {exit_reason(), exit_reason::shutdown(), quiet_end}) {
      const auto ref = started();
      auto watch = monitor(ref.id(), to_mailbox);
      ref.cast(scripted::act{[why](scripted&) { this_server::stop(why); }});
      EXPECT_EQ(down_of(watch), why);
    }
    const auto ref = started();
    EXPECT_TRUE(ref.stop(boom).has_value()) << "which is reported, so these would be too";
  });
  EXPECT_EQ(made.kinds(), (std::vector{report_kind::server_terminate, report_kind::crash}));
}

}  // namespace
}  // namespace smarm
