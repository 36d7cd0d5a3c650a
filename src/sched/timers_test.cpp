// Goal: the wheel fires each armed timer once, at the first look at or after its deadline and never
// before, forgets a cancelled one at once, and never says a later "earliest" than the truth.
// Method: a naive model (a multimap) beside the wheel under seeded random inserts, cancels and
// leaps of time; each timer wakes a waker of its own, whose arrival a foreign wait can tell. The
// race of cancel and fire is run on two threads.
#include "sched/timers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/seed.hpp"

namespace smarm::detail {
namespace {

using test::make_rng;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t hour = 3'600'000 * ms;

// An alarm is a timer that this thread waits for in vain or not: cancel says whether it fired.
struct alarm_clock {
  explicit alarm_clock(std::int64_t deadline_ns) : deadline(deadline_ns), node(deadline, waker{}) {}
  std::int64_t deadline;
  timer node;
};

TEST(timers, an_empty_wheel_has_no_deadline_and_fires_nothing) {
  timers wheel;
  EXPECT_EQ(wheel.earliest(), never_ns);
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_EQ(wheel.fire_due(monotonic_ns() + hour), 0U);
}

TEST(timers, a_deadline_is_kept_to_the_nanosecond) {
  timers wheel;
  const std::int64_t now = monotonic_ns();
  alarm_clock alarm(now + 123'457);
  EXPECT_TRUE(wheel.insert(alarm.node));
  EXPECT_EQ(wheel.earliest(), alarm.deadline);
  EXPECT_EQ(wheel.fire_due(alarm.deadline - 1), 0U);
  EXPECT_EQ(wheel.earliest(), alarm.deadline);
  EXPECT_EQ(wheel.fire_due(alarm.deadline), 1U);
  EXPECT_EQ(wheel.earliest(), never_ns);
  EXPECT_FALSE(wheel.cancel(alarm.node)) << "it has fired";
}

TEST(timers, deadlines_a_nanosecond_apart_fire_apart) {
  timers wheel;
  const std::int64_t base = monotonic_ns() + 5 * ms;
  std::list<alarm_clock> alarms;
  for (std::int64_t i = 0; i < 100; ++i) wheel.insert(alarms.emplace_back(base + i).node);
  for (std::int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(wheel.fire_due(base + i), 1U) << i;
  }
}

TEST(timers, a_cancelled_timer_is_gone_at_once) {
  timers wheel;
  const std::int64_t now = monotonic_ns();
  alarm_clock kept(now + hour);
  wheel.insert(kept.node);
  for (int i = 0; i < 100'000; ++i) {
    alarm_clock passing(now + 60'000 * ms + i);
    wheel.insert(passing.node);
    ASSERT_EQ(wheel.size(), 2U);
    ASSERT_TRUE(wheel.cancel(passing.node));
    ASSERT_EQ(wheel.size(), 1U);
  }
  EXPECT_LE(wheel.earliest(), kept.deadline);
  EXPECT_TRUE(wheel.cancel(kept.node));
  EXPECT_EQ(wheel.earliest(), never_ns);
}

TEST(timers, deadlines_in_the_past_fire_at_the_next_look) {
  timers wheel;
  const std::int64_t now = monotonic_ns();
  std::list<alarm_clock> alarms;
  for (const std::int64_t past : {std::int64_t{INT64_MIN}, std::int64_t{-1}, std::int64_t{0},
                                  std::int64_t{1}, now - hour, now - 1, now}) {
    wheel.insert(alarms.emplace_back(past).node);
  }
  EXPECT_LE(wheel.earliest(), now);
  EXPECT_EQ(wheel.fire_due(monotonic_ns()), alarms.size());
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(timers, the_farthest_deadlines_fit_and_fire) {
  timers wheel;
  std::list<alarm_clock> alarms;
  const std::int64_t now = monotonic_ns();
  for (const std::int64_t far :
       {now + hour, now + 24 * hour, now + 24 * 366 * 100 * hour, never_ns - 1, never_ns - hour}) {
    wheel.insert(alarms.emplace_back(far).node);
  }
  EXPECT_EQ(wheel.earliest(), now + hour);
  EXPECT_EQ(wheel.fire_due(now + hour - 1), 0U);
  EXPECT_EQ(wheel.fire_due(now + hour), 1U);
  EXPECT_EQ(wheel.fire_due(now + 24 * 366 * 100 * hour), 2U);
  EXPECT_EQ(wheel.fire_due(never_ns - 1), 2U);
}

TEST(timers, insert_says_earliest_exactly_when_the_keeper_must_be_told) {
  timers wheel;
  const std::int64_t now = monotonic_ns();
  alarm_clock late(now + hour);
  alarm_clock later(now + 2 * hour);
  alarm_clock early(now + ms);
  EXPECT_TRUE(wheel.insert(late.node));
  EXPECT_FALSE(wheel.insert(later.node));
  EXPECT_TRUE(wheel.insert(early.node));
  EXPECT_TRUE(wheel.cancel(early.node));
  EXPECT_LE(wheel.earliest(), late.deadline);
  EXPECT_EQ(wheel.fire_due(now + 2 * ms), 0U);
  EXPECT_LE(wheel.earliest(), late.deadline);
  EXPECT_GT(wheel.earliest(), now + 2 * ms) << "a look for nothing is made once";
  EXPECT_TRUE(wheel.cancel(late.node));
  EXPECT_TRUE(wheel.cancel(later.node));
}

TEST(timers, a_crowd_in_one_bucket_fires_whole_and_on_time) {
  timers wheel;
  const std::int64_t base = monotonic_ns() + 100 * ms;
  std::list<alarm_clock> alarms;
  for (int i = 0; i < 10'000; ++i) wheel.insert(alarms.emplace_back(base + i % 7).node);
  std::size_t fired = 0;
  // As the schedulers do it: look at the earliest moment, however often that takes.
  for (int looks = 0; wheel.earliest() != never_ns; ++looks) {
    ASSERT_LT(looks, 50) << "looks for nothing";
    const std::int64_t now = wheel.earliest();
    ASSERT_LE(now, base + 6);
    const std::size_t count = wheel.fire_due(now);
    if (now < base) {
      ASSERT_EQ(count, 0U);
    }
    fired += count;
  }
  EXPECT_EQ(fired, alarms.size());
}

// The model: what is armed, and nothing clever.
class model {
 public:
  // Ahead of the clock: an empty wheel starts anew at the true present, and the model's must not
  // lie before that.
  explicit model(std::uint64_t salt) : rng_(make_rng(salt)), now_(monotonic_ns() + 24 * hour) {}
  ~model() {
    for (alarm_clock* each : armed_) (void)wheel_.cancel(each->node);
  }

  void step() {
    const std::uint64_t dice = rng_() % 100;
    if (dice < 50) {
      insert();
    } else if (dice < 75) {
      cancel();
    } else {
      advance();
    }
    ASSERT_EQ(wheel_.size(), armed_.size());
    ASSERT_LE(wheel_.earliest(), first_deadline());
  }

 private:
  // A distance of any magnitude: each level of the wheel gets its share.
  std::int64_t distance() { return static_cast<std::int64_t>(rng_() >> (64 - 1 - rng_() % 55)); }
  std::int64_t first_deadline() const {
    std::int64_t first = never_ns;
    for (const alarm_clock* each : armed_) first = std::min(first, each->deadline);
    return first;
  }
  void insert() {
    const std::int64_t deadline = rng_() % 20 == 0 ? now_ - distance() : now_ + distance();
    alarms_.push_back(std::make_unique<alarm_clock>(deadline));
    armed_.push_back(alarms_.back().get());
    wheel_.insert(alarms_.back()->node);
  }
  void cancel() {
    if (armed_.empty()) return;
    const std::size_t at = rng_() % armed_.size();
    ASSERT_TRUE(wheel_.cancel(armed_[at]->node));
    armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void advance() {
    // To just before or at the first deadline, or some distance on.
    const std::int64_t first = first_deadline();
    const std::uint64_t how = rng_() % 4;
    if (how == 0 && first != never_ns && first > now_) {
      now_ = first - 1;
    } else if (how == 1 && first != never_ns && first > now_) {
      now_ = first;
    } else {
      now_ += distance() >> 8;
    }
    const auto is_due = [this](const alarm_clock* each) { return each->deadline <= now_; };
    const auto due = std::count_if(armed_.begin(), armed_.end(), is_due);
    ASSERT_EQ(wheel_.fire_due(now_), static_cast<std::size_t>(due));
    for (alarm_clock* each : armed_) {
      if (is_due(each)) {
        ASSERT_FALSE(wheel_.cancel(each->node)) << "due, yet not fired";
      }
    }
    std::erase_if(armed_, is_due);
    ASSERT_TRUE(wheel_.earliest() == never_ns || wheel_.earliest() > now_);
  }

  std::mt19937_64 rng_;
  std::int64_t now_;
  timers wheel_;
  std::vector<std::unique_ptr<alarm_clock>> alarms_;
  std::vector<alarm_clock*> armed_;
};

TEST(timers, agree_with_a_naive_model_under_random_inserts_cancels_and_leaps_of_time) {
  for (std::uint64_t salt = 0; salt < 60; ++salt) {
    SCOPED_TRACE(salt);
    model both(salt);
    for (int i = 0; i < 500; ++i) {
      both.step();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(timers, a_timer_wakes_the_waiter_it_was_made_for) {
  timers wheel;
  const waker wait = begin_wait();
  timer node(monotonic_ns() + ms, wait);
  wheel.insert(node);
  std::thread clock([&] {
    while (wheel.earliest() != never_ns) wheel.fire_due(monotonic_ns());
  });
  EXPECT_EQ(park(wait, wait_reason::sleep), wait_outcome::woken);
  clock.join();
  EXPECT_FALSE(wheel.cancel(node));
}

TEST(timers, cancel_against_fire_has_one_winner_and_the_node_may_go_at_once) {
  timers wheel;
  constexpr int rounds = 20'000;
  std::atomic<bool> over{false};
  std::atomic<std::size_t> fired{0};
  std::thread clock([&] {
    while (!over.load()) fired += wheel.fire_due(monotonic_ns());
  });
  std::size_t lost = 0;
  std::mt19937_64 rng = make_rng(7);
  for (int i = 0; i < rounds; ++i) {
    // On the heap, so that a late touch shows under AddressSanitizer.
    const auto node = std::make_unique<timer>(
        monotonic_ns() + static_cast<std::int64_t>(rng() % 3) * us, waker{});
    wheel.insert(*node);
    for (std::uint64_t spin = rng() % 200; spin > 0; --spin) pause();
    if (!wheel.cancel(*node)) ++lost;
  }
  over.store(true);
  clock.join();
  EXPECT_EQ(fired.load(), lost);
  EXPECT_EQ(wheel.size(), 0U);
}

}  // namespace
}  // namespace smarm::detail
