// What a oneshot promises: the one value, or `closed`, exactly once, and no leak on any path.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <smarm/oneshot.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;
using test::make_rng;

using oneshot_test = test::actors_test;
SMARM_TEST_AT_1_2_8(oneshot_test);

TEST_P(oneshot_test, the_value_arrives_sent_before_or_after_the_wait) {
  run([] {
    auto [early_tx, early_rx] = oneshot<std::unique_ptr<int>>();
    EXPECT_EQ(early_rx.try_recv().error(), recv_error::empty);
    EXPECT_TRUE(early_tx.send(std::make_unique<int>(1)));
    EXPECT_FALSE(early_tx);
    EXPECT_EQ(*early_rx.recv().value(), 1);
    EXPECT_FALSE(early_rx);

    auto [late_tx, late_rx] = oneshot<int>();
    auto sending = spawn([tx = std::move(late_tx)]() mutable {
      sleep_for(500us);
      EXPECT_TRUE(tx.send(2));
    });
    EXPECT_EQ(late_rx.recv().value(), 2);
    (void)sending.join();
  });
}

TEST_P(oneshot_test, a_sender_that_goes_closes_it) {
  run([] {
    auto [tx, rx] = oneshot<int>();
    auto dropping = spawn([tx = std::move(tx)]() mutable { sleep_for(500us); });
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
    EXPECT_FALSE(rx);
    (void)dropping.join();
  });
}

TEST_P(oneshot_test, a_receiver_that_is_gone_hands_the_value_back) {
  run([] {
    auto [tx, rx] = oneshot<std::unique_ptr<int>>();
    EXPECT_FALSE(tx.is_closed());
    rx.close();
    EXPECT_TRUE(tx.is_closed());
    auto refused = tx.send(std::make_unique<int>(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, send_failure::closed);
    EXPECT_EQ(*refused.error().value, 3);
  });
}

TEST_P(oneshot_test, a_deadline_leaves_it_usable) {
  run([] {
    auto [tx, rx] = oneshot<int>();
    EXPECT_EQ(rx.recv_for(1ms).error(), recv_error::timed_out);
    EXPECT_EQ(rx.recv_for(-1ms).error(), recv_error::timed_out);
    EXPECT_TRUE(tx.send(4));
    EXPECT_EQ(rx.recv_for(-1ms).value(), 4);
  });
}

TEST_P(oneshot_test, the_value_is_destroyed_once_on_every_path) {
  ledger book;
  run([&book] {
    auto received = oneshot<counted>();
    EXPECT_TRUE(received.tx.send(counted(book, 1)));
    EXPECT_EQ(received.rx.recv().value().number(), 1);
    auto unreceived = oneshot<counted>();
    EXPECT_TRUE(unreceived.tx.send(counted(book, 2)));
    unreceived.rx.close();
    EXPECT_EQ(book.alive, 0);
    auto refused = oneshot<counted>();
    refused.rx.close();
    EXPECT_EQ(refused.tx.send(counted(book, 3)).error().value.number(), 3);
    auto never_sent = oneshot<counted>();
    (void)never_sent;
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(oneshot_test, misuse_is_named) {
  run([] {
    auto [tx, rx] = oneshot<int>();
    EXPECT_TRUE(tx.send(1));
    EXPECT_THROW(tx.send(2), misuse);
    EXPECT_EQ(rx.recv().value(), 1);
    EXPECT_THROW((void)rx.recv(), misuse);
    EXPECT_THROW((void)rx.try_recv(), misuse);
  });
}

TEST_P(oneshot_test, a_move_that_throws_on_send_leaves_the_sender) {
  struct moody {
    moody() = default;
    moody(moody&& other) : throws(other.throws) {
      if (throws) throw std::runtime_error("no");
    }
    bool throws = false;
  };
  run([] {
    auto [tx, rx] = oneshot<moody>();
    moody value;
    value.throws = true;
    EXPECT_THROW(tx.send(std::move(value)), std::runtime_error);
    EXPECT_TRUE(tx.send(moody()));
    EXPECT_TRUE(rx.recv());
  });
}

TEST_P(oneshot_test, a_stopped_receiver_closes_it) {
  run([] {
    auto [tx, rx] = oneshot<int>();
    auto waiting = spawn([rx = std::move(rx)]() mutable { (void)rx.recv(); });
    for (int i = 0; i < 5; ++i) yield();
    waiting.request_stop();
    EXPECT_TRUE(waiting.join().error().is_stopped());
    EXPECT_EQ(tx.send(1).error().why, send_failure::closed);
  });
}

// The three ends of a wait (value, deadline, stop) and the two ends of the oneshot, at random.
TEST_P(oneshot_test, value_deadline_stop_and_both_ends_race) {
  ledger book;
  const std::int64_t count = test::rounds(5'000, 500'000);
  run([&book, count] {
    auto rng = make_rng(11);
    std::int64_t delivered = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      auto [tx, rx] = oneshot<counted>();
      auto waiting = spawn([rx = std::move(rx), haste = rng() % 3]() mutable {
        auto got = haste == 0 ? rx.recv_for(2us) : rx.recv();
        if (!got) return false;
        EXPECT_TRUE(got->is_full());
        return true;
      });
      auto sending = spawn([tx = std::move(tx), goes = rng() % 4 == 0, &book, i]() mutable {
        if (goes) return false;
        auto sent = tx.send(counted(book, i));
        EXPECT_TRUE(sent || sent.error().value.is_full());
        return sent.has_value();
      });
      if (rng() % 3 == 0) waiting.request_stop();
      const auto got = waiting.join();
      const bool sent = sending.join().value();
      if (got && *got) {
        ASSERT_TRUE(sent);
        ++delivered;
      }
      ASSERT_EQ(book.alive, 0);
    }
    EXPECT_GT(delivered, 0);
  });
}

TEST_P(oneshot_test, a_thread_that_is_no_actor_waits_for_a_reply) {
  for (int i = 0; i < 50; ++i) {
    auto [tx, rx] = oneshot<int>();
    std::thread waiting([rx = std::move(rx)]() mutable { EXPECT_EQ(rx.recv().value(), 5); });
    run([tx = std::move(tx)]() mutable { EXPECT_TRUE(tx.send(5)); });
    waiting.join();
  }
}

}  // namespace
}  // namespace smarm
