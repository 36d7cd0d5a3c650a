// actors_test is the fixture of everything that runs actors: each test runs with 1, 2 and 8
// schedulers, and fails on anything it leaves behind.
//
//   using channel_test = smarm::test::actors_test;
//   SMARM_TEST_AT_1_2_8(channel_test);
//   TEST_P(channel_test, values_arrive_in_the_order_they_were_sent) {
//     run([] { ... });  // the root actor
//   }
//
// Checked after each run: no actor, stack, timer, fd waiter or operation of a driver is left.
// Checked after each test: no more descriptors and allocations than before it, give or take what
// the library and the system set up once and keep.
//
// All inline, so that the test programs of the lower layers need not link what they do not test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include <smarm/config.hpp>
#include <smarm/runtime.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/resources.hpp"

namespace smarm::test {

// soaking tells whether this is the long run: `./dev soak` sets SMARM_SOAK.
[[nodiscard]] inline bool soaking() {
  static const bool value = std::getenv("SMARM_SOAK") != nullptr;
  return value;
}

// rounds returns how often to do something: the short count in the suite, the long one in a soak.
[[nodiscard]] inline std::int64_t rounds(std::int64_t in_suite, std::int64_t in_soak) {
  return soaking() ? in_soak : in_suite;
}

// expect_nothing_left fails the test where a runtime that has run still holds something.
inline void expect_nothing_left(const runtime& ran) {
  const runtime_counts left = ran.counts();
  EXPECT_EQ(left.actors, 0U) << "actors left behind";
  EXPECT_EQ(left.stacks_in_use, 0U) << "stacks left in use";
  EXPECT_EQ(left.timers, 0U) << "timers left armed";
  EXPECT_EQ(left.fd_waiters, 0U) << "fd waiters left";
  EXPECT_EQ(left.io_outstanding, 0U) << "operations left with a driver";
}

class actors_test : public ::testing::TestWithParam<unsigned> {
 protected:
  // How many blocks the library may set up once, in whichever test comes first, and keep. A leak of
  // a message, actor or wait shows by the thousand.
  static constexpr std::int64_t kept_allocations_max = 64;

  void SetUp() override {
    warm_up();
    descriptors_before_ = open_descriptors();
    allocations_before_ = live_allocations();
  }

  void TearDown() override {
    EXPECT_LE(open_descriptors(), descriptors_before_) << "file descriptors left open";
    EXPECT_LE(live_allocations(), allocations_before_ + kept_allocations_max)
        << "allocations left behind";
  }

  [[nodiscard]] static unsigned schedulers() { return GetParam(); }

  [[nodiscard]] static config make_config() {
    config how;
    how.schedulers = schedulers();
    return how;
  }

  // run runs root in a runtime of its own and returns what it returned.
  template <class F>
  static decltype(auto) run(F&& root) {
    return run(make_config(), std::forward<F>(root));
  }
  template <class F>
  static decltype(auto) run(const config& how, F&& root) {
    runtime ours(how);
    const struct check {
      const runtime& ran;
      ~check() { expect_nothing_left(ran); }
    } check_at_end{ours};
    return ours.run(std::forward<F>(root));
  }

 private:
  // What is made on first use is made before anything is counted.
  static void warm_up() {
    static const bool done = [] {
      config how;
      how.schedulers = 8;
      smarm::run(how, [] { sleep_for(std::chrono::nanoseconds(1)); });
      return true;
    }();
    (void)done;
  }

  std::size_t descriptors_before_ = 0;
  std::int64_t allocations_before_ = 0;
};

// schedulers_name names the instance of a test in reports.
inline std::string schedulers_name(const ::testing::TestParamInfo<unsigned>& info) {
  return "on_" + std::to_string(info.param) + (info.param == 1 ? "_scheduler" : "_schedulers");
}

}  // namespace smarm::test

// SMARM_TEST_AT_1_2_8(fixture) instantiates the tests of a fixture for each number of schedulers.
#define SMARM_TEST_AT_1_2_8(fixture)                                           \
  INSTANTIATE_TEST_SUITE_P(schedulers, fixture, ::testing::Values(1U, 2U, 8U), \
                           ::smarm::test::schedulers_name)
