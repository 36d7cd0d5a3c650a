// What a mutex promises: one holder, everybody's turn, and nothing lost when a waiter times out or
// is stopped at the moment it is given the lock. Also guarded.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/guarded.hpp>
#include <smarm/mutex.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;

using mutex_test = test::actors_test;
SMARM_TEST_AT_1_2_8(mutex_test);

TEST_P(mutex_test, fits_the_standard_guards) {
  run([] {
    mutex first;
    mutex second;
    {
      const std::lock_guard guard(first);
    }
    {
      const std::scoped_lock guard(first, second);
    }
    std::unique_lock lock(first);
    EXPECT_FALSE(first.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_for(1ms));
  });
}

TEST_P(mutex_test, holders_may_park_and_exclude_each_other) {
  run([] {
    mutex lock;
    int inside = 0;
    std::int64_t total = 0;
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 8; ++i) {
      actors.push_back(spawn([&] {
        for (int n = 0; n < 200; ++n) {
          const std::lock_guard guard(lock);
          ASSERT_EQ(++inside, 1);
          ++total;
          if (n % 3 == 0) yield();
          if (n % 50 == 0) sleep_for(10us);
          ASSERT_EQ(inside--, 1);
        }
      }));
    }
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    EXPECT_EQ(total, 1'600);
  });
}

TEST_P(mutex_test, waiters_get_it_in_the_order_they_came) {
  run([] {
    mutex lock;
    std::vector<int> order;
    std::vector<join_handle<void>> actors;
    std::atomic<int> begun{0};
    {
      const std::lock_guard guard(lock);
      for (int i = 0; i < 20; ++i) {
        actors.push_back(spawn([&, i] {
          ++begun;
          const std::lock_guard own(lock);
          order.push_back(i);
        }));
        while (begun != i + 1) yield();
        sleep_for(200us);  // it parks meanwhile
      }
    }
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    // The lock was free when the first came back from its park, and so on: nobody overtook.
    for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(mutex_test, one_that_locks_in_a_loop_does_not_shut_others_out) {
  run([] {
    mutex lock;
    std::atomic<bool> done{false};
    std::atomic<int> turns{0};
    auto greedy = spawn([&] {
      while (!done) {
        const std::lock_guard guard(lock);
        ++turns;
        yield();  // holding it: the other finds it taken each time
      }
    });
    while (turns == 0) yield();
    for (int i = 0; i < 5; ++i) {
      const std::lock_guard guard(lock);
    }
    done = true;
    EXPECT_TRUE(greedy.join());
  });
}

TEST_P(mutex_test, a_deadline_gives_up) {
  run([] {
    mutex lock;
    auto holding = spawn([&] {
      const std::lock_guard guard(lock);
      sleep_for(20ms);
    });
    while (lock.try_lock()) {
      lock.unlock();
      yield();
    }
    EXPECT_FALSE(lock.try_lock_for(1ms));
    EXPECT_FALSE(lock.try_lock_until(std::chrono::steady_clock::now()));
    EXPECT_TRUE(lock.try_lock_for(1h));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_for(-1s)) << "a lock that is free is taken, deadline or not";
    lock.unlock();
    (void)holding.join();
  });
}

TEST_P(mutex_test, a_stopped_waiter_does_not_hold_it) {
  run([] {
    mutex lock;
    std::optional<join_handle<void>> waiting;
    {
      const std::lock_guard guard(lock);
      waiting = spawn([&] {
        const std::lock_guard own(lock);
        ADD_FAILURE() << "stopped before it was its turn";
      });
      for (int i = 0; i < 5; ++i) yield();
      waiting->request_stop();
      EXPECT_TRUE(waiting->join().error().is_stopped());
    }
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
  });
}

// Waiters that time out and are stopped just as the lock comes to them. Method: everybody loops
// over short waits; a killer stops one after the other and starts another in its place.
TEST_P(mutex_test, deadline_stop_and_hand_over_race) {
  const std::int64_t count = test::rounds(2'000, 100'000);
  run([count] {
    mutex lock;
    int inside = 0;
    std::atomic<bool> done{false};
    const auto work = [&](std::uint64_t salt) {
      auto rng = make_rng(salt);
      while (!done) {
        std::unique_lock<mutex> guard(lock, std::defer_lock);
        if (rng() % 2 == 0) {
          if (!guard.try_lock_for(std::chrono::microseconds(rng() % 30))) {
            yield();
            continue;
          }
        } else {
          guard.lock();
        }
        ASSERT_EQ(++inside, 1);
        // The holder's count is put right also when a stop unwinds it here.
        const std::unique_ptr<int, void (*)(int*)> leaving(&inside, [](int* in) { --*in; });
        if (rng() % 4 == 0) yield();
      }
    };
    std::vector<join_handle<void>> actors;
    for (std::uint64_t i = 0; i < 6; ++i) actors.push_back(spawn([&work, i] { work(i); }));
    auto rng = make_rng(99);
    for (std::int64_t i = 0; i < count; ++i) {
      auto& victim = actors[rng() % actors.size()];
      victim.request_stop();
      ASSERT_TRUE(victim.join().error().is_stopped());
      victim = spawn([&work, i] { work(static_cast<std::uint64_t>(i) + 1'000); });
      if (rng() % 4 == 0) yield();
    }
    done = true;
    for (auto& actor : actors) (void)actor.join();
    EXPECT_TRUE(lock.try_lock_for(10s)) << "the lock is free when all is over";
    lock.unlock();
  });
}

TEST_P(mutex_test, several_locks_many_actors_wait_for_nothing_long) {
  // No wake may get lost between locks: each wait is short when the holders are.
  run([] {
    std::array<mutex, 3> locks;
    std::vector<join_handle<void>> actors;
    for (std::uint64_t i = 0; i < 16; ++i) {
      actors.push_back(spawn([&locks, i] {
        auto rng = make_rng(i);
        for (int n = 0; n < 500; ++n) {
          mutex& lock = locks[rng() % locks.size()];
          ASSERT_TRUE(lock.try_lock_for(10s));
          if (rng() % 8 == 0) yield();
          lock.unlock();
        }
      }));
    }
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
  });
}

TEST_P(mutex_test, actors_and_threads_share_one) {
  mutex lock;
  std::int64_t total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) {
        const std::lock_guard guard(lock);
        ++total;
      }
    });
  }
  run([&] {
    std::vector<join_handle<void>> actors;
    for (int a = 0; a < 4; ++a) {
      actors.push_back(spawn([&] {
        for (int i = 0; i < 2'500; ++i) {
          const std::lock_guard guard(lock);
          ++total;
          if (i % 100 == 0) yield();
        }
      }));
    }
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
  });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(total, 20'000);
}

TEST_P(mutex_test, whoever_gets_it_last_may_destroy_it) {
  const std::int64_t count = test::rounds(3'000, 300'000);
  run([count] {
    for (std::int64_t i = 0; i < count; ++i) {
      struct shared_lock {
        mutex lock;
        int users = 3;
      };
      auto* const shared = new shared_lock;
      const auto use = [shared] {
        shared->lock.lock();
        const bool last = --shared->users == 0;
        shared->lock.unlock();
        if (last) delete shared;
      };
      auto one = spawn(use);
      auto two = spawn(use);
      use();
      (void)one.join();
      (void)two.join();
    }
  });
}

#ifdef SMARM_DEBUG
TEST_P(mutex_test, misuse_is_named_in_debug_builds) {
  run([] {
    mutex lock;
    EXPECT_THROW(lock.unlock(), misuse);
    const std::lock_guard guard(lock);
    EXPECT_THROW(lock.lock(), misuse);
    auto other = spawn([&lock] { EXPECT_THROW(lock.unlock(), misuse); });
    (void)other.join();
  });
}
#endif

TEST_P(mutex_test, guarded_gives_its_value_only_with_the_lock) {
  run([] {
    guarded<std::vector<int>> list;
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 10; ++i) actors.push_back(spawn([&list, i] { list.lock()->push_back(i); }));
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    auto held = list.lock();
    EXPECT_EQ(held->size(), 10U);
    EXPECT_FALSE(list.try_lock());
    EXPECT_FALSE(
        spawn([&list] { return list.try_lock_until(deadline(1ms)).has_value(); }).join().value());
  });
}

}  // namespace
}  // namespace smarm
