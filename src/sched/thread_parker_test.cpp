// Goal: a foreign thread's wait ends by its own wake or deadline and by no other, and the parker of
// a thread that has ended bears late wakes and is used again. Method: each order of wake and park
// by hand, then threads that come and go while a waker with old epochs hammers their parkers.
#include "sched/thread_parker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <smarm/this_actor.hpp>

#include "base/clock.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {
namespace {

constexpr std::int64_t ms = 1'000'000;

TEST(thread_parker, belongs_to_its_thread) {
  thread_parker* const mine = &thread_parker::of_this_thread();
  EXPECT_EQ(mine, &thread_parker::of_this_thread());
  thread_parker* others = nullptr;
  std::thread([&] { others = &thread_parker::of_this_thread(); }).join();
  EXPECT_NE(others, mine);
}

TEST(thread_parker, a_wake_before_the_park_is_kept_and_a_stale_one_is_not) {
  thread_parker& mine = thread_parker::of_this_thread();
  const std::uint32_t first = mine.begin_wait();
  mine.wake(first);
  EXPECT_TRUE(mine.park(first, never_ns));
  const std::uint32_t second = mine.begin_wait();
  EXPECT_NE(first, second);
  mine.wake(first);
  EXPECT_FALSE(mine.park(second, monotonic_ns() + 2 * ms)) << "woken by the wake of another wait";
  mine.wake(second);
  EXPECT_TRUE(mine.park(second, 0)) << "a wake that came at the deadline is seen";
}

TEST(thread_parker, waits_until_the_deadline_and_not_less) {
  thread_parker& mine = thread_parker::of_this_thread();
  const std::uint32_t epoch = mine.begin_wait();
  const std::int64_t until = monotonic_ns() + 3 * ms;
  EXPECT_FALSE(mine.park(epoch, until));
  EXPECT_GE(monotonic_ns(), until);
}

TEST(thread_parker, the_general_wait_works_on_a_foreign_thread) {
  const waker wait = begin_wait();
  std::thread other([&] { wait.wake(); });
  EXPECT_EQ(park(wait, wait_reason::none), wait_outcome::woken);
  other.join();
  wait.wake();
  wait.wake_last();
  const waker next = begin_wait();
  EXPECT_EQ(park(next, wait_reason::none, deadline(std::chrono::milliseconds(1))),
            wait_outcome::timed_out);
  const waker last = begin_wait();
  last.wake_last();
  EXPECT_EQ(park_through_stop(last, wait_reason::none), wait_outcome::woken);
}

TEST(thread_parker, an_empty_waker_wakes_nobody) {
  const waker nobody;
  EXPECT_FALSE(nobody);
  nobody.wake();
  nobody.wake_last();
}

TEST(thread_parker, a_foreign_thread_sleeps_as_a_thread) {
  const std::int64_t until = monotonic_ns() + 2 * ms;
  sleep_until(deadline::from_ns(until));
  EXPECT_GE(monotonic_ns(), until);
  sleep_for(std::chrono::hours(-1));
  yield();
  check();
  EXPECT_FALSE(stop_requested());
}

TEST(thread_parker, threads_that_come_and_go_share_few_parkers_and_late_wakes_hurt_none) {
  std::set<thread_parker*> seen;
  std::vector<waker> old;
  for (int i = 0; i < 200; ++i) {
    std::thread([&] {
      seen.insert(&thread_parker::of_this_thread());
      const waker wait = begin_wait();
      for (const waker& late : old) late.wake();
      EXPECT_EQ(park(wait, wait_reason::none, deadline::from_ns(1)), wait_outcome::timed_out);
      old.push_back(wait);
    }).join();
  }
  EXPECT_LE(seen.size(), 2U) << "parkers of ended threads are used again";
}

TEST(thread_parker, two_threads_hand_a_turn_to_each_other_without_losing_it) {
  constexpr int rounds = 10'000;
  std::atomic<bool> ours{true};
  std::mutex lock;
  waker left;  // guarded by lock, as is right
  waker right;
  const auto play = [&](waker& mine, waker& other, bool my_turn) {
    for (int i = 0; i < rounds; ++i) {
      for (;;) {
        const waker wait = begin_wait();
        {
          const std::scoped_lock guard(lock);
          mine = wait;
        }
        if (ours.load() == my_turn) break;
        EXPECT_EQ(park(wait, wait_reason::none), wait_outcome::woken);
      }
      ours.store(!my_turn);
      waker target;
      {
        const std::scoped_lock guard(lock);
        target = other;
      }
      target.wake();
    }
  };
  std::thread partner([&] { play(right, left, false); });
  play(left, right, true);
  partner.join();
}

}  // namespace
}  // namespace smarm::detail
