// What a channel promises to one sender and one receiver: order, ends, deadlines, and where the
// value is afterwards. The races are in channel_race_test.cpp, bounded channels in
// channel_bounded_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;

using channel_test = test::actors_test;
SMARM_TEST_AT_1_2_8(channel_test);

TEST_P(channel_test, values_arrive_in_the_order_they_were_sent) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto producer = spawn([tx = std::move(tx)] {
      for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(tx.send(i));
    });
    for (int i = 0; i < 1'000; ++i) ASSERT_EQ(rx.recv().value(), i);
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
    (void)producer.join();
  });
}

TEST_P(channel_test, a_range_for_ends_when_every_sender_is_gone) {
  const int sum = run([] {
    auto [tx, rx] = channel<int>();
    auto worker = spawn([rx = std::move(rx)]() mutable {
      int total = 0;
      for (int value : rx) total += value;
      return total;
    });
    for (int value : {1, 2, 3}) tx.send(value);
    sender<int> second = tx;
    tx.close();
    second.send(4);
    (void)spawn([second] { second.send(5); }).join();
    second.close();
    return worker.join().value();
  });
  EXPECT_EQ(sum, 15);
}

TEST_P(channel_test, a_receiver_that_waits_learns_that_the_last_sender_has_gone) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto waiting = spawn([rx = std::move(rx)]() mutable { return rx.recv(); });
    for (int i = 0; i < 10; ++i) yield();
    tx.close();
    const auto received = waiting.join().value();
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error(), recv_error::closed);
  });
}

TEST_P(channel_test, what_is_queued_is_received_before_closed) {
  run([] {
    auto [tx, rx] = channel<std::string>();
    tx.send("one");
    tx.send("two");
    tx.close();
    EXPECT_EQ(rx.recv().value(), "one");
    EXPECT_EQ(rx.try_recv().value(), "two");
    EXPECT_EQ(rx.try_recv().error(), recv_error::closed);
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
    EXPECT_EQ(rx.recv_for(1h).error(), recv_error::closed);
  });
}

TEST_P(channel_test, a_send_to_nobody_hands_the_value_back) {
  run([] {
    auto [tx, rx] = channel<std::unique_ptr<int>>();
    rx = {};
    EXPECT_TRUE(tx.is_closed());
    auto refused = tx.send(std::make_unique<int>(7));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, send_failure::closed);
    EXPECT_EQ(*refused.error().value, 7);
    refused = tx.try_send(std::make_unique<int>(8));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, send_failure::closed);
    EXPECT_EQ(*refused.error().value, 8);
    refused = tx.send_for(std::make_unique<int>(9), 1h);
    ASSERT_FALSE(refused);
    EXPECT_EQ(*refused.error().value, 9);
  });
}

TEST_P(channel_test, a_closed_receiver_refuses_and_still_gives_what_is_queued) {
  run([] {
    auto [tx, rx] = channel<int>();
    tx.send(1);
    rx.close();
    EXPECT_FALSE(tx.send(2));
    EXPECT_EQ(rx.recv().value(), 1);
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
    // Closed for good: neither a new sender nor a second close changes that.
    const sender<int> another = tx;
    rx.close();
    EXPECT_FALSE(another.send(3));
    EXPECT_EQ(rx.try_recv().error(), recv_error::closed);
  });
}

TEST_P(channel_test, deadlines_pass_and_the_channel_stays_usable) {
  run([] {
    auto [tx, rx] = channel<int>();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(rx.recv_for(2ms).error(), recv_error::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 2ms);
    EXPECT_EQ(rx.recv_for(-1h).error(), recv_error::timed_out);
    EXPECT_EQ(rx.recv_until(begin).error(), recv_error::timed_out);
    EXPECT_EQ(rx.try_recv().error(), recv_error::empty);
    tx.send(5);
    EXPECT_EQ(rx.recv_for(-1h).value(), 5) << "a value that is there is received, deadline or not";
  });
}

TEST_P(channel_test, a_message_ends_a_wait_with_a_deadline_at_once) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto late = spawn([tx = std::move(tx)] {
      sleep_for(1ms);
      tx.send(1);
    });
    EXPECT_EQ(rx.recv_for(1h).value(), 1);
    (void)late.join();
  });
}

TEST_P(channel_test, sizes_are_told) {
  run([] {
    auto [tx, rx] = channel<int>();
    EXPECT_EQ(tx.capacity(), 0U);
    EXPECT_TRUE(rx.empty());
    for (int i = 0; i < 10; ++i) tx.send(i);
    EXPECT_EQ(rx.size(), 10U);
    EXPECT_EQ(tx.size(), 10U);
    (void)rx.recv();
    EXPECT_EQ(rx.size(), 9U);
  });
}

// The count in the tail goes round every 256 values.
TEST_P(channel_test, the_size_is_right_through_many_rounds_of_its_count) {
  run([] {
    auto [tx, rx] = channel<int>();
    std::size_t queued = 0;
    for (int round = 0; round < 8; ++round) {
      for (int i = 0; i < 300; ++i) {
        tx.send(i);
        ASSERT_EQ(rx.size(), ++queued);
      }
      for (int i = 0; i < 150; ++i) {
        (void)rx.recv();
        ASSERT_EQ(rx.size(), --queued);
      }
    }
    while (queued > 0) {
      (void)rx.recv();
      ASSERT_EQ(rx.size(), --queued);
    }
    EXPECT_EQ(rx.recv_for(1ms).error(), recv_error::timed_out);
    tx.send(1);
    EXPECT_EQ(rx.size(), 1U);
  });
}

TEST_P(channel_test, every_value_is_destroyed_once) {
  ledger book;
  run([&book] {
    auto [tx, rx] = channel<counted>();
    for (int i = 0; i < 100; ++i) tx.send(counted(book, i));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(rx.recv().value().number(), i);
    EXPECT_EQ(book.full, 60);
    rx = {};
    EXPECT_EQ(book.alive, 0) << "the receiver takes what is queued along";
    EXPECT_EQ(tx.send(counted(book, 1)).error().value.number(), 1);
  });
  EXPECT_EQ(book.made, 101);
  EXPECT_EQ(book.alive, 0);
}

TEST_P(channel_test, values_left_when_both_ends_go_are_destroyed) {
  ledger book;
  run([&book] {
    auto ends = channel<counted>();
    ends.tx.send(counted(book, 1));
    ends.tx.close();
    auto other = channel<counted>();
    other.tx.send(counted(book, 1));
  });
  EXPECT_EQ(book.alive, 0);
}

// A value whose destructor uses the channel that it lies in.
struct boomerang {
  explicit boomerang(sender<boomerang> where) : back(std::move(where)) {}
  boomerang(boomerang&&) noexcept = default;
  boomerang& operator=(boomerang&&) noexcept = default;
  ~boomerang() {
    if (back && back.capacity() == 0) (void)back.is_closed();
  }
  sender<boomerang> back;
};

TEST_P(channel_test, a_value_may_hold_a_sender_of_its_own_channel) {
  run([] {
    auto [tx, rx] = channel<boomerang>();
    for (int i = 0; i < 10; ++i) tx.send(boomerang(tx));
    tx.close();
    rx = {};  // the queue's values are the last senders
  });
}

TEST_P(channel_test, a_long_queue_is_destroyed_with_its_receiver) {
  run([] {
    auto [tx, rx] = channel<int>();
    for (int i = 0; i < 200'000; ++i) tx.send(i);
  });
}

// throwing's move throws when it is told to, and leaves the source as it was.
struct throwing {
  explicit throwing(int* countdown_to_throw, int number_in)
      : countdown(countdown_to_throw), number(number_in) {}
  throwing(throwing&& other) : countdown(other.countdown), number(other.number) {
    if (*countdown > 0 && --*countdown == 0) throw std::runtime_error("the move failed");
  }
  throwing& operator=(throwing&&) = delete;
  int* countdown;
  int number;
};

TEST_P(channel_test, a_move_that_throws_on_receive_leaves_the_value_at_the_front) {
  run([] {
    int countdown = 0;
    auto [tx, rx] = channel<throwing>();
    tx.send(throwing(&countdown, 1));
    tx.send(throwing(&countdown, 2));
    countdown = 1;
    EXPECT_THROW((void)rx.recv(), std::runtime_error);
    EXPECT_EQ(rx.size(), 2U);
    EXPECT_EQ(rx.recv().value().number, 1);
    EXPECT_EQ(rx.recv().value().number, 2);
  });
}

TEST_P(channel_test, a_move_that_throws_on_send_sends_nothing) {
  run([] {
    int countdown = 0;
    auto [tx, rx] = channel<throwing>();
    for (int after = 1; after <= 2; ++after) {
      throwing value(&countdown, after);
      countdown = after;
      EXPECT_THROW(tx.send(std::move(value)), std::runtime_error);
      EXPECT_EQ(value.number, after);
    }
    EXPECT_TRUE(rx.empty());
    countdown = 0;
    tx.send(throwing(&countdown, 3));
    EXPECT_EQ(rx.recv().value().number, 3);
  });
}

struct alignas(32) aligned_value {
  std::array<unsigned char, 200> bytes{};
};

TEST_P(channel_test, an_overaligned_value_lies_where_it_must) {
  run([] {
    auto [tx, rx] = channel<aligned_value>();
    for (int i = 0; i < 100; ++i) tx.send({});
    for (int i = 0; i < 100; ++i) {
      const auto value = rx.recv();
      ASSERT_TRUE(value);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&*value) % 32, 0U);
    }
  });
}

TEST_P(channel_test, misuse_is_named) {
  run([] {
    const auto message_of = [](auto&& call) -> std::string {
      try {
        call();
      } catch (const misuse& error) {
        return error.what();
      }
      return "nothing was thrown";
    };
    EXPECT_EQ(message_of([] { (void)channel<int>(0); }),
              "channel: a capacity of 0; allowed: 1 to 2^62");
    const std::string empty = " is empty: it was moved from, closed, or never made";
    EXPECT_EQ(message_of([] { sender<int>{}.send(1); }), "sender" + empty);
    EXPECT_EQ(message_of([] { (void)receiver<int>{}.recv(); }), "receiver" + empty);
    EXPECT_TRUE(sender<int>{}.is_closed());

    // A second actor in the one receiver. The reference gets in through a capture, as it would.
    auto [tx, rx] = channel<int>();
    receiver<int>& shared = rx;
    auto first = spawn([&shared] { return shared.recv().value(); });
    while (message_of([&] { (void)shared.try_recv(); }) == "nothing was thrown") yield();
    EXPECT_EQ(message_of([&] { (void)shared.recv(); }),
              "channel: the receiver is used by two at once");
    tx.send(3);
    EXPECT_EQ(first.join().value(), 3);
    tx.send(4);
    EXPECT_EQ(rx.recv().value(), 4) << "the receiver works again when the first has left it";
  });
}

TEST_P(channel_test, a_stopped_receiver_leaves_the_value_queued) {
  run([] {
    auto [tx, rx] = channel<int>();
    receiver<int>& shared = rx;
    auto waiting = spawn([&shared] { (void)shared.recv(); });
    for (int i = 0; i < 5; ++i) yield();
    waiting.request_stop();
    EXPECT_TRUE(waiting.join().error().is_stopped());
    tx.send(1);
    EXPECT_EQ(rx.recv().value(), 1);
  });
}

TEST_P(channel_test, a_stopped_sender_sends_nothing_more) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto sending = spawn([tx = std::move(tx)] {
      (void)request_stop(self());
      tx.send(1);
      ADD_FAILURE() << "send is a stop point";
    });
    EXPECT_TRUE(sending.join().error().is_stopped());
    EXPECT_EQ(rx.recv().error(), recv_error::closed);
  });
}

TEST_P(channel_test, the_try_calls_are_no_stop_points) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto trying = spawn([tx = std::move(tx), rx = std::move(rx)]() mutable {
      (void)request_stop(self());
      EXPECT_TRUE(tx.try_send(1));
      EXPECT_EQ(rx.try_recv().value(), 1);
      return true;
    });
    EXPECT_TRUE(trying.join().value());
  });
}

TEST_P(channel_test, a_sender_far_ahead_lets_the_receiver_run) {
  // On one scheduler nobody else can empty the queue: without giving way it would hold everything.
  run([] {
    auto [tx, rx] = channel<int>();
    std::size_t longest = 0;
    auto consumer = spawn([rx = std::move(rx), &longest]() mutable {
      for (int value : rx) {
        (void)value;
        longest = std::max(longest, rx.size());
      }
    });
    for (int i = 0; i < 100'000; ++i) tx.send(i);
    tx.close();
    (void)consumer.join();
    if (schedulers() == 1) {
      EXPECT_LE(longest, 1'024U);
    }
  });
}

TEST_P(channel_test, threads_that_are_no_actors_send_and_receive) {
  auto [tx, rx] = channel<int>();
  auto [back_tx, back_rx] = channel<int>();
  std::thread caller([tx = std::move(tx), back_rx = std::move(back_rx)]() mutable {
    for (int i = 0; i < 1'000; ++i) {
      tx.send(i);
      EXPECT_EQ(back_rx.recv().value(), i + 1);
    }
    EXPECT_EQ(back_rx.recv_for(1ms).error(), recv_error::timed_out);
  });
  run([rx = std::move(rx), back_tx = std::move(back_tx)]() mutable {
    for (int value : rx) {
      EXPECT_TRUE(back_tx.send(value + 1));
      if (value == 999) break;
    }
    (void)rx.recv();  // closed by the thread's end
  });
  caller.join();
}

TEST(channel_without_a_runtime_test, two_threads_talk) {
  auto [tx, rx] = channel<int>();
  std::thread producer([tx = std::move(tx)] {
    for (int i = 0; i < 10'000; ++i) tx.send(i);
  });
  int expected = 0;
  for (int value : rx) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 10'000);
  producer.join();
}

}  // namespace
}  // namespace smarm
