// The rule of OTP's supervisors for how many restarts are too many, at its boundaries; and the time
// for which a restart is held back.
#include "actor/restart_intensity.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include <smarm/supervisor.hpp>

#include "actor/restart_delay.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using detail::restart_delay;
using detail::restart_intensity;

TEST(restart_intensity_test, supervisor_intensity_none_allows_no_restart) {
  restart_intensity none(0, 5);
  EXPECT_FALSE(none.add(100));
}

TEST(restart_intensity_test, supervisor_intensity_allows_as_many_as_it_says) {
  restart_intensity two(2, 5);
  EXPECT_TRUE(two.add(100));
  EXPECT_TRUE(two.add(100));
  EXPECT_FALSE(two.add(100));
}

TEST(restart_intensity_test, supervisor_intensity_boundary_of_the_period_counts) {
  restart_intensity at_boundary(1, 5);
  EXPECT_TRUE(at_boundary.add(100));
  EXPECT_FALSE(at_boundary.add(105));
  restart_intensity beyond(1, 5);
  EXPECT_TRUE(beyond.add(100));
  EXPECT_TRUE(beyond.add(106));
}

TEST(restart_intensity_test, supervisor_intensity_forgets_only_what_is_old) {
  restart_intensity two(2, 5);
  EXPECT_TRUE(two.add(100));
  EXPECT_TRUE(two.add(104));
  EXPECT_TRUE(two.add(106));   // 100 is forgotten
  EXPECT_FALSE(two.add(109));  // 104 is not
}

TEST(restart_intensity_test, supervisor_intensity_tells_how_many_count) {
  restart_intensity many(10, 5);
  (void)many.add(100);
  (void)many.add(103);
  EXPECT_EQ(many.recent(105), 2U);
  EXPECT_EQ(many.recent(106), 1U);
  EXPECT_EQ(many.recent(200), 0U);
}

TEST(restart_delay_test, supervisor_backoff_is_off_by_default) {
  EXPECT_EQ(restart_delay({}, 1, 0), 0ns);
  EXPECT_EQ(restart_delay({}, 1'000'000, 1), 0ns);
}

TEST(restart_delay_test, supervisor_backoff_grows_by_the_factor_up_to_the_maximum) {
  const restart_backoff how{.initial = 100ms, .maximum = 1s, .factor = 3, .jitter = 0};
  EXPECT_EQ(restart_delay(how, 1, 0), 100ms);
  EXPECT_EQ(restart_delay(how, 2, 0), 300ms);
  EXPECT_EQ(restart_delay(how, 3, 0), 900ms);
  EXPECT_EQ(restart_delay(how, 4, 0), 1s);
  EXPECT_EQ(restart_delay(how, 1'000'000, 0), 1s);
}

TEST(restart_delay_test, supervisor_backoff_jitter_only_shortens) {
  const restart_backoff how{.initial = 100ms, .maximum = 1s, .factor = 2, .jitter = 0.5};
  EXPECT_EQ(restart_delay(how, 1, 0), 100ms);
  EXPECT_EQ(restart_delay(how, 1, 1), 50ms);
  const restart_backoff too_much{.initial = 100ms, .maximum = 1s, .factor = 2, .jitter = 7};
  EXPECT_EQ(restart_delay(too_much, 1, 1), 0ns);
}

TEST(restart_delay_test, supervisor_backoff_factor_below_one_does_not_shrink) {
  const restart_backoff how{.initial = 100ms, .maximum = 1s, .factor = 0.1, .jitter = 0};
  EXPECT_EQ(restart_delay(how, 9, 0), 100ms);
}

TEST(restart_delay_test, supervisor_backoff_begins_again_after_a_long_run) {
  const restart_backoff how{.initial = 100ms, .maximum = 1s};
  EXPECT_EQ(detail::attempts_after(how, 3, 1s), 3U);
  EXPECT_EQ(detail::attempts_after(how, 3, 1s + 1ns), 0U);
}

}  // namespace
}  // namespace smarm
