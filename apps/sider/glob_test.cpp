// Goal: patterns mean what they mean in Redis, odd ones included, and none takes exponential time.
// Method: cases whose answers came from a Redis server, and a pattern that defeats naive matching.
#include "glob.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sider {
namespace {

TEST(Glob, MatchesAsRedisDoes) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("h?llo", "hello"));
  EXPECT_FALSE(glob_matches("h?llo", "hllo"));
  EXPECT_TRUE(glob_matches("h*o", "hello"));
  EXPECT_TRUE(glob_matches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(glob_matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(glob_matches("h[^e]llo", "hello"));
  EXPECT_TRUE(glob_matches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(glob_matches("\\*", "*"));
  EXPECT_FALSE(glob_matches("\\*", "x"));
  EXPECT_FALSE(glob_matches("", "x"));
  EXPECT_TRUE(glob_matches("", ""));
}

TEST(Glob, OddPatternsHaveTheirMeaningToo) {
  EXPECT_TRUE(glob_matches("[c-a]", "b"));  // a range written backwards
  EXPECT_TRUE(glob_matches("[abc", "b"));   // a class that is never closed
  EXPECT_TRUE(glob_matches("a\\", "a\\"));  // a backslash at the end
  EXPECT_TRUE(glob_matches("[\\]]", "]"));  // an escaped bracket in a class
  EXPECT_FALSE(glob_matches("[]", "]"));    // an empty class fits nothing
  EXPECT_TRUE(glob_matches("[^]", "x"));    // and its opposite anything
}

TEST(Glob, ManyStarsAreNotExponential) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  pattern += "b";
  EXPECT_FALSE(glob_matches(pattern, std::string(20'000, 'a')));
}

}  // namespace
}  // namespace sider
