// Bounded channels: senders park for room, get in by turns, and are all sent away when nobody will
// make room any more. Also a slow consumer, whose mailbox must not grow.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;

using channel_bounded_test = test::actors_test;
SMARM_TEST_AT_1_2_8(channel_bounded_test);

// until waits, giving way, for something that will come by itself; the watchdog ends what does not.
template <class Condition>
void until(Condition condition) {
  while (!condition()) yield();
}

TEST_P(channel_bounded_test, a_full_channel_says_so) {
  run([] {
    auto [tx, rx] = channel<std::unique_ptr<int>>(2);
    EXPECT_EQ(tx.capacity(), 2U);
    EXPECT_TRUE(tx.try_send(std::make_unique<int>(1)));
    EXPECT_TRUE(tx.send(std::make_unique<int>(2)));
    auto refused = tx.try_send(std::make_unique<int>(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, send_failure::full);
    EXPECT_EQ(*refused.error().value, 3);
    refused = tx.send_for(std::make_unique<int>(4), 1ms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, send_failure::timed_out);
    EXPECT_EQ(*refused.error().value, 4);
    EXPECT_EQ(*rx.recv().value(), 1);
    EXPECT_TRUE(tx.try_send(std::make_unique<int>(5)));
    EXPECT_EQ(*rx.recv().value(), 2);
    EXPECT_EQ(*rx.recv().value(), 5);
    EXPECT_EQ(rx.try_recv().error(), recv_error::empty);
  });
}

TEST_P(channel_bounded_test, parked_senders_get_in_in_the_order_they_came) {
  run([] {
    auto [tx, rx] = channel<int>(1);
    tx.send(0);
    std::vector<join_handle<void>> senders;
    std::atomic<int> begun{0};
    for (int i = 1; i <= 20; ++i) {
      senders.push_back(spawn([tx = tx, i, &begun] {
        ++begun;
        EXPECT_TRUE(tx.send(i));
      }));
      // The next one comes when this one is parked: it has begun, and the queue stays full.
      until([&] { return begun == i; });
      for (int turn = 0; turn < 50; ++turn) yield();
      sleep_for(200us);
    }
    for (int i = 0; i <= 20; ++i) EXPECT_EQ(rx.recv().value(), i);
    for (auto& sender : senders) EXPECT_TRUE(sender.join());
  });
}

TEST_P(channel_bounded_test, a_slow_consumer_holds_its_senders_back) {
  run([] {
    auto [tx, rx] = channel<int>(4);
    std::size_t longest = 0;
    auto consumer = spawn([rx = std::move(rx), &longest]() mutable {
      int expected = 0;
      for (int value : rx) {
        EXPECT_EQ(value, expected++);
        longest = std::max(longest, rx.size());
        if (value % 100 == 0) sleep_for(100us);
      }
      return expected;
    });
    for (int i = 0; i < 2'000; ++i) tx.send(i);
    tx.close();
    EXPECT_EQ(consumer.join().value(), 2'000);
    // The receiver's hand-over of a parked sender's value comes right behind the one it took.
    EXPECT_LE(longest, 5U);
  });
}

TEST_P(channel_bounded_test, a_receiver_that_goes_sends_every_parked_sender_away) {
  ledger book;
  run([&book] {
    auto [tx, rx] = channel<counted>(1);
    std::vector<join_handle<bool>> senders;
    std::atomic<int> begun{0};
    for (int i = 0; i < 10; ++i) {
      senders.push_back(spawn([tx = tx, i, &begun, &book] {
        ++begun;
        auto sent = tx.send(counted(book, i));
        if (sent) return true;
        EXPECT_EQ(sent.error().why, send_failure::closed);
        EXPECT_EQ(sent.error().value.number(), i);
        EXPECT_TRUE(sent.error().value.is_full());
        return false;
      }));
    }
    until([&] { return begun == 10; });
    sleep_for(1ms);
    rx = {};
    int sent = 0;
    for (auto& sender : senders) sent += sender.join().value() ? 1 : 0;
    EXPECT_EQ(sent, 1) << "one found room, the others were parked";
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(channel_bounded_test, closing_hands_parked_values_back_and_leaves_the_queued) {
  run([] {
    auto [tx, rx] = channel<int>(1);
    tx.send(1);
    auto parked = spawn([tx = tx] { return tx.send(2).error().value; });
    for (int i = 0; i < 20; ++i) yield();
    sleep_for(500us);
    rx.close();
    EXPECT_EQ(parked.join().value(), 2);
    EXPECT_EQ(rx.recv().value(), 1);
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
    EXPECT_EQ(tx.send(3).error().why, send_failure::closed);
    EXPECT_EQ(tx.try_send(3).error().why, send_failure::closed);
  });
}

TEST_P(channel_bounded_test, a_stopped_sender_gives_its_turn_to_the_next) {
  ledger book;
  run([&book] {
    auto [tx, rx] = channel<counted>(1);
    tx.send(counted(book, 0));
    auto first = spawn([tx = tx, &book] { tx.send(counted(book, 1)); });
    for (int i = 0; i < 20; ++i) yield();
    sleep_for(500us);
    auto second = spawn([tx = tx, &book] { tx.send(counted(book, 2)); });
    for (int i = 0; i < 20; ++i) yield();
    sleep_for(500us);
    first.request_stop();
    EXPECT_TRUE(first.join().error().is_stopped());
    EXPECT_EQ(rx.recv().value().number(), 0);
    EXPECT_EQ(rx.recv().value().number(), 2);
    EXPECT_TRUE(second.join());
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(channel_bounded_test, a_thread_that_is_no_actor_blocks_for_room) {
  auto [tx, rx] = channel<int>(1);
  std::thread producer([tx = std::move(tx)] {
    for (int i = 0; i < 2'000; ++i) EXPECT_TRUE(tx.send(i));
  });
  run([rx = std::move(rx)]() mutable {
    int expected = 0;
    for (int value : rx) EXPECT_EQ(value, expected++);
    EXPECT_EQ(expected, 2'000);
  });
  producer.join();
}

// Many senders with deadlines and stops against one receiver in a tiny channel: every value is
// received, or back with its sender, or was unwound with it; none twice, none lost.
TEST_P(channel_bounded_test, values_are_accounted_for_under_timeouts_and_stops) {
  ledger book;
  const auto values = static_cast<int>(test::rounds(2'000, 100'000));
  run([&book, values] {
    auto [tx, rx] = channel<counted>(3);
    std::atomic<int> sent{0};
    std::vector<join_handle<void>> senders;
    for (int who = 0; who < 8; ++who) {
      senders.push_back(spawn([tx = tx, who, values, &sent, &book] {
        for (int i = 0; i < values; ++i) {
          const bool in_haste = (i + who) % 3 == 0;
          auto result = in_haste ? tx.send_for(counted(book, i), 20us) : tx.send(counted(book, i));
          if (result) {
            ++sent;
          } else {
            EXPECT_TRUE(result.error().value.is_full());
          }
        }
      }));
    }
    tx.close();
    int received = 0;
    while (auto value = rx.recv()) {
      EXPECT_TRUE(value->is_full());
      ++received;
      if (received % 64 == 0) yield();
      if (received % (values / 2) == 0)
        senders[static_cast<std::size_t>(received / (values / 2)) % 8].request_stop();
    }
    for (auto& sender : senders) (void)sender.join();
    EXPECT_EQ(received, sent) << "a send that returned was received, one that threw was not";
  });
  EXPECT_EQ(book.alive, 0);
}

}  // namespace
}  // namespace smarm
