// Goal: no request breaks the shards: every command gets one well-formed reply, whatever its
// arguments, and the number of shards makes no difference where it promises none.
// Method: the input is a stream of requests, run as a server of one shard and one of three would;
// every reply is taken apart again. The clock goes on by a second at each request.
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "resp.hpp"
#include "router.hpp"
#include "store.hpp"

namespace {

constexpr std::size_t shards_max = 3;
constexpr int depth_max = 8;

void require(bool holds) {
  if (!holds) std::abort();
}

// take_reply removes one whole reply from the front.
void take_reply(std::string_view& rest, int depth = 0) {
  require(depth < depth_max && !rest.empty());
  const char kind = rest.front();
  const std::size_t end = rest.find("\r\n");
  require(end != std::string_view::npos);
  const std::string_view line = rest.substr(1, end - 1);
  rest.remove_prefix(end + 2);
  if (kind == '+' || kind == '-') {
    require(line.find_first_of("\r\n") == std::string_view::npos);
    return;
  }
  std::int64_t number = 0;
  const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  require(error == std::errc{} && last == line.data() + line.size());
  if (kind == '$' && number >= 0) {
    const auto length = static_cast<std::size_t>(number);
    require(rest.size() >= length + 2 && rest.substr(length, 2) == "\r\n");
    rest.remove_prefix(length + 2);
  } else if (kind == '*') {
    for (std::int64_t i = 0; i < number; ++i) take_reply(rest, depth + 1);
  } else {
    require(kind == ':' || number == -1);
  }
}

// server is the shards and what stands before them, without actors.
class server {
 public:
  explicit server(std::size_t shards) : shards_(shards), work_(shards) {}

  // run executes one request and returns its reply, which it has looked at.
  std::string run(const std::vector<std::string_view>& words, std::int64_t now_ms) {
    work_.clear();
    work_.arguments().assign(words.begin(), words.end());
    const sider::command* const what = sider::find_command(words[0]);
    if (what == nullptr) {
      sider::write_unknown_command(work_.add_local(), words);
    } else if (!work_.add(*what, words.size())) {
      return {};  // the connection's own
    }
    std::string replies;
    for (bool all = false; !all;) {
      for (std::size_t i = 0; i < shards_; ++i) {
        if (work_.needs_shard(i)) work_.run_part(i, stores_[i], now_ms, [](sider::key_ref) {});
      }
      all = work_.merge(replies);
    }
    std::string_view rest = replies;
    take_reply(rest);
    require(rest.empty());
    return replies;
  }

  void expire(std::int64_t now_ms) {
    for (auto& each : std::span(stores_).first(shards_)) (void)each.expire_due(now_ms, 1000);
  }

 private:
  std::size_t shards_;
  std::array<sider::shard_store, shards_max> stores_;
  sider::batch work_;
};

// is_ordered tells whether the reply does not depend on where the keys lie.
bool is_ordered(const sider::command* what) {
  if (what == nullptr) return true;
  return what->merge == sider::merging::single || what->merge == sider::merging::ok ||
         what->merge == sider::merging::sum || what->merge == sider::merging::array;
}

// asks_for_much tells of a request whose work or memory is as large as its numbers say.
bool asks_for_much(const std::vector<std::string_view>& words) {
  if (words[0].size() != 8 || (words[0][0] | 0x20) != 's' || (words[0][3] | 0x20) != 'r') {
    return false;
  }
  return words.size() > 2 && words[2].size() > 4;  // SETRANGE at an offset of five digits
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  sider::request_parser parser;
  server one(1);
  server three(shards_max);
  std::int64_t now_ms = 1'000'000;
  std::size_t at = 0;
  for (;;) {
    std::vector<std::string_view> words;
    const auto [state, consumed] = parser.parse(std::span(input).subspan(at), words);
    if (state != sider::request_parser::status::command) return 0;
    at += consumed;
    if (asks_for_much(words)) continue;
    const sider::command* const what = sider::find_command(words[0]);
    const std::string from_three = three.run(words, now_ms);
    if (!from_three.empty()) {
      const std::string from_one = one.run(words, now_ms);
      require(!from_one.empty() && (from_one == from_three || !is_ordered(what)));
    }
    now_ms += 1000;
    one.expire(now_ms);
    three.expire(now_ms);
  }
}
