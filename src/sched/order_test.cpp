// Goal: which of several runnable actors a scheduler takes: those that have not run yet newest
// first, but none for ever before an older one, and never before one that has run. Method: one
// scheduler, so that the order is the picker's alone; actors write down when they began.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "base/clock.hpp"
#include "sched/wait.hpp"

namespace smarm {
namespace {

constexpr std::int64_t patience_ns = 20 * detail::ns_per_second;

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
  const std::int64_t until = detail::monotonic_ns() + patience_ns;
  runtime({.schedulers = 1}).run([&] {
    for (int i = 0; i < 4; ++i) spawn([&] { --old_left; }).detach();
    // Two at a time: one is run next, the other is the newest of those that have not run.
    while (old_left > 0 && detail::monotonic_ns() < until) {
      std::atomic<int> left{2};
      const detail::waker me = detail::begin_wait();
      for (int i = 0; i < 2; ++i) {
        spawn([&left, me] {
          if (--left == 0) me.wake();
        }).detach();
      }
      (void)detail::park(me, detail::wait_reason::join);
    }
    EXPECT_EQ(old_left, 0);
  });
}

}  // namespace
}  // namespace smarm
