// Goal: a broken invariant ends the process with one line that names the invariant, the condition,
// the place, the values and who was running; a sound one costs nothing visible.
// Method: death tests that match the line.
#include "base/assert.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace smarm::detail {
namespace {

enum class phase : unsigned char { first, second };

void fail_with_values(int count, const void* pointer) {
  const bool flag = true;
  const phase now = phase::second;
  const std::string name = "worker";
  const unsigned long large = ~0UL;
  SMARM_ASSERT(count == 1, "there is one of each", count, flag, now, name, large, pointer);
}

TEST(assert_line, names_invariant_condition_place_and_each_value) {
  EXPECT_DEATH(fail_with_values(-3, nullptr),
               "smarm: broken invariant: there is one of each \\[count == 1\\] at "
               "base/assert_test\\.cpp:[0-9]+: count=-3 flag=true now=1 name=\"worker\" "
               "large=18446744073709551615 pointer=\\(nil\\)\n$");
}

TEST(assert_line, stands_without_values) {
  EXPECT_DEATH(SMARM_ASSERT(1 + 1 == 3, "sums are right"),
               "sums are right \\[1 \\+ 1 == 3\\] at base/assert_test\\.cpp:[0-9]+\n$");
}

TEST(assert_line, ends_with_who_was_running) {
  EXPECT_DEATH(
      {
        set_assert_context(+[](char* buffer, std::size_t size) {
          std::snprintf(buffer, size, "7.1 \"%s\"", "teller");
        });
        SMARM_ASSERT(false, "never");
      },
      "\\(actor: 7\\.1 \"teller\"\\)\n$");
}

TEST(assert_line, leaves_the_actor_out_when_nobody_runs) {
  EXPECT_DEATH(
      {
        set_assert_context(+[](char* buffer, std::size_t) { buffer[0] = '\0'; });
        SMARM_ASSERT(false, "never");
      },
      "cpp:[0-9]+\n$");
}

TEST(assert_line, is_cut_short_and_not_lost_when_it_is_very_long) {
  const std::string text(5000, 'x');
  EXPECT_DEATH(SMARM_ASSERT(text.empty(), "texts are short", text), "texts are short .*text=\"xxx");
}

TEST(assert_macro, passes_and_evaluates_the_condition_once_when_it_holds) {
  int calls = 0;
  SMARM_ASSERT(++calls == 1, "the condition is evaluated once", calls);
  EXPECT_EQ(calls, 1);
}

TEST(assert_debug, is_checked_in_debug_builds_and_not_even_evaluated_in_others) {
  int calls = 0;
  SMARM_ASSERT_DEBUG(++calls != 0, "counted", calls);
#ifdef SMARM_DEBUG
  EXPECT_EQ(calls, 1);
#else
  EXPECT_EQ(calls, 0);
#endif
}

TEST(fatal, prints_one_formatted_line_and_aborts) {
  EXPECT_DEATH(fatal("no room for %d %s", 3, "eggs"), "smarm: no room for 3 eggs\n$");
}

}  // namespace
}  // namespace smarm::detail
