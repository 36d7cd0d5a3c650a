// Goal: settings can be asked for by pattern, changed within their ranges, and refuse in Redis's
// words.
#include "settings.hpp"

#include <gtest/gtest.h>

namespace sider {
namespace {

TEST(Settings, AreFoundByPattern) {
  const settings some{options{}};
  EXPECT_EQ(some.matching({"SAVE"}), (decltype(some.matching({})){{"save", ""}}));
  EXPECT_EQ(some.matching({"max*"}).size(), 3U);
  EXPECT_TRUE(some.matching({"nothing"}).empty());
}

TEST(Settings, ChangeWithinTheirRange) {
  settings some{options{}};
  EXPECT_TRUE(some.set("MaxClients", "77"));
  EXPECT_EQ(some.clients_max(), 77U);
  EXPECT_TRUE(some.set("proto-max-bulk-len", "2mb"));
  EXPECT_EQ(some.bulk_length_max(), 2U << 20);
  EXPECT_TRUE(some.set("client-output-buffer-limit", "normal 0 0 0 pubsub 1k 8mb 60"));
  EXPECT_EQ(some.outbox_bytes_max(), 1000U);
  EXPECT_TRUE(some.set("appendonly", "no"));
}

TEST(Settings, RefuseInRedisWords) {
  settings some{options{}};
  EXPECT_EQ(some.set("nothing", "1").error(),
            "Unknown option or number of arguments for CONFIG SET - 'nothing'");
  EXPECT_EQ(some.set("maxclients", "abc").error(),
            "CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be "
            "parsed into an integer");
  EXPECT_EQ(some.set("port", "1").error(),
            "CONFIG SET failed (possibly related to argument 'port') - can't set immutable config");
  EXPECT_FALSE(some.set("maxclients", "0"));
  EXPECT_FALSE(some.set("client-output-buffer-limit", "pubsub 1"));
}

TEST(Settings, DoNothingOfWhatTheyRefuse) {
  settings some{options{}};
  const std::string refused =
      "CONFIG SET failed (possibly related to argument "
      "'client-output-buffer-limit') - ";
  const std::string bad_number =
      refused + "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
  for (const std::string_view value :
       {"pubsub 5 0 0 slave x 0 0", "pubsub 5 x 0", "pubsub 5 0 x", "pubsub 5 0 -1"}) {
    EXPECT_EQ(some.set("client-output-buffer-limit", value).error(), bad_number) << value;
  }
  EXPECT_EQ(some.set("client-output-buffer-limit", "pubsub 5 0 0 nobody 0 0 0").error(),
            refused + "Invalid client class specified in buffer limit configuration.");
  EXPECT_EQ(some.outbox_bytes_max(), 32U << 20);
}

}  // namespace
}  // namespace sider
