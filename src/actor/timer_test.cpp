// Timers that send. T numbers are those of the project's list of what Erlang does.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/registry.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/timer.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/counted.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::has;
using test::spawn_detached;
using test::take;
using test::wait_for_ever;

using timer_test = test::actors_test;
SMARM_TEST_AT_1_2_8(timer_test);

TEST_P(timer_test, T1_cancelling_tells_what_was_left_and_only_once) {
  run([] {
    const timer_ref reminder = send_after(10s, self(), 1);
    EXPECT_GT(read_timer(reminder), 5s);
    const auto left = cancel_timer(reminder);
    EXPECT_GT(left, 5s);
    EXPECT_LE(left, 10s);
    EXPECT_EQ(cancel_timer(reminder), std::nullopt);
    EXPECT_EQ(read_timer(reminder), std::nullopt);
    EXPECT_FALSE(has<int>());
  });
}

TEST_P(timer_test, T2_a_started_timer_tells_its_id) {
  run([] {
    const timer_ref timer = start_timer(5ms, self(), std::string("hey"));
    const auto expired = take<timer_expired<std::string>>();
    EXPECT_EQ(expired->ref, timer.id());
    EXPECT_EQ(expired->message, "hey");
  });
}

TEST_P(timer_test, T3_the_message_of_a_timer_that_fired_stays) {
  run([] {
    const timer_ref timer = send_after(1ms, self(), 7);
    while (mailbox_size() == 0) sleep_for(1ms);
    EXPECT_EQ(cancel_timer(timer), std::nullopt);
    EXPECT_EQ(receive<int>(), 7);
  });
}

TEST_P(timer_test, T5_a_timer_to_a_name_looks_it_up_when_it_fires) {
  run([] {
    const timer_ref timer = send_after(20ms, "t5_name", std::string("hello"));
    ASSERT_TRUE(register_name("t5_name").has_value());
    EXPECT_EQ(take<std::string>(), "hello");
    EXPECT_EQ(read_timer(timer), std::nullopt);
  });
}

TEST_P(timer_test, T6_messages_come_in_the_order_of_their_deadlines) {
  run([] {
    for (const int ms : {60, 20, 40, 0})
      (void)send_after(std::chrono::milliseconds(ms), self(), ms);
    for (const int ms : {0, 20, 40, 60}) EXPECT_EQ(take<int>(), ms);
  });
}

TEST_P(timer_test, T7_another_actor_may_cancel) {
  run([] {
    const timer_ref timer = send_after(1h, self(), 1);
    const auto left = spawn([&] { return cancel_timer(timer); }).join().value();
    EXPECT_GT(left, 30min);
    EXPECT_EQ(cancel_timer(timer), std::nullopt);
  });
}

TEST_P(timer_test, T8_the_answer_to_a_cancel_may_come_as_a_message) {
  run([] {
    const timer_ref timer = send_after(1h, self(), 1);
    cancel_timer_async(timer);
    const auto answer = take<timer_cancelled>();
    EXPECT_EQ(answer->ref, timer.id());
    EXPECT_GT(answer->left, 30min);
  });
}

TEST_P(timer_test, a_timer_dies_with_the_actor_it_would_go_to) {
  run([] {
    const pid child = spawn_detached([] {});
    (void)await_end(child);
    const timer_ref timer = send_after(1h, child, 1);
    EXPECT_EQ(read_timer(timer), std::nullopt);
    EXPECT_EQ(cancel_timer(timer), std::nullopt);
  });
}

// Its message is there no more by the time that anybody can know of the end, an hour before it
// would have been sent; whether or not somebody holds the timer.
TEST_P(timer_test, the_end_of_an_actor_destroys_the_messages_on_their_way_to_it) {
  test::ledger book;
  run([&book] {
    std::vector<timer_ref> held;
    auto receiver = spawn([] { (void)receive<int>(); });
    for (int i = 0; i < 100; ++i) {
      timer_ref timer = send_after(1h, receiver.id(), test::counted(book, i));
      if (i % 2 == 0) held.push_back(std::move(timer));
    }
    held.push_back(send_interval(1h, receiver.id(), std::make_shared<test::counted>(book, 100)));
    EXPECT_EQ(book.full, 101);
    send(receiver.id(), 1);
    EXPECT_TRUE(receiver.join().has_value());
    EXPECT_EQ(book.alive, 0);
    for (const timer_ref& each : held) {
      EXPECT_EQ(read_timer(each), std::nullopt);
      EXPECT_EQ(cancel_timer(each), std::nullopt);
    }
  });
}

TEST_P(timer_test, what_is_armed_for_an_actor_that_has_ended_keeps_no_message) {
  test::ledger book;
  run([&book] {
    const pid child = spawn_detached([] {});
    (void)await_end(child);
    const timer_ref once = send_after(1h, child, test::counted(book, 1));
    const timer_ref again = send_interval(1h, child, std::make_shared<test::counted>(book, 2));
    EXPECT_EQ(book.made, 2);
    EXPECT_EQ(book.alive, 0);
    EXPECT_EQ(read_timer(again), std::nullopt);
  });
}

TEST_P(timer_test, a_cancel_destroys_the_message) {
  test::ledger book;
  run([&book] {
    const timer_ref timer = send_after(1h, self(), test::counted(book, 1));
    EXPECT_GT(cancel_timer(timer), 30min);
    EXPECT_EQ(book.alive, 0);
  });
}

// The timers of those who have ended take no memory, long before the end of the run.
TEST_P(timer_test, timers_to_actors_that_end_leave_memory_flat) {
  constexpr int rounds = 2'000;
  constexpr int timers_each = 100;
  test::ledger book;
  run([&book] {
    std::int64_t before = 0;
    for (int round = 0; round < rounds; ++round) {
      if (round == rounds / 10) before = test::live_allocations();
      auto short_lived = spawn([&book] {
        for (int i = 0; i < timers_each; ++i) {
          (void)send_after(1h, self(), test::counted(book, i));
        }
      });
      EXPECT_TRUE(short_lived.join().has_value());
      ASSERT_EQ(book.alive, 0);
    }
    EXPECT_EQ(book.made, rounds * timers_each);
    EXPECT_LE(test::live_allocations(), before + kept_allocations_max());
  });
}

// What a destructor does at the end of the actor: it sends, it cancels another timer to the same
// actor, and it arms one to it, which is too late, and one to somebody else.
TEST_P(timer_test, the_destructor_of_a_message_may_send_cancel_and_arm) {
  struct busy {
    struct deeds {
      pid observer;
      pid ending;
      timer_ref other;
      test::ledger book;
    };
    explicit busy(deeds& to) : what(&to) {}
    busy(busy&& from) noexcept : what(std::exchange(from.what, nullptr)) {}
    ~busy() {
      if (what == nullptr) return;
      send(what->observer, std::string("sent"));
      EXPECT_EQ(cancel_timer(what->other), std::nullopt);
      (void)send_after(1h, what->ending, test::counted(what->book, 1));
      (void)send_after(1ms, what->observer, 7);
    }
    deeds* what;
  };
  busy::deeds all;
  run([&all] {
    auto receiver = spawn([] { (void)receive<int>(); });
    all.observer = self();
    all.ending = receiver.id();
    (void)send_after(1h, receiver.id(), busy(all));
    all.other = send_after(2h, receiver.id(), test::counted(all.book, 2));
    send(receiver.id(), 1);
    EXPECT_TRUE(receiver.join().has_value());
    EXPECT_EQ(all.book.alive, 0);
    EXPECT_EQ(take<std::string>(), "sent");
    EXPECT_EQ(take<int>(), 7);
    all.other = {};
  });
}

// Expiry, cancel and end at the same time, over and over.
TEST_P(timer_test, timers_that_fire_and_are_cancelled_as_their_actors_end_lose_no_message) {
  test::ledger book;
  run([&book] {
    for (int round = 0; round < 500; ++round) {
      auto receiver = spawn([] { (void)receive_for<int>(200us); });
      auto interval = send_interval(50us, receiver.id(), std::make_shared<test::counted>(book, 0));
      std::vector<timer_ref> held;
      for (int i = 0; i < 20; ++i) {
        held.push_back(send_after(20us * i, receiver.id(), test::counted(book, i)));
      }
      auto canceller = spawn([&held, &interval] {
        for (const timer_ref& each : held) (void)cancel_timer(each);
        (void)cancel_timer(interval);
      });
      EXPECT_TRUE(canceller.join().has_value());
      EXPECT_TRUE(receiver.join().has_value());
    }
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(timer_test, a_timer_to_somebody_does_not_learn_of_his_failure) {
  std::atomic<int> reports{0};
  static std::atomic<int>* counting = nullptr;
  counting = &reports;
  config how;
  how.schedulers = GetParam();
  how.on_unobserved_failure = [](pid, std::string_view, const exit_reason&) { ++*counting; };
  smarm::run(how, [] {
    const pid failing = spawn_detached([] {
      (void)send_after(1h, self(), 1);
      throw std::runtime_error("nobody sees this");
    });
    (void)failing;
  });
  EXPECT_EQ(reports, 1);
}

TEST_P(timer_test, an_interval_ticks_until_it_is_cancelled) {
  run([] {
    const timer_ref ticks = send_interval(1ms, self(), std::string("tick"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(take<std::string>(), "tick");
    EXPECT_TRUE(cancel_timer(ticks).has_value());
    EXPECT_EQ(cancel_timer(ticks), std::nullopt);
    while (has<std::string>()) {
    }
    EXPECT_EQ(receive_for<std::string>(5ms).error(), recv_error::timed_out);
    EXPECT_THROW((void)send_interval(0ms, self(), 1), misuse);
  });
}

TEST_P(timer_test, an_interval_to_a_name_goes_on_while_nobody_has_it) {
  run([] {
    const timer_ref ticks = send_interval(1ms, "interval_name", std::string("tick"));
    const timer_ref later = send_after(20ms, self(), 1);
    EXPECT_EQ(take<int>(), 1);
    ASSERT_TRUE(register_name("interval_name").has_value());
    EXPECT_EQ(take<std::string>(), "tick");
    EXPECT_TRUE(cancel_timer(ticks).has_value());
  });
}

TEST_P(timer_test, the_end_of_a_run_takes_pending_timers_and_their_messages_along) {
  test::ledger book;
  run([&book] {
    for (int i = 0; i < 100; ++i) (void)send_after(1h, self(), test::counted(book, i));
    (void)send_interval(1h, self(), 1);
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(timer_test, timers_armed_and_cancelled_by_the_thousand_leave_nothing) {
  run([] {
    for (int round = 0; round < 5'000; ++round) {
      const timer_ref timer = send_after(1ms * (round % 7), self(), round);
      if (round % 3 != 0) (void)cancel_timer(timer);
      if (round % 64 == 0) yield();
    }
  });
}

TEST_P(timer_test, a_thread_that_is_no_actor_has_no_timers) {
  EXPECT_THROW((void)send_after(1ms, pid{1, 1}, 1), misuse);
  run([] {});
}

}  // namespace
}  // namespace smarm
