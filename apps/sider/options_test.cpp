// Goal: every wrong command line is refused with one line that names the culprit.
#include "options.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sider {
namespace {

std::expected<options, std::string> parse(std::vector<std::string_view> arguments) {
  return parse_options(arguments);
}

TEST(Options, AreTakenInEitherForm) {
  const auto found =
      parse({"--port", "7000", "--bind=0.0.0.0", "--shards=3", "--unixsocket", "/s"});
  ASSERT_TRUE(found.has_value()) << found.error();
  EXPECT_EQ(found->port, 7000);
  EXPECT_EQ(found->bind, "0.0.0.0");
  EXPECT_EQ(found->shards, 3U);
  EXPECT_EQ(found->unix_path, "/s");
  EXPECT_TRUE(parse({"--help"})->help);
  EXPECT_EQ(parse({})->port, 6380);
}

TEST(Options, WrongOnesAreNamed) {
  EXPECT_EQ(parse({"--prt", "1"}).error(), "unknown option '--prt' (try --help)");
  EXPECT_EQ(parse({"--prt"}).error(), "unknown option '--prt' (try --help)");
  EXPECT_EQ(parse({"x"}).error(), "unknown option 'x' (try --help)");
  EXPECT_EQ(parse({"--port"}).error(), "--port needs a value");
  EXPECT_EQ(parse({"--port", "65536"}).error(),
            "--port takes a number from 0 to 65535, not '65536'");
  EXPECT_EQ(parse({"--shards=-1"}).error(), "--shards takes a number from 0 to 1024, not '-1'");
  EXPECT_EQ(parse({"--maxclients="}).error(),
            "--maxclients takes a number from 1 to 1000000, not ''");
}

}  // namespace
}  // namespace sider
