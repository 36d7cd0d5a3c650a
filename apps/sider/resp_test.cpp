// Goal: every request is understood alike however it is cut up; malformed ones get Redis's words;
// nothing is read twice and nothing is allocated for what has only been announced.
// Method: the same streams fed whole, byte by byte and in random pieces.
#include "resp.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sider {
namespace {

using words = std::vector<std::string>;

struct result {
  std::vector<words> commands;
  std::string error;
  std::size_t left = 0;

  bool operator==(const result&) const = default;
};

// feed plays the part of a connection: it appends pieces whose sizes `next_size` chooses to a
// buffer, parses, and drops what is consumed.
template <typename NextSize>
result feed(const std::string& stream, NextSize&& next_size, request_limits limits = {}) {
  request_parser parser(limits);
  result found;
  std::string buffer;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t size = std::min(next_size(), stream.size() - at);
    buffer.append(stream, at, size);
    at += size;
    for (;;) {
      std::vector<std::string_view> arguments;
      const auto [state, consumed] = parser.parse(buffer, arguments);
      if (state == request_parser::status::command) {
        found.commands.emplace_back(arguments.begin(), arguments.end());
      }
      if (state == request_parser::status::error) {
        found.error = parser.error();
        return found;
      }
      buffer.erase(0, consumed);
      if (state == request_parser::status::incomplete) break;
    }
  }
  found.left = buffer.size();
  return found;
}

result feed_whole(const std::string& stream, request_limits limits = {}) {
  return feed(stream, [&] { return stream.size(); }, limits);
}

std::string encode(const words& arguments) {
  std::string out = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& each : arguments) {
    out += "$" + std::to_string(each.size()) + "\r\n" + each + "\r\n";
  }
  return out;
}

TEST(Resp, ReadsArraysAndInlineLines) {
  const result got = feed_whole(encode({"SET", "k", "a\r\nb"}) + "PING\r\n" + "get  k\n" +
                                "*0\r\n\r\n*-1\r\n" + encode({"X", ""}));
  const std::vector<words> expected{{"SET", "k", "a\r\nb"}, {"PING"}, {"get", "k"}, {"X", ""}};
  EXPECT_EQ(got.commands, expected);
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.left, 0U);
}

TEST(Resp, InlineQuotesAreReadAsRedisReadsThem) {
  const auto inline_words = [](const std::string& line) { return feed_whole(line + "\r\n"); };
  EXPECT_EQ(inline_words(R"(set k "a \"b\" \x41\n")").commands[0],
            (words{"set", "k", "a \"b\" A\n"}));
  EXPECT_EQ(inline_words(R"(set 'it\'s' "")").commands[0], (words{"set", "it's", ""}));
  EXPECT_EQ(inline_words(R"(a"b c"  d)").commands[0], (words{"ab c", "d"}));
  EXPECT_EQ(inline_words(R"("\xzz\q")").commands[0], (words{"xzzq"}));
  for (const char* bad : {R"(set k "a)", R"(set k 'a)", R"(set "a"b)", R"('a'b)", R"("a\")"}) {
    EXPECT_EQ(inline_words(bad).error, "Protocol error: unbalanced quotes in request") << bad;
  }
}

TEST(Resp, MalformedRequestsGetRedisWords) {
  const std::string long_digits(70'000, '1');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"*x\r\n", "Protocol error: invalid multibulk length"},
      {"*1048577\r\n", "Protocol error: invalid multibulk length"},
      {"*99999999999999999999\r\n", "Protocol error: invalid multibulk length"},
      {"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$x\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$629145600\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n+OK\r\n", "Protocol error: expected '$', got '+'"},
      {"*1\r\n*1\r\n", "Protocol error: expected '$', got '*'"},
      {"*" + long_digits, "Protocol error: too big mbulk count string"},
      {"*1\r\n$" + long_digits, "Protocol error: too big bulk count string"},
      {long_digits, "Protocol error: too big inline request"},
      {long_digits + "\n", "Protocol error: too big inline request"},
  };
  for (const auto& [stream, error] : cases) {
    EXPECT_EQ(feed_whole(stream).error, error) << stream.substr(0, 40);
    EXPECT_EQ(feed(stream, [] { return std::size_t{1}; }).error, error) << stream.substr(0, 40);
  }
}

TEST(Resp, TheOutcomeDoesNotDependOnHowTheStreamIsCut) {
  std::mt19937 random(20261129);
  const auto below = [&](unsigned bound) { return random() % bound; };
  for (int round = 0; round < 300; ++round) {
    std::string stream;
    for (unsigned i = 0, n = 1 + below(8); i < n; ++i) {
      words arguments;
      for (unsigned j = 0, m = 1 + below(4); j < m; ++j) {
        std::string text(below(40), '\0');
        for (char& letter : text) letter = "ab \r\n$*\"'\\x0"[below(12)];
        arguments.push_back(std::move(text));
      }
      stream += below(3) > 0 ? encode(arguments) : "inline \"q\\n\" " + std::to_string(i) + "\r\n";
    }
    if (below(4) == 0) stream[below(static_cast<unsigned>(stream.size()))] = '!';
    const result whole = feed_whole(stream);
    EXPECT_EQ(feed(stream, [] { return std::size_t{1}; }), whole);
    EXPECT_EQ(feed(stream, [&] { return std::size_t{1 + below(9)}; }), whole);
  }
}

TEST(Resp, AnAnnouncedArrayCostsNothingUntilItComes) {
  // A million arguments are announced and none sent: were they reserved, the views alone would take
  // 16 MB. The parser has no way to hide that but in `arguments`, which it must not touch yet.
  request_parser parser;
  std::string stream = "*1000000\r\n$1000000\r\nab";
  std::vector<std::string_view> arguments;
  EXPECT_EQ(parser.parse(stream, arguments).state, request_parser::status::incomplete);
  EXPECT_EQ(arguments.capacity(), 0U);
  EXPECT_EQ(parser.missing(stream.size()), 1'000'000U);
}

TEST(Resp, ABigBulkInSmallPiecesIsNotQuadratic) {
  // 16 MiB in pieces of 4 KiB, and a line of 60 KiB byte by byte. Reading again what was read
  // would take minutes; the test's time limit is the assertion.
  const std::string big(std::size_t{16} << 20, '\n');
  const std::string stream = encode({"SET", "k", big});
  request_parser parser;
  std::vector<std::string_view> arguments;
  std::string buffer;
  buffer.reserve(stream.size());
  for (std::size_t at = 0; at < stream.size(); at += 4096) {
    EXPECT_TRUE(arguments.empty());
    buffer.append(stream, at, 4096);
    static_cast<void>(parser.parse(buffer, arguments));
  }
  ASSERT_EQ(arguments.size(), 3U);
  EXPECT_EQ(arguments[2].size(), big.size());
  EXPECT_EQ(feed(std::string(60'000, 'a') + "\n", [] { return std::size_t{1}; }).commands.size(),
            1U);
}

TEST(Resp, ARequestBeyondTheLimitIsRefused) {
  request_limits limits;
  limits.request_length_max = 1000;
  std::string stream = "*1000\r\n";
  for (int i = 0; i < 1000; ++i) stream += "$1\r\na\r\n";
  EXPECT_EQ(feed(
                stream, [] { return std::size_t{100}; }, limits)
                .error,
            "Protocol error: too big request");
}

}  // namespace
}  // namespace sider
