// Goal: faults that other runtimes had under load do not occur here: a wake that is lost between
// two schedulers, a message that dies with a stopped receiver, a notice that drowns in a full
// mailbox, a waiter that is touched after it has gone, a shutdown that hangs once in a thousand.
// Method: storms in which everything happens at once, counted before and after; what is lost hangs
// or miscounts.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/condition_variable.hpp>
#include <smarm/monitor.hpp>
#include <smarm/mutex.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/runtime.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/watchdog.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;
using test::make_rng;
using test::rounds;
using test::scaled;

using storm_test = test::every_way_test;
SMARM_TEST_EVERY_WAY(storm_test);

TEST_P(storm_test, a_ping_pong_between_schedulers_loses_no_wake) {
  if (test::soaking()) test::extend_watchdog(1800s);
  const auto count = rounds(scaled(20'000), 10'000'000);
  run([count] {
    auto [tx, rx] = channel<std::int64_t>();
    auto [back, answers] = channel<std::int64_t>();
    auto echo = spawn([rx = std::move(rx), back = std::move(back)]() mutable {
      for (const std::int64_t value : rx) (void)back.send(value + 1);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      (void)tx.send(i);
      ASSERT_EQ(answers.recv().value(), i + 1);
    }
    tx.close();
    EXPECT_TRUE(echo.join().has_value());
  });
}

// What the actor of the storm waits for: each kind of wait that there is, one after another.
struct place {
  mutex lock;
  condition_variable changed;
  semaphore permits{1};
  std::optional<sender<int>> tx;
};

void wait_somehow(place& here, receiver<int>& rx, std::uint64_t dice) {
  const std::chrono::nanoseconds a_moment(dice % 50'000);
  switch ((dice >> 20) % 7) {
    case 0:
      return sleep_for(a_moment);
    case 1:
      (void)rx.recv_for(a_moment);
      return;
    case 2: {
      std::unique_lock guard(here.lock);
      (void)here.changed.wait_for(guard, a_moment);
      return;
    }
    case 3:
      if (here.permits.try_acquire_for(a_moment)) here.permits.release();
      return;
    case 4:
      (void)spawn([] { yield(); }).join_for(a_moment);
      return;
    case 5: {
      const std::scoped_lock guard(here.lock);
      return yield();
    }
    default:
      (void)here.tx->send(1);
      here.changed.notify_one();
      return yield();
  }
}

TEST_P(storm_test, runs_that_start_park_wake_and_stop_everything_come_to_their_end) {
  if (test::soaking()) test::extend_watchdog(1800s);
  const auto count = rounds(scaled(60), 1'000);
  std::mt19937_64 rng = make_rng(3);
  for (std::int64_t round = 0; round < count; ++round) {
    run([&rng] {
      place here;
      auto [tx, rx] = channel<int>();
      here.tx = tx;
      const auto shared = std::make_shared<receiver<int>>(std::move(rx));
      std::vector<join_handle<void>> all;
      for (int i = 0; i < 12; ++i) {
        // One receiver: only the first actor receives.
        all.push_back(spawn([&here, i, shared, seed = rng()] {
          std::mt19937_64 own(seed);
          auto [unused, nothing] = channel<int>();
          for (;;) wait_somehow(here, i == 0 ? *shared : nothing, own());
        }));
      }
      std::shuffle(all.begin(), all.end(), rng);
      const stop_shield see_it_through;
      for (auto& each : all) {
        if (rng() % 2 == 0) sleep_for(std::chrono::nanoseconds(rng() % 20'000));
        each.request_stop();
      }
      for (auto& each : all) {
        ASSERT_TRUE(each.join().error().is_stopped());
      }
    });
  }
}

// Goal as tests of waiters on the stack: a wake, a deadline and a stop meet over and over, and the
// waiter's frame goes away at once. AddressSanitizer sees a late touch.
TEST_P(storm_test, a_waiter_that_has_gone_is_not_touched_again) {
  const auto count = rounds(scaled(1'000), 200'000);
  run([count] {
    std::mt19937_64 rng = make_rng(4);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t dice = rng();
      auto [tx, rx] = channel<int>();
      auto [reply_tx, reply_rx] = oneshot<int>();
      auto waiter = spawn([&dice, rx = std::move(rx), reply = std::move(reply_tx)]() mutable {
        const auto limit = std::chrono::nanoseconds(dice % 20'000);
        const auto got = rx.recv_for(limit);
        (void)reply.send(got ? *got : -1);
        (void)rx.recv_for(limit / 2);
      });
      auto waker = spawn([&dice, tx = std::move(tx)]() mutable {
        if (dice % 3 == 0) yield();
        (void)tx.send(1);
        if (dice % 5 == 0) sleep_for(std::chrono::nanoseconds(dice % 7'000));
        (void)tx.send(2);
      });
      if (dice % 4 == 0) waiter.request_stop();
      (void)reply_rx.recv_for(std::chrono::nanoseconds(dice % 10'000));
      const auto end = waiter.join();
      EXPECT_TRUE(end.has_value() || end.error().is_stopped());
      EXPECT_TRUE(waker.join().has_value());
    }
  });
}

TEST_P(storm_test, what_is_sent_to_receivers_that_are_stopped_is_received_or_still_queued) {
  ledger book;
  const auto count = rounds(scaled(300), 50'000);
  std::atomic<std::int64_t> received{0};
  std::int64_t sent = 0;
  run([&] {
    std::mt19937_64 rng = make_rng(5);
    auto [tx, rx] = channel<counted>();
    // The receiver passes from one short-lived actor to the next.
    const auto shared = std::make_shared<receiver<counted>>(std::move(rx));
    for (std::int64_t i = 0; i < count; ++i) {
      auto taker = spawn([&, shared] {
        for (;;) {
          const auto value = shared->recv();
          if (!value) return;
          ++received;
        }
      });
      for (std::uint64_t burst = rng() % 5; burst-- > 0; ++sent) {
        EXPECT_TRUE(tx.send(counted(book, sent)).has_value());
        if (rng() % 4 == 0) yield();
      }
      taker.request_stop();
      EXPECT_TRUE(taker.join().error().is_stopped());
    }
    EXPECT_EQ(received.load() + static_cast<std::int64_t>(shared->size()), sent);
  });
  EXPECT_EQ(book.alive.load(), 0);
}

// A consumer that is far behind gets the notice of a death all the same: notices are messages of an
// unbounded channel and are never dropped for others.
TEST_P(storm_test, notices_of_death_arrive_through_a_flooded_mailbox) {
  run([] {
    auto [notices, mailbox] = channel<down>();
    std::vector<monitor_ref> watches;
    std::vector<join_handle<void>> victims;
    const int count = scaled(200);
    for (int i = 0; i < count; ++i) {
      victims.push_back(spawn([] { sleep_until(deadline::never()); }));
      watches.push_back(monitor(victims.back().id(), notices));
    }
    // The flood: notices about nobody.
    for (int i = 0; i < 10 * count; ++i) watches.push_back(monitor(pid{}, notices));
    for (auto& each : victims) each.request_stop();
    int stopped = 0;
    int nobody = 0;
    while (stopped < count || nobody < 10 * count) {
      const auto notice = mailbox.recv();
      ASSERT_TRUE(notice.has_value());
      if (notice->reason.is_stopped()) ++stopped;
      if (notice->reason.kind() == exit_kind::noproc) ++nobody;
    }
    for (auto& each : victims) {
      EXPECT_TRUE(each.join().error().is_stopped());
    }
  });
}

TEST_P(storm_test, a_channel_that_is_closed_stays_closed_for_both_ends) {
  run([] {
    auto [tx, rx] = channel<int>();
    (void)tx.send(1);
    rx.close();
    for (int i = 0; i < 3; ++i) {
      const auto refused = tx.send(2);
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().why, send_failure::closed);
    }
    EXPECT_EQ(rx.recv().value(), 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(rx.recv().error(), recv_error::closed);
      EXPECT_EQ(rx.recv_for(1h).error(), recv_error::closed);
      EXPECT_EQ(rx.try_recv().error(), recv_error::closed);
    }
    rx.close();
  });
}

// Foreign threads send, stop and join until the runtime is gone, and a little longer.
TEST_P(storm_test, foreign_threads_talk_to_actors_while_the_runtime_ends) {
  const auto count = rounds(scaled(40), 5'000);
  for (std::int64_t round = 0; round < count; ++round) {
    ledger book;
    {
      auto [tx, rx] = channel<counted>();
      std::optional<join_handle<int>> target;  // the joining thread's, once up
      pid who;
      std::atomic<bool> up{false};
      std::vector<std::thread> threads;
      runtime ours(make_config());
      threads.emplace_back([&, mine = tx] {
        while (!up.load()) yield();
        while (mine.send(counted(book, 1)).has_value()) {
        }
      });
      threads.emplace_back([&] {
        while (!up.load()) yield();
        const auto end = target->join();
        EXPECT_TRUE(end.has_value() || end.error().is_stopped());
      });
      threads.emplace_back([&, round] {
        while (!up.load()) yield();
        if (round % 2 == 0) (void)request_stop(who);
        (void)request_stop(pid{0, 1});
      });
      ours.run([&, rx = std::move(rx)]() mutable {
        target = spawn([rx = std::move(rx)]() mutable {
          int seen = 0;
          while (seen < 50 && rx.recv()) ++seen;
          return seen;
        });
        who = target->id();
        up.store(true);
      });
      for (std::thread& each : threads) each.join();
      test::expect_nothing_left(ours);
    }
    EXPECT_EQ(book.alive.load(), 0);
  }
}

}  // namespace
}  // namespace smarm
