// Goal: numbers are read as strictly as Redis reads them and printed as it prints them.
#include "text.hpp"

#include <gtest/gtest.h>

namespace sider {
namespace {

TEST(Text, OnlyCanonicalIntegersAreIntegers) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* bad :
       {"", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "x"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
}

TEST(Text, LongDoublesPrintWithoutExponentOrTrailingZeros) {
  EXPECT_EQ(format_long_double(10.5L + 0.1L), "10.6");
  EXPECT_EQ(format_long_double(3.0L), "3");
  EXPECT_EQ(format_long_double(-0.0L), "0");
  EXPECT_EQ(format_long_double(1e20L), "100000000000000000000");
  EXPECT_EQ(format_long_double(1e300L).size(), 301U);
}

TEST(Text, LongDoublesMustBeWholeAndFinite) {
  EXPECT_EQ(parse_long_double("5.0e3"), 5000.0L);
  for (const char* bad : {"", " 1", "1 ", "nan", "1x", "1e99999"}) {
    EXPECT_EQ(parse_long_double(bad), std::nullopt) << bad;
  }
}

TEST(Text, CaselessComparisonLooksAtLettersOnly) {
  EXPECT_TRUE(equals_caseless("KeepTTL", "keepttl"));
  EXPECT_FALSE(equals_caseless("[", "{"));
  EXPECT_FALSE(equals_caseless("ex", "exa"));
}

}  // namespace
}  // namespace sider
