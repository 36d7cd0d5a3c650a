// Goal: one wake wakes exactly one scheduler, none is ever lost, the roles of keeper and watcher
// are held by at most one and never lost, and all of it with more schedulers than a word has bits.
// Method: fake schedulers, which are threads that follow the protocol of picker::sleep with a
// counter for a queue; a lost wake shows as a hang.
#include "sched/coordinator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/seed.hpp"

namespace smarm::detail {
namespace {

using test::make_rng;

constexpr std::int64_t ms = 1'000'000;

// sleepers is a number of threads that park once each and say that they were woken.
class sleepers {
 public:
  explicit sleepers(unsigned count) : coordinator_(count, count), woken_(count) {
    for (unsigned i = 0; i < count; ++i) park_again(i);
    await_all_parked();
  }
  ~sleepers() {
    coordinator_.wake_all();
    for (std::thread& each : threads_) each.join();
  }

  coordinator& operator*() noexcept { return coordinator_; }
  coordinator* operator->() noexcept { return &coordinator_; }

  void await_all_parked() const {
    // By the bits: the census counts a scheduler a moment before it can be woken.
    for (unsigned i = 0; i < woken_.size(); ++i) {
      while (!coordinator_.is_parked(i)) std::this_thread::yield();
    }
  }
  // await_woken waits until so many have been woken.
  void await_woken(int count) const {
    while (total_.load() < count) std::this_thread::yield();
  }
  [[nodiscard]] int total() const { return total_.load(); }
  [[nodiscard]] int woken(unsigned index) const { return woken_[index].load(); }

 private:
  void park_again(unsigned index) {
    threads_.emplace_back([this, index] {
      coordinator_.prepare_park(index, false);
      coordinator_.park(index, never_ns);
      ++woken_[index];
      ++total_;
    });
  }

  coordinator coordinator_;
  std::vector<std::atomic<int>> woken_;
  std::atomic<int> total_{0};
  std::vector<std::thread> threads_;
};

void expect_nobody_else_wakes(const sleepers& all, int woken) {
  // What must not happen cannot be waited for: it gets a while to.
  parker nobody;
  EXPECT_FALSE(nobody.park(monotonic_ns() + 5 * ms));
  EXPECT_EQ(all.total(), woken);
}

TEST(coordinator, a_wake_with_nobody_parked_wakes_nobody) {
  coordinator alone(4, 4);
  EXPECT_FALSE(alone.any_parked());
  EXPECT_FALSE(alone.wake_one());
  alone.wake_one_if_idle();
  alone.wake_all();
  EXPECT_EQ(alone.wakes(), 0U);
}

TEST(coordinator, one_wake_wakes_exactly_one_the_highest) {
  sleepers all(4);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(all->wake_one());
    all.await_woken(i);
    EXPECT_EQ(all.woken(static_cast<unsigned>(4 - i)), 1);
  }
  expect_nobody_else_wakes(all, 3);
  EXPECT_EQ(all->wakes(), 3U);
}

TEST(coordinator, a_hundred_and_thirty_schedulers_are_woken_one_by_one) {
  constexpr unsigned count = 130;
  sleepers all(count);
  for (unsigned i = 1; i <= count; ++i) {
    ASSERT_TRUE(all->wake_one());
    all.await_woken(static_cast<int>(i));
    ASSERT_EQ(all.woken(count - i), 1);
  }
  EXPECT_FALSE(all->wake_one());
  EXPECT_FALSE(all->any_parked());
}

TEST(coordinator, wake_all_wakes_a_hundred_and_thirty) {
  constexpr unsigned count = 130;
  sleepers all(count);
  all->wake_all();
  all.await_woken(count);
  for (unsigned i = 0; i < count; ++i) {
    EXPECT_EQ(all.woken(i), 1);
  }
}

TEST(coordinator, many_who_wake_at_once_wake_as_many_as_they_are) {
  constexpr unsigned count = 70;
  constexpr int wakers = 4;
  constexpr int each_wakes = 10;
  sleepers all(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < wakers; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < each_wakes; ++j) {
        EXPECT_TRUE(all->wake_one());
      }
    });
  }
  for (std::thread& each : threads) each.join();
  all.await_woken(wakers * each_wakes);
  expect_nobody_else_wakes(all, wakers * each_wakes);
}

TEST(coordinator, while_one_searches_a_producer_wakes_no_second) {
  sleepers all(3);
  all->wake_one_if_idle();
  all.await_woken(1);  // it searches until it says otherwise
  for (int i = 0; i < 10; ++i) all->wake_one_if_idle();
  expect_nobody_else_wakes(all, 1);
  all->end_search([] { return false; });
  all->wake_one_if_idle();
  all.await_woken(2);
}

TEST(coordinator, the_last_searcher_that_finds_work_and_more_wakes_another) {
  sleepers all(3);
  all->wake_one_if_idle();
  all.await_woken(1);
  all->end_search([] { return true; });
  all.await_woken(2);
  expect_nobody_else_wakes(all, 2);
}

TEST(coordinator, a_park_that_was_taken_back_leaves_nothing_behind) {
  coordinator one(2, 2);
  bool searching = false;
  for (int i = 0; i < 3; ++i) {
    one.prepare_park(0, searching);
    EXPECT_TRUE(one.any_parked());
    one.cancel_park(0);
    searching = true;
    EXPECT_FALSE(one.any_parked());
  }
  // A wake that came before the taking back is swallowed with it.
  one.prepare_park(0, true);
  EXPECT_TRUE(one.wake_one());
  one.cancel_park(0);
  one.prepare_park(0, true);
  EXPECT_FALSE(one.park(0, monotonic_ns() + ms)) << "an old permit cut the park short";
}

TEST(coordinator, a_park_ends_at_its_deadline) {
  coordinator one(1, 1);
  one.prepare_park(0, false);
  const std::int64_t until = monotonic_ns() + 2 * ms;
  EXPECT_FALSE(one.park(0, until));
  EXPECT_GE(monotonic_ns(), until);
  EXPECT_FALSE(one.any_parked());
}

TEST(coordinator_death_test, a_scheduler_parks_once_at_a_time) {
  coordinator one(1, 1);
  one.prepare_park(0, false);
  EXPECT_DEATH(one.prepare_park(0, false), "a scheduler parks once at a time");
}

// ---- keeper and watcher ------------------------------------------------------------------------

TEST(coordinator_keeper, one_is_enough_for_a_deadline_and_an_earlier_one_takes_the_role) {
  coordinator all(4, 4);
  EXPECT_TRUE(all.take_keeper(1, 1000));
  EXPECT_TRUE(all.take_keeper(1, 1000)) << "it may ask again";
  EXPECT_FALSE(all.take_keeper(2, 1000));
  EXPECT_FALSE(all.take_keeper(2, 1001));
  EXPECT_TRUE(all.take_keeper(3, 999));
  EXPECT_FALSE(all.take_keeper(1, 999));
  all.leave_keeper(1);
  EXPECT_FALSE(all.take_keeper(2, 5000)) << "who has lost the role cannot give it up";
  all.leave_keeper(3);
  EXPECT_TRUE(all.take_keeper(2, 5000));
}

TEST(coordinator_keeper, rearm_wakes_the_keeper_for_an_earlier_deadline_only) {
  sleepers all(3);
  ASSERT_TRUE(all->take_keeper(1, 1000));
  all->rearm(1000);
  all->rearm(2000);
  expect_nobody_else_wakes(all, 0);
  all->rearm(999);
  all.await_woken(1);
  EXPECT_EQ(all.woken(1), 1);
}

TEST(coordinator_keeper, rearm_without_a_keeper_wakes_somebody_to_be_it) {
  sleepers all(3);
  all->rearm(1000);
  all.await_woken(1);
  expect_nobody_else_wakes(all, 1);
}

TEST(coordinator_keeper,
     wake_one_takes_those_without_a_role_first_then_the_watcher_then_the_keeper) {
  sleepers all(4);
  ASSERT_TRUE(all->take_keeper(3, 1000));
  ASSERT_TRUE(all->take_watcher(2));
  const unsigned order[] = {1, 0, 2, 3};
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(all->wake_one());
    all.await_woken(i + 1);
    ASSERT_EQ(all.woken(order[i]), 1) << i;
  }
}

TEST(coordinator_watcher, there_is_one_at_a_time) {
  coordinator all(3, 3);
  EXPECT_TRUE(all.take_watcher(1));
  EXPECT_TRUE(all.take_watcher(1));
  EXPECT_FALSE(all.take_watcher(2));
  all.leave_watcher(2);
  EXPECT_FALSE(all.take_watcher(0)) << "only the watcher leaves the role";
  all.leave_watcher(1);
  EXPECT_TRUE(all.take_watcher(2));
}

TEST(coordinator_watcher, is_called_for_when_a_run_next_is_filled_and_nobody_watches) {
  sleepers all(3);
  ASSERT_TRUE(all->take_watcher(0));
  all->ensure_watcher();
  expect_nobody_else_wakes(all, 0);
  all->leave_watcher(0);
  all->ensure_watcher();
  all.await_woken(1);
  all->ensure_watcher();  // the first one still searches and will take the role
  expect_nobody_else_wakes(all, 1);
}

TEST(coordinator_watcher, who_retires_leaves_the_role_to_whoever_is_called_for) {
  sleepers all(3);
  ASSERT_TRUE(all->take_watcher(0));
  EXPECT_TRUE(all->retire_watcher(1));
  all->ensure_watcher();
  expect_nobody_else_wakes(all, 0);
  EXPECT_TRUE(all->retire_watcher(0));
  all->ensure_watcher();
  all.await_woken(1);
}

TEST(coordinator_watcher, who_leaves_its_sleep_hands_the_open_roles_on) {
  sleepers all(3);
  ASSERT_TRUE(all->wake_one());
  all.await_woken(1);
  all->hand_on(2, true);
  expect_nobody_else_wakes(all, 1);  // it still counts as searching: it will look itself
  all->end_search([] { return false; });
  all->hand_on(2, true);
  all.await_woken(2);
  expect_nobody_else_wakes(all, 2);
}

// ---- fake schedulers ---------------------------------------------------------------------------

// crew runs fake schedulers over a counter of work and one deadline, as picker::sleep does it.
class crew {
 public:
  explicit crew(unsigned count, unsigned cpus) : coordinator_(count, cpus) {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~crew() {
    over_.store(true);
    coordinator_.wake_all();
    for (std::thread& each : threads_) each.join();
  }

  void publish() {
    work_.fetch_add(1, relaxed);  // relaxed: wake_one_if_idle fences
    coordinator_.wake_one_if_idle();
  }
  // arm sets the one deadline, which must be served next.
  void arm(std::int64_t deadline_ns) {
    earliest_.store(deadline_ns, relaxed);  // relaxed: rearm fences
    coordinator_.rearm(deadline_ns);
  }
  [[nodiscard]] std::int64_t done() const { return done_.load(); }
  [[nodiscard]] std::int64_t served_at() const { return served_at_.load(); }
  [[nodiscard]] int timeouts() const { return timeouts_.load(); }
  coordinator* operator->() noexcept { return &coordinator_; }

 private:
  bool take_work() {
    std::int64_t left = work_.load(relaxed);  // relaxed: the exchange validates it
    while (left > 0) {
      if (work_.compare_exchange_weak(left, left - 1, acq_rel, relaxed)) return true;
    }
    return false;
  }
  void look_at_deadline() {
    std::int64_t due = earliest_.load(relaxed);  // relaxed: as the schedulers read it
    const std::int64_t now = monotonic_ns();
    if (due <= now && earliest_.compare_exchange_strong(due, never_ns, acq_rel, relaxed)) {
      served_at_.store(now);
    }
  }
  void work(unsigned self) {
    bool searching = false;
    while (!over_.load(relaxed)) {
      look_at_deadline();
      if (take_work()) {
        if (searching) {
          searching = false;
          coordinator_.end_search([this] { return work_.load(relaxed) > 0; });
          coordinator_.hand_on(self, earliest_.load(relaxed) != never_ns);
        }
        ++done_;
        continue;
      }
      coordinator_.prepare_park(self, searching);
      searching = true;
      if (work_.load(relaxed) > 0 || over_.load(relaxed)) {
        coordinator_.cancel_park(self);
        continue;
      }
      sleep(self);
    }
  }
  void sleep(unsigned self) {
    std::int64_t until = never_ns;
    for (;;) {
      const std::int64_t due = earliest_.load(relaxed);
      if (due == never_ns || !coordinator_.take_keeper(self, due)) break;
      until = due;
      if (earliest_.load(relaxed) >= due) break;
    }
    if (!coordinator_.park(self, until)) ++timeouts_;
    coordinator_.leave_keeper(self);
  }

  coordinator coordinator_;
  atomic<std::int64_t> work_{0};
  atomic<std::int64_t> earliest_{never_ns};
  atomic<bool> over_{false};
  std::atomic<std::int64_t> done_{0};
  std::atomic<std::int64_t> served_at_{0};
  std::atomic<int> timeouts_{0};
  std::vector<std::thread> threads_;
};

class coordinator_stress : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(schedulers, coordinator_stress, ::testing::Values(1U, 2U, 5U, 70U));

TEST_P(coordinator_stress, no_wake_is_lost_when_work_comes_one_at_a_time) {
  crew all(GetParam(), GetParam());
  for (std::int64_t i = 1; i <= 3'000; ++i) {
    all.publish();
    while (all.done() < i) std::this_thread::yield();
  }
}

TEST_P(coordinator_stress, no_wake_is_lost_when_two_producers_meet_schedulers_that_fall_asleep) {
  crew all(GetParam(), GetParam());
  constexpr int bursts = 400;
  constexpr int producers = 2;
  std::atomic<std::int64_t> published{0};
  std::vector<std::thread> threads;
  for (std::uint64_t me = 0; me < producers; ++me) {
    threads.emplace_back([&, me] {
      std::mt19937_64 rng = make_rng(me);
      for (int i = 0; i < bursts; ++i) {
        for (std::uint64_t burst = rng() % 8; burst-- > 0;) {
          ++published;
          all.publish();
        }
        const std::int64_t until = monotonic_ns() + static_cast<std::int64_t>(rng() % 60'000);
        while (monotonic_ns() < until) pause();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  while (all.done() < published.load()) std::this_thread::yield();
  EXPECT_EQ(all.done(), published.load());
}

TEST_P(coordinator_stress, a_deadline_is_served_whatever_the_keeper_is_called_away_for) {
  crew all(GetParam(), GetParam());
  std::mt19937_64 rng = make_rng(99);
  std::int64_t published = 0;
  for (int i = 0; i < 150; ++i) {
    // A far one first, then an earlier one: the keeper has to be told.
    all.arm(monotonic_ns() + 3'600'000 * ms);
    for (std::uint64_t burst = rng() % 4; burst-- > 0; ++published) all.publish();
    const std::int64_t due = monotonic_ns() + static_cast<std::int64_t>(rng() % 500'000);
    all.arm(due);
    for (std::uint64_t burst = rng() % 4; burst-- > 0; ++published) all.publish();
    while (all.served_at() < due) std::this_thread::yield();
    while (all.done() < published) std::this_thread::yield();
  }
}

TEST(coordinator_keeper, an_expiry_wakes_one_scheduler_and_not_the_herd) {
  crew all(8, 8);
  while (!all->all_parked()) std::this_thread::yield();
  const std::int64_t due = monotonic_ns() + 5 * ms;
  all.arm(due);
  while (all.served_at() < due) std::this_thread::yield();
  while (!all->all_parked()) std::this_thread::yield();
  EXPECT_LE(all.timeouts(), 1);
  EXPECT_LE(all->wakes(), 2U) << "one to become the keeper, at the most one to hand on to";
}

}  // namespace
}  // namespace smarm::detail
