// Goal: raw_mutex excludes, loses no wake-up, is released by an unwinding guard, and in debug
// builds catches a second one taken by the same thread. Method: threads that hammer one lock, with
// the holder made to sleep now and then so that the waiters really sleep too; a counter registered
// as the upper layer does.
#include "base/raw_mutex.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/futex.hpp"

namespace smarm::detail {
namespace {

TEST(raw_mutex, excludes_many_threads_and_loses_no_wake_up) {
  constexpr int threads = 8;
  constexpr int rounds = 20'000;
  raw_mutex mutex;
  long counter = 0;  // protected by mutex
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&] {
      atomic<std::uint32_t> nothing{0};
      for (int round = 0; round < rounds; ++round) {
        raw_guard guard(mutex);
        const long seen = counter;
        if (round % 1000 == 0) {
          // Sleep with the lock held: the others run out of spins and go to sleep as well.
          static_cast<void>(futex_wait(nothing, 0, monotonic_ns() + 50'000));
        }
        counter = seen + 1;
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  EXPECT_EQ(counter, long{threads} * rounds);
}

TEST(raw_mutex, try_lock_takes_a_free_lock_and_refuses_a_held_one) {
  raw_mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  bool second = true;
  std::thread([&] { second = mutex.try_lock(); }).join();
  EXPECT_FALSE(second);
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(raw_mutex, is_released_by_the_guard_when_an_exception_passes) {
  raw_mutex mutex;
  for (int round = 0; round < 100; ++round) {
    try {
      raw_guard guard(mutex);
      throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
      // The point is what holds after it.
    }
    ASSERT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

// In a process of its own, for the registration stays.
void arm_the_leaf_rule() {
  static const std::thread::id main_thread = std::this_thread::get_id();
  static int held_by_main = 0;
  static int held_by_other = 0;
  held_raw_mutex_count = +[]() noexcept {
    return std::this_thread::get_id() == main_thread ? &held_by_main : &held_by_other;
  };
}

void take_two() {
  arm_the_leaf_rule();
  raw_mutex first;
  raw_mutex second;
  raw_guard outer(first);
  raw_guard inner(second);
}

void try_two() {
  arm_the_leaf_rule();
  raw_mutex first;
  raw_mutex second;
  raw_guard outer(first);
  if (second.try_lock()) {
    second.unlock();
  }
}

void take_two_in_a_row_and_on_two_threads() {
  arm_the_leaf_rule();
  raw_mutex first;
  raw_mutex second;
  for (int round = 0; round < 3; ++round) {
    {
      raw_guard guard(first);
    }
    {
      raw_guard guard(second);
    }
  }
  raw_guard guard(first);
  std::thread([&] { raw_guard other(second); }).join();
}

TEST(leaf_rule, a_second_lock_of_one_thread_is_caught_in_debug_builds) {
#ifdef SMARM_DEBUG
  EXPECT_DEATH(take_two(), "broken invariant: a thread holds at most one raw_mutex .*held=1");
  EXPECT_DEATH(try_two(), "broken invariant: a thread holds at most one raw_mutex .*held=1");
#else
  take_two();  // Release builds do not count; two locks that nobody else takes are harmless.
  try_two();
#endif
}

TEST(leaf_rule, one_after_the_other_is_no_violation) {
  EXPECT_EXIT(
      {
        take_two_in_a_row_and_on_two_threads();
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace smarm::detail
