// The races of a channel: a value against a deadline, a stop, the receiver's end and the last
// sender's end. Goal: sent == received + queued, whatever meets whatever. Method: many short rounds
// in which the two sides are let loose on each other at a random distance.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/watchdog.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;
using test::make_rng;
using test::rounds;

using channel_race_test = test::actors_test;
SMARM_TEST_AT_1_2_8(channel_race_test);

// loiter takes a random short while, so that two sides meet at another point each time.
void loiter(std::mt19937_64& rng) {
  const std::uint64_t dice = rng();
  if (dice % 4 == 0) yield();
  for (std::uint64_t i = dice % 200; i > 0; --i) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

TEST_P(channel_race_test, a_million_ping_pongs_lose_no_wake) {
#ifdef SMARM_DEBUG
  const std::int64_t count = rounds(50'000, 1'000'000);  // each of them changes threads
#else
  const std::int64_t count = rounds(1'000'000, 10'000'000);
#endif
  test::extend_watchdog(600s);
  run([count] {
    auto [ping_tx, ping_rx] = channel<std::int64_t>();
    auto [pong_tx, pong_rx] = channel<std::int64_t>();
    auto echo = spawn([rx = std::move(ping_rx), tx = std::move(pong_tx)]() mutable {
      for (std::int64_t value : rx) tx.send(value + 1);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      ping_tx.send(i);
      ASSERT_EQ(pong_rx.recv().value(), i + 1);
    }
    ping_tx.close();
    (void)echo.join();
  });
}

TEST_P(channel_race_test, many_pairs_ping_pong_with_deadlines_at_once) {
  const std::int64_t count = rounds(1'000, 300'000);
  run([count] {
    std::vector<join_handle<void>> pairs;
    for (int pair = 0; pair < 16; ++pair) {
      pairs.push_back(spawn([count] {
        auto [ping_tx, ping_rx] = channel<std::int64_t>();
        auto [pong_tx, pong_rx] = channel<std::int64_t>();
        auto echo = spawn([rx = std::move(ping_rx), tx = std::move(pong_tx)]() mutable {
          while (auto value = rx.recv_for(1h)) tx.send(*value);
        });
        for (std::int64_t i = 0; i < count; ++i) {
          ping_tx.send(i);
          ASSERT_EQ(pong_rx.recv_for(1h).value(), i);
        }
        ping_tx.close();
        (void)echo.join();
      }));
    }
    for (auto& pair : pairs) (void)pair.join();
  });
}

TEST_P(channel_race_test, each_senders_values_keep_their_order) {
  constexpr int producers = 8;
  const std::int64_t each = rounds(20'000, 1'000'000);
  run([each] {
    auto [tx, rx] = channel<std::pair<int, std::int64_t>>();
    for (int who = 0; who < producers; ++who) {
      spawn([tx = tx, who, each] {
        for (std::int64_t i = 0; i < each; ++i) tx.send({who, i});
      });
    }
    tx.close();
    std::array<std::int64_t, producers> next{};
    for (auto [who, number] : rx) ASSERT_EQ(number, next[static_cast<std::size_t>(who)]++);
    for (const std::int64_t seen : next) EXPECT_EQ(seen, each);
  });
}

TEST_P(channel_race_test, a_deadline_that_passes_as_a_value_arrives_loses_nothing) {
  const std::int64_t count = rounds(3'000, 200'000);
  run([count] {
    auto rng = make_rng(1);
    std::int64_t sent = 0;
    std::int64_t received = 0;
    std::int64_t timed_out = 0;
    auto [tx, rx] = channel<std::int64_t>();
    auto [go_tx, go_rx] = channel<deadline>();
    auto sending = spawn([tx = std::move(tx), rx = std::move(go_rx), &sent]() mutable {
      auto own_rng = make_rng(2);
      for (deadline when : rx) {
        // Aim at the receiver's deadline from both sides.
        const std::int64_t jitter = static_cast<std::int64_t>(own_rng() % 40'000) - 20'000;
        sleep_until(deadline::from_ns(when.ns() + jitter));
        tx.send(sent++);
      }
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const deadline when(std::chrono::microseconds(30 + rng() % 50));
      go_tx.send(when);
      if (auto value = rx.recv_until(when)) {
        ASSERT_EQ(*value, received++);
      } else {
        ASSERT_EQ(value.error(), recv_error::timed_out);
        ++timed_out;
        // Now and then leave it queued, to be found by the next wait.
        if (rng() % 2 == 0) {
          ASSERT_EQ(rx.recv().value(), received++);
        }
      }
    }
    go_tx.close();
    for (std::int64_t value : rx) ASSERT_EQ(value, received++);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(received, count);
    (void)sending.join();
    RecordProperty("timed_out", std::to_string(timed_out));
  });
}

TEST_P(channel_race_test, stopped_receivers_lose_nothing) {
  // One receiver after the other takes over the channel and is stopped at a random moment; what it
  // got it puts into its result before it can be stopped again.
  const std::int64_t generations = rounds(500, 30'000);
  ledger book;
  run([&book, generations] {
    auto rng = make_rng(3);
    auto [tx, rx] = channel<counted>();
    std::atomic<bool> enough{false};
    std::atomic<std::int64_t> sent{0};
    auto sending = spawn([tx = std::move(tx), &enough, &sent, &book] {
      auto own_rng = make_rng(4);
      while (!enough) {
        ASSERT_TRUE(tx.send(counted(book, sent)));
        ++sent;
        loiter(own_rng);
        if (sent % 8 == 0) yield();
      }
    });
    std::int64_t received = 0;
    receiver<counted>& shared = rx;
    for (std::int64_t i = 0; i < generations; ++i) {
      auto receiving = spawn([&shared, &received] {
        for (;;) {
          auto value = shared.recv();  // a stop leaves here, before or after this line
          ASSERT_TRUE(value && value->is_full());
          ++received;
        }
      });
      loiter(rng);
      if (i % 3 == 0) sleep_for(10us);
      receiving.request_stop();
      ASSERT_TRUE(receiving.join().error().is_stopped());
    }
    enough = true;
    (void)sending.join();
    for (auto&& value : rx) {
      EXPECT_TRUE(value.is_full());
      ++received;
    }
    EXPECT_EQ(received, sent);
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(channel_race_test, a_receiver_that_goes_while_others_send_leaks_and_strands_nothing) {
  // Each value is a request with the way to answer it. Whether the server took it, dropped it with
  // its queue, or refused it, the client learns of it: the reply or `closed`, never silence.
  struct request {
    std::int64_t number;
    oneshot_sender<std::int64_t> reply;
  };
  const std::int64_t count = rounds(1'000, 50'000);
  run([count] {
    std::atomic<std::int64_t> answered{0};
    std::atomic<std::int64_t> dropped{0};
    std::atomic<std::int64_t> refused{0};
    for (std::int64_t i = 0; i < count; ++i) {
      auto [tx, rx] = channel<request>();
      std::vector<join_handle<void>> clients;
      for (int c = 0; c < 3; ++c) {
        clients.push_back(spawn([tx = tx, i, c, &answered, &dropped, &refused] {
          auto rng = make_rng(static_cast<std::uint64_t>(i * 8 + c));
          for (std::int64_t n = 0; n < 4; ++n) {
            auto [reply_tx, reply_rx] = oneshot<std::int64_t>();
            loiter(rng);
            if (!tx.send({n, std::move(reply_tx)})) {
              ++refused;
              return;
            }
            if (auto reply = reply_rx.recv()) {
              ASSERT_EQ(*reply, n);
              ++answered;
            } else {
              ++dropped;
            }
          }
        }));
      }
      auto server = spawn([rx = std::move(rx), i]() mutable {
        auto rng = make_rng(static_cast<std::uint64_t>(i * 8 + 7));
        for (auto left = rng() % 8; left > 0; --left) {
          auto got = rx.recv();
          if (!got) return;
          (void)got->reply.send(got->number);
        }
        loiter(rng);
      });
      for (auto& client : clients) ASSERT_TRUE(client.join());
      (void)server.join();
    }
    EXPECT_GT(answered + dropped + refused, 0);
  });
}

TEST_P(channel_race_test, the_last_senders_end_is_seen_after_all_values) {
  const std::int64_t count = rounds(2'000, 100'000);
  run([count] {
    auto rng = make_rng(5);
    for (std::int64_t i = 0; i < count; ++i) {
      auto [tx, rx] = channel<int>();
      for (int who = 0; who < 3; ++who) {
        spawn([tx = tx, who] {
          tx.send(who);
          tx.send(who);
        });
      }
      tx.close();
      loiter(rng);
      int seen = 0;
      while (rx.recv()) ++seen;
      ASSERT_EQ(seen, 6);
    }
  });
}

TEST_P(channel_race_test, foreign_threads_send_while_the_receiver_comes_and_goes) {
  ledger book;
  const std::int64_t count = rounds(200, 5'000);
  for (std::int64_t i = 0; i < count; ++i) {
    auto [tx, rx] = channel<counted>();
    std::atomic<std::int64_t> sent{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([tx = tx, &book, &sent] {
        for (int n = 0; n < 50; ++n) {
          if (!tx.send(counted(book, n))) return;
          ++sent;
        }
      });
    }
    tx.close();
    // The runtime ends while they still send: the receiver's end is all they see of it.
    run([rx = std::move(rx), i]() mutable {
      for (std::int64_t n = 0; n < i % 100; ++n) {
        if (!rx.recv()) return;
      }
    });
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(book.alive, 0);
  }
}

TEST_P(channel_race_test, foreign_threads_wait_for_actors_with_deadlines) {
  const std::int64_t count = rounds(2'000, 100'000);
  auto [tx, rx] = channel<std::int64_t>();
  std::int64_t received = 0;
  std::thread receiving([rx = std::move(rx), &received]() mutable {
    for (;;) {
      auto value = rx.recv_for(5us);
      if (value) {
        ASSERT_EQ(*value, received++);
      } else if (value.error() == recv_error::closed) {
        return;
      }
    }
  });
  run([tx = std::move(tx), count]() mutable {
    auto rng = make_rng(6);
    for (std::int64_t i = 0; i < count; ++i) {
      tx.send(i);
      loiter(rng);
      if (i % 16 == 0) sleep_for(5us);
    }
  });
  receiving.join();
  EXPECT_EQ(received, count);
}

}  // namespace
}  // namespace smarm
