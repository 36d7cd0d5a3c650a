// Goal: commands cut into items and merged again answer as one server would, in order, and a client
// that asks for much gets it in bounded pieces.
// Method: a whole server in one function: parse words, plan, run each part, merge.
#include "router.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "text.hpp"

namespace sider {
namespace {

class Router : public testing::TestWithParam<std::size_t> {
 protected:
  using words = std::vector<std::string_view>;

  // plan adds one command; a command that is not the shards' is reported as such.
  void plan(batch& all, const words& command_words) {
    all.arguments().insert(all.arguments().end(), command_words.begin(), command_words.end());
    const command* what = find_command(command_words[0]);
    if (what == nullptr) {
      write_unknown_command(all.add_local(), command_words);
    } else if (!all.add(*what, command_words.size())) {
      all.add_local().simple("CONNECTION");
    }
  }

  // round runs every part once, in the order of the shards, and merges.
  bool round(batch& all, std::string& out) {
    for (std::size_t shard = 0; shard < GetParam(); ++shard) {
      if (all.needs_shard(shard)) all.run_part(shard, stores_[shard], now_ms_, [](key_ref) {});
    }
    return all.merge(out, random_);
  }

  std::string run(const std::vector<words>& commands) {
    batch all(GetParam());
    for (const words& each : commands) plan(all, each);
    std::string out;
    while (!round(all, out)) {
    }
    return out;
  }

  std::array<shard_store, 8> stores_;
  std::int64_t now_ms_ = 1'000'000;
  double random_ = 0;
};

INSTANTIATE_TEST_SUITE_P(AnyNumberOfShards, Router, testing::Values(1, 2, 8));

TEST_P(Router, RepliesComeInTheOrderOfTheRequests) {
  EXPECT_EQ(run({{"set", "a", "1"},
                 {"nonsense"},
                 {"get", "a"},
                 {"echo", "x"},
                 {"incr", "b"},
                 {"get"},
                 {"get", "b"}}),
            "+OK\r\n-ERR unknown command 'nonsense', with args beginning with: \r\n$1\r\n1\r\n"
            "+CONNECTION\r\n:1\r\n-ERR wrong number of arguments for 'get' command\r\n$1\r\n1\r\n");
}

TEST_P(Router, CommandsOverManyKeysAreMerged) {
  EXPECT_EQ(run({{"mset", "a", "1", "b", "2", "c", "3"}, {"mget", "a", "x", "c", "b"}}),
            "+OK\r\n*4\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n$1\r\n2\r\n");
  EXPECT_EQ(run({{"exists", "a", "a", "x"}, {"del", "a", "b", "x"}, {"dbsize"}}),
            ":2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(run({{"mset", "a"}, {"mset", "a", "1", "b"}}),
            "-ERR wrong number of arguments for 'mset' command\r\n"
            "-ERR wrong number of arguments for 'mset' command\r\n");
  EXPECT_EQ(run({{"keys", "*"}, {"flushall"}, {"keys", "*"}, {"flushdb", "now"}}),
            "*1\r\n$1\r\nc\r\n+OK\r\n*0\r\n-ERR syntax error\r\n");
}

TEST_P(Router, APartMayEndWithResultsThatHoldNoText) {
  run({{"mset", "a", "1", "b", "2"}});
  EXPECT_EQ(run({{"get", "a"}, {"del", "a", "b", "c"}, {"dbsize"}}), "$1\r\n1\r\n:2\r\n:0\r\n");
}

TEST_P(Router, AScanWalksAllShards) {
  std::set<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    const std::string key = "key:" + std::to_string(i);
    expected.insert(key);
    run({{"set", key, "x"}});
  }
  std::set<std::string> seen;
  std::string cursor = "0";
  do {
    const std::string reply = run({{"scan", cursor, "count", "7"}});
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < reply.size();) {
      const std::size_t end = reply.find("\r\n", at);
      lines.push_back(reply.substr(at, end - at));
      at = end + 2;
    }
    cursor = lines[2];
    for (std::size_t i = 5; i < lines.size(); i += 2) seen.insert(lines[i]);
  } while (cursor != "0");
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(run({{"scan", "x"}, {"scan", "0", "count", "0"}, {"scan", "0", "foo", "1"}}),
            "-ERR invalid cursor\r\n-ERR syntax error\r\n-ERR syntax error\r\n");
  EXPECT_EQ(run({{"scan", "1023"}}), "*2\r\n$1\r\n0\r\n*0\r\n");
}

TEST_P(Router, ARandomKeyIsChosenByTheSizesOfTheShards) {
  EXPECT_EQ(run({{"randomkey"}}), "$-1\r\n");
  run({{"mset", "a", "1", "b", "1", "c", "1", "d", "1", "e", "1"}});
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    random_ = i / 1000.0;
    seen.insert(run({{"randomkey"}}));
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST_P(Router, RenameWithinAShardIsAnItemAndAcrossShardsIsNot) {
  run({{"set", "a", "1"}});
  const bool together = hash_text("a") % GetParam() == hash_text("b") % GetParam();
  EXPECT_EQ(run({{"rename", "a", "b"}}), together ? "+OK\r\n" : "+CONNECTION\r\n");
  EXPECT_EQ(run({{"rename", "none", "none"}, {"renamenx", "none", "none"}}),
            "-ERR no such key\r\n-ERR no such key\r\n");
}

TEST_P(Router, RepliesThatAreTooMuchAtOnceComeInPieces) {
  const std::string value(300'000, 'v');
  run({{"set", "a", value}, {"set", "b", value}});
  batch all(GetParam());
  for (int i = 0; i < 100; ++i) plan(all, {"get", i % 2 == 0 ? "a" : "b"});
  plan(all, {"mget", "a", "a", "b", "a", "b", "b", "a"});
  std::string out;
  std::size_t total = 0;
  int rounds = 1;
  for (; !round(all, out); ++rounds) {
    EXPECT_LT(out.size(), GetParam() * (batch::reply_bytes_max + 10 * value.size()));
    total += out.size();
    out.clear();
  }
  total += out.size();
  EXPECT_GT(rounds, 10);
  EXPECT_EQ(total, 107 * (value.size() + 11) + 4);
}

TEST_P(Router, AClearedBatchServesAgain) {
  batch all(GetParam());
  for (int i = 0; i < 3; ++i) {
    plan(all, {"incr", "n"});
    plan(all, {"echo"});
    std::string out;
    while (!round(all, out)) {
    }
    EXPECT_EQ(out, ":" + std::to_string(i + 1) +
                       "\r\n-ERR wrong number of arguments for 'echo' command\r\n");
    all.clear();
    EXPECT_TRUE(all.empty());
  }
}

TEST_P(Router, AClearedBatchGivesBackWhatALargeOneNeeded) {
  const std::string value(3'000'000, 'v');
  run({{"set", "a", value}});
  batch all(GetParam());
  plan(all, {"get", "a"});
  words many{"del"};
  many.insert(many.end(), 100'000, "x");
  plan(all, many);
  for (int i = 0; i < 100'000; ++i) all.add_local().ok();
  std::string out;
  while (!round(all, out)) {
  }
  EXPECT_GT(all.held_bytes(), 5'000'000U);
  all.clear();
  EXPECT_LT(all.held_bytes(), 100'000 * (GetParam() + 1));
}

TEST_P(Router, WhatALostShardHasNotDoneIsAnsweredWithOneErrorEach) {
  const std::string lost = "-" + std::string(shard_lost_error) + "\r\n";
  const auto shard_of = [](std::string_view key) { return hash_text(key) % GetParam(); };
  run({{"set", "a", "1"}});
  batch all(GetParam());
  plan(all, {"get", "a"});
  plan(all, {"rpush", "list", "x"});
  plan(all, {"get", "a"});
  plan(all, {"mget", "a", "list"});
  plan(all, {"nonsense"});
  plan(all, {"dbsize"});
  for (std::size_t shard = 0; shard < GetParam(); ++shard) {
    if (shard != shard_of("list")) {
      all.run_part(shard, stores_[shard], now_ms_, [](key_ref) {});
      continue;
    }
    // It fails behind the push, which has been done and has its reply.
    const auto fail = [](key_ref) { throw std::runtime_error("lost"); };
    EXPECT_THROW(all.run_part(shard, stores_[shard], now_ms_, fail), std::runtime_error);
    all.lose_part(shard);
  }
  all.answer_lost();
  std::string out;
  EXPECT_TRUE(all.merge(out, random_));
  const std::string second_get = shard_of("a") == shard_of("list") ? lost : "$1\r\n1\r\n";
  EXPECT_EQ(out, "$1\r\n1\r\n:1\r\n" + second_get + lost +
                     "-ERR unknown command 'nonsense', with args beginning with: \r\n" + lost);
  all.clear();
  plan(all, {"get", "a"});
  out.clear();
  EXPECT_TRUE(round(all, out));
  EXPECT_EQ(out, "$1\r\n1\r\n");
}

TEST_P(Router, AShardThatIsLostBetweenTwoRoundsLosesWhatIsLeft) {
  const std::string value(batch::reply_bytes_max * 3 / 5, 'v');
  const std::string reply = "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  const std::string lost = "-" + std::string(shard_lost_error) + "\r\n";
  run({{"set", "a", value}});
  batch all(GetParam());
  for (int i = 0; i < 4; ++i) plan(all, {"get", "a"});
  std::string out;
  EXPECT_FALSE(round(all, out));
  EXPECT_EQ(out, reply + reply);
  all.lose_part(hash_text("a") % GetParam());
  all.answer_lost();
  out.clear();
  EXPECT_TRUE(all.merge(out, random_));
  EXPECT_EQ(out, lost + lost);
}

}  // namespace
}  // namespace sider
