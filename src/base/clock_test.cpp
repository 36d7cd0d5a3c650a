// Goal: one monotonic clock, the same as std::chrono's, and arithmetic that saturates.
#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace smarm::detail {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TEST(monotonic_clock, shares_its_epoch_with_steady_clock_and_never_goes_back) {
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t before = steady_ns();
    const std::int64_t now = monotonic_ns();
    const std::int64_t after = steady_ns();
    ASSERT_LE(before, now);
    ASSERT_LE(now, after);
  }
}

TEST(add_saturating, adds_and_stops_at_never_and_at_the_far_past) {
  EXPECT_EQ(add_saturating(40, 2), 42);
  EXPECT_EQ(add_saturating(40, -50), -10);
  EXPECT_EQ(add_saturating(never_ns - 1, 1), never_ns);
  EXPECT_EQ(add_saturating(never_ns - 1, 2), never_ns);
  EXPECT_EQ(add_saturating(1, never_ns), never_ns);
  EXPECT_EQ(add_saturating(INT64_MIN + 1, -2), INT64_MIN);
}

}  // namespace
}  // namespace smarm::detail
