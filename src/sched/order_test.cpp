// Goal: which of several runnable actors a scheduler takes: those that have not run yet newest
// first, but none for ever before an older one or one that has run. Method: one scheduler, so that
// the order is the picker's alone; actors write down when they began.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "base/clock.hpp"
#include "sched/wait.hpp"

namespace smarm {
namespace {

constexpr std::int64_t patience_ns = 5 * detail::ns_per_second;

// Spawns two and waits for the later one's wake, over and over until `done`, so that there is
// always one that has not run: one is run next, the other is the newest. How often it did.
template <class Done>
int spawn_pairs_until(Done done) {
  int pairs = 0;
  const std::int64_t until = detail::monotonic_ns() + patience_ns;
  for (; !done() && detail::monotonic_ns() < until; ++pairs) {
    std::atomic<int> left{2};
    const detail::waker me = detail::begin_wait();
    for (int i = 0; i < 2; ++i) {
      spawn([&left, me] {
        if (--left == 0) me.wake();
      }).detach();
    }
    (void)detail::park(me, detail::wait_reason::join);
  }
  return pairs;
}

TEST(order_test, who_has_not_run_yet_starts_newest_first) {
  std::string order;
  runtime({.schedulers = 1}).run([&] {
    std::vector<join_handle<void>> all;
    for (const char name : {'a', 'b', 'c', 'd'}) {
      all.push_back(spawn([&order, name] { order += name; }));
    }
    for (auto& each : all) EXPECT_TRUE(each.join().has_value());
  });
  EXPECT_EQ(order, "dcba");
}

TEST(order_test, who_has_run_comes_behind_who_is_older_and_has_not) {
  std::string order;
  runtime({.schedulers = 1}).run([&] {
    std::vector<join_handle<void>> all;
    for (const char name : {'a', 'b', 'c'}) {
      all.push_back(spawn([&order, name] {
        order += name;
        yield();
        order += name;
      }));
    }
    for (auto& each : all) EXPECT_TRUE(each.join().has_value());
  });
  // Who yields picks before it is put back, so b is still the newest when c does. From there on c
  // and then b wait behind a, and it is first come, first served.
  EXPECT_EQ(order, "cbacba");
}

// A tree of 8 x 8 x 8: run level by level, all of its 73 inner actors live at once.
TEST(order_test, a_tree_of_actors_is_run_depth_first_so_that_few_live_at_once) {
  struct tree {
    int live = 0;
    int most = 0;

    void node(int depth) {
      most = std::max(most, ++live);
      std::atomic<int> left{8};
      const detail::waker parent = detail::begin_wait();
      for (int i = 0; i < 8; ++i) {
        spawn([this, depth, &left, parent] {
          if (depth > 1) node(depth - 1);
          if (--left == 0) parent.wake();
        }).detach();
      }
      (void)detail::park(parent, detail::wait_reason::join);
      --live;
    }
  } here;
  runtime({.schedulers = 1}).run([&] { here.node(3); });
  EXPECT_LE(here.most, 50) << "the clock may let some begin early on a slow machine";
  EXPECT_GE(here.most, 3);
}

TEST(order_test, the_oldest_runs_although_newer_ones_come_without_end) {
  std::atomic<int> old_left{4};
  runtime({.schedulers = 1}).run([&] {
    for (int i = 0; i < 4; ++i) spawn([&] { --old_left; }).detach();
    (void)spawn_pairs_until([&] { return old_left == 0; });
    EXPECT_EQ(old_left, 0);
  });
}

TEST(order_test, who_has_run_has_its_turn_among_the_newest_and_no_later_than_so_many_picks) {
  runtime({.schedulers = 1}).run([&] {
    std::atomic<int> turns{0};
    auto old = spawn([&] {
      while (turns < 20) {
        ++turns;
        yield();
      }
    });
    const int pairs = spawn_pairs_until([&] { return turns == 20; });
    EXPECT_EQ(turns, 20);
    // A pair is one pick of the newest or two, each 64th looks at those who have run, and each
    // second of these looks below the newest.
    EXPECT_LT(pairs, 20 * 64 * 2 + 200);
    EXPECT_TRUE(old.join().has_value());
  });
}

// In either phase of the picks: who counts them together with the program's own period would
// never come to one of the places.
TEST(order_test, who_comes_from_outside_has_its_turn_among_the_newest) {
  for (const int picks_before : {0, 1}) {
    runtime one({.schedulers = 1});
    one.run([&] {
      for (int i = 0; i < picks_before; ++i) yield();
      std::atomic<int> left{5};
      std::thread([&] {
        for (int i = 0; i < 5; ++i) one.spawn([&left] { --left; }).detach();
      }).join();
      const int pairs = spawn_pairs_until([&] { return left == 0; });
      EXPECT_EQ(left, 0);
      EXPECT_LT(pairs, 5 * 64 * 2 + 200);
    });
  }
}

}  // namespace
}  // namespace smarm
