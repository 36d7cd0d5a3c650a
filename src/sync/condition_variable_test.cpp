// What a condition variable promises: the mutex is held again however a wait ends, exactly once,
// and a notification is not lost with a waiter that is stopped.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <smarm/condition_variable.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;

using condition_variable_test = test::actors_test;
SMARM_TEST_AT_1_2_8(condition_variable_test);

TEST_P(condition_variable_test, a_queue_of_the_textbook_works) {
  run([] {
    mutex lock;
    condition_variable filled;
    std::deque<int> queue;
    std::vector<join_handle<int>> consumers;
    for (int c = 0; c < 4; ++c) {
      consumers.push_back(spawn([&] {
        int taken = 0;
        for (;;) {
          std::unique_lock guard(lock);
          filled.wait(guard, [&] { return !queue.empty(); });
          const int value = queue.front();
          if (value < 0) return taken;
          queue.pop_front();
          ++taken;
        }
      }));
    }
    for (int i = 0; i < 2'000; ++i) {
      {
        const std::lock_guard guard(lock);
        queue.push_back(i);
      }
      filled.notify_one();
      if (i % 10 == 0) yield();
    }
    {
      const std::lock_guard guard(lock);
      queue.push_back(-1);
    }
    filled.notify_all();
    int taken = 0;
    for (auto& consumer : consumers) taken += consumer.join().value();
    EXPECT_EQ(taken, 2'000);
  });
}

TEST_P(condition_variable_test, a_deadline_ends_the_wait_with_the_mutex_held) {
  run([] {
    mutex lock;
    condition_variable never;
    std::unique_lock guard(lock);
    EXPECT_EQ(never.wait_for(guard, 1ms), std::cv_status::timeout);
    EXPECT_TRUE(guard.owns_lock());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(never.wait_for(guard, 1ms, [] { return false; }));
    EXPECT_TRUE(never.wait_for(guard, 1ms, [] { return true; }));
    EXPECT_FALSE(lock.try_lock());
  });
}

TEST_P(condition_variable_test, notify_one_wakes_one_and_notify_all_the_rest) {
  run([] {
    mutex lock;
    condition_variable changed;
    int waiting = 0;
    std::atomic<int> woken{0};
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 5; ++i) {
      actors.push_back(spawn([&] {
        std::unique_lock guard(lock);
        ++waiting;
        changed.wait(guard);
        ++woken;
      }));
    }
    const auto waiters = [&] {
      const std::lock_guard guard(lock);
      return waiting;
    };
    while (waiters() != 5) yield();
    changed.notify_one();
    while (woken != 1) yield();
    for (int i = 0; i < 100; ++i) yield();
    EXPECT_EQ(woken, 1);
    changed.notify_all();
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    EXPECT_EQ(woken, 5);
    changed.notify_all();  // nobody waits: nothing happens
  });
}

TEST_P(condition_variable_test, a_stopped_waiter_unlocks_exactly_once) {
  run([] {
    mutex lock;
    condition_variable never;
    for (int i = 0; i < 200; ++i) {
      std::atomic<bool> inside{false};
      std::atomic<bool> held_while_unwinding{false};
      auto waiting = spawn([&] {
        std::unique_lock guard(lock);
        struct witness {
          mutex& of;
          std::atomic<bool>& held;
          ~witness() { held = !of.try_lock(); }
        } const last{lock, held_while_unwinding};
        inside = true;
        never.wait(guard);
      });
      while (!inside) yield();
      if (i % 2 == 0) {
        const std::lock_guard guard(lock);  // the stop has to wait for the mutex
        waiting.request_stop();
        yield();
      } else {
        waiting.request_stop();
      }
      ASSERT_TRUE(waiting.join().error().is_stopped());
      ASSERT_TRUE(held_while_unwinding);
      ASSERT_TRUE(lock.try_lock()) << "one lock, one unlock";
      lock.unlock();
    }
  });
}

// Each item is announced by one notify_one while waiters are stopped at random: a notification that
// a stopped waiter had taken has to reach another, or the last items are never taken.
TEST_P(condition_variable_test, no_notification_is_lost_with_a_stopped_waiter) {
  const std::int64_t count = test::rounds(3'000, 200'000);
  run([count] {
    mutex lock;
    condition_variable filled;
    std::int64_t items = 0;
    std::int64_t taken = 0;
    const auto take = [&] {
      for (;;) {
        std::unique_lock guard(lock);
        filled.wait(guard, [&] { return items > 0; });
        --items;
        ++taken;
      }
    };
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 4; ++i) actors.push_back(spawn(take));
    auto rng = make_rng(21);
    for (std::int64_t i = 0; i < count; ++i) {
      {
        const std::lock_guard guard(lock);
        ++items;
      }
      filled.notify_one();
      auto& victim = actors[rng() % actors.size()];
      if (rng() % 2 == 0) {
        victim.request_stop();
        ASSERT_TRUE(victim.join().error().is_stopped());
        victim = spawn(take);
      }
      // Wait for all to be taken now and then, with nobody left to cover a lost notification.
      if (i % 4 == 0) {
        for (bool empty = false; !empty; yield()) {
          const std::lock_guard guard(lock);
          empty = items == 0;
        }
      }
    }
    for (auto& actor : actors) {
      actor.request_stop();
      (void)actor.join();
    }
    EXPECT_EQ(taken + items, count);
  });
}

TEST_P(condition_variable_test, deadline_and_notification_race) {
  const std::int64_t count = test::rounds(3'000, 200'000);
  run([count] {
    mutex lock;
    condition_variable turned;
    std::int64_t turn = 0;
    auto other = spawn([&] {
      auto rng = make_rng(31);
      for (std::int64_t i = 0; i < count; ++i) {
        std::unique_lock guard(lock);
        while (turn != 2 * i + 1) {
          (void)turned.wait_for(guard, std::chrono::microseconds(rng() % 20));
        }
        ++turn;
        turned.notify_one();
      }
    });
    auto rng = make_rng(32);
    for (std::int64_t i = 0; i < count; ++i) {
      std::unique_lock guard(lock);
      ++turn;
      turned.notify_one();
      while (turn != 2 * i + 2) {
        (void)turned.wait_for(guard, std::chrono::microseconds(rng() % 20));
      }
    }
    ASSERT_TRUE(other.join());
  });
}

TEST_P(condition_variable_test, misuse_is_named) {
  run([] {
    mutex lock;
    condition_variable never;
    std::unique_lock<mutex> none;
    EXPECT_THROW(never.wait(none), misuse);
    std::unique_lock<mutex> unlocked(lock, std::defer_lock);
    EXPECT_THROW(never.wait(unlocked), misuse);
  });
}

TEST_P(condition_variable_test, a_thread_that_is_no_actor_waits) {
  mutex lock;
  condition_variable changed;
  bool ready = false;
  bool seen = false;
  std::thread waiting([&] {
    std::unique_lock guard(lock);
    changed.wait(guard, [&] { return ready; });
    seen = true;
    changed.notify_all();
  });
  run([&] {
    std::unique_lock guard(lock);
    ready = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(guard, 60s, [&] { return seen; }));
  });
  waiting.join();
}

}  // namespace
}  // namespace smarm
