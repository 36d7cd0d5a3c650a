// Goal: the timer that an actor keeps for all its waits ends each of them at that wait's deadline
// and not before, wherever the wheel has it by then, and leaves the wheel with the actor.
// Method: seeded random waits against time that the test makes; then real waits of many actors,
// some of them woken, in every way of running them.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <smarm/smarm.hpp>

#include "base/clock.hpp"
#include "sched/timers.hpp"
#include "sched/wait.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t hour = 3'600'000'000'000;

using standing_timer_test = test::every_way_test;
SMARM_TEST_EVERY_WAY(standing_timer_test);

// One actor's waits, in time that the test makes: it begins one, as a rule before the last has
// ended, or time goes on.
void random_waits(std::uint64_t salt) {
  std::mt19937_64 rng = test::make_rng(salt);
  timers wheel;
  std::int64_t now = monotonic_ns() + hour;  // ahead of the clock, which the wheel knows
  standing_timer node(begin_wait());
  waker wait;
  std::int64_t deadline = never_ns;  // of the wait that has not ended
  for (int step = 0; step < 2'000; ++step) {
    if (rng() % 3 == 0) {
      wait = begin_wait();
      deadline = now + static_cast<std::int64_t>(rng() % 100) * (rng() % 2 == 0 ? 1 : 40 * us);
      static_cast<void>(wheel.want(node, wait, deadline));
      ASSERT_FALSE(node.has_fired(wait));
      ASSERT_LE(wheel.earliest(), deadline);
      continue;
    }
    now += static_cast<std::int64_t>(rng() % 60) * (rng() % 2 == 0 ? 1 : 20 * us);
    wheel.fire_due(now);
    ASSERT_TRUE(wheel.earliest() == never_ns || wheel.earliest() > now);
    if (deadline == never_ns) continue;
    ASSERT_EQ(node.has_fired(wait), deadline <= now) << "at step " << step;
    if (deadline <= now) deadline = never_ns;
  }
  wheel.retire(node);
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_P(standing_timer_test, ends_each_of_many_random_waits_at_its_deadline_and_not_before) {
  run([] {
    for (std::uint64_t salt = 0; salt < 100 && !::testing::Test::HasFatalFailure(); ++salt) {
      SCOPED_TRACE(salt);
      random_waits(salt);
    }
  });
}

TEST_P(standing_timer_test, waits_that_are_woken_arm_one_timer_an_actor) {
  runtime here(make_config());
  here.run([&] {
    for (int i = 0; i < 1'000; ++i) {
      const waker wait = begin_wait();
      wait.wake();
      ASSERT_EQ(park(wait, wait_reason::sleep, deadline(1h)), wait_outcome::woken);
    }
    EXPECT_EQ(here.counts().timers, 1U);
  });
  test::expect_nothing_left(here);
}

// A relay of waits: each actor wakes the next one or leaves it to its deadline, by chance.
TEST_P(standing_timer_test, tells_waits_that_are_woken_from_those_that_time_out) {
  run([] {
    constexpr int actors = 50;
    std::vector<join_handle<void>> all;
    for (int i = 0; i < actors; ++i) {
      all.push_back(spawn([i] {
        std::mt19937_64 rng = test::make_rng(static_cast<std::uint64_t>(i));
        for (int round = 0; round < test::scaled(200); ++round) {
          const waker wait = begin_wait();
          const bool woken = rng() % 2 == 0;
          const deadline until(woken ? std::chrono::nanoseconds(1h)
                                     : std::chrono::nanoseconds(rng() % 300 * us));
          auto waking = spawn([=] {
            if (woken) wait.wake();
          });
          const wait_outcome outcome = park(wait, wait_reason::sleep, until);
          ASSERT_EQ(outcome, woken ? wait_outcome::woken : wait_outcome::timed_out);
          ASSERT_TRUE(woken || until.has_passed()) << "before its time";
          ASSERT_TRUE(waking.join().has_value());
        }
      }));
    }
    for (auto& each : all) ASSERT_TRUE(each.join().has_value());
  });
}

}  // namespace
}  // namespace smarm::detail
