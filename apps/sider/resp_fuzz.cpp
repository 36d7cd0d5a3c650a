// Goal: no input makes the request parser crash, read out of bounds, or depend on how it is cut;
// and what was encoded as a request is parsed as just that.
// Method: the first two bytes choose the cuts; the rest is parsed whole and cut up, each time in
// memory of its exact size, and both must agree. The rest is also taken for arguments.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp.hpp"

namespace {

using status = sider::request_parser::status;

// Small, so that a short input reaches each limit.
constexpr sider::request_limits limits{.bulk_length_max = 64,
                                       .argument_count_max = 16,
                                       .line_length_max = 48,
                                       .request_length_max = 512};

std::string describe(const std::vector<std::string_view>& arguments) {
  std::string text;
  for (const std::string_view each : arguments) {
    text += std::to_string(each.size()) + ":" + std::string(each) + ",";
  }
  return text + "\n";
}

// receiver is a connection: bytes come, commands go.
class receiver {
 public:
  explicit receiver(const sider::request_limits& given) : parser_(given) {}

  // take parses what has come so far; false: the stream has ended in an error.
  bool take(std::string_view arrived) {
    unread_ += arrived;
    for (;;) {
      const auto exact = std::make_unique_for_overwrite<char[]>(unread_.size());
      std::ranges::copy(unread_, exact.get());
      std::vector<std::string_view> arguments;
      const auto [state, consumed] = parser_.parse({exact.get(), unread_.size()}, arguments);
      if (consumed > unread_.size() || arguments.empty() != (state != status::command)) {
        std::abort();
      }
      // Unescaped in place: what is left unread may have been written to as well.
      unread_.assign(exact.get() + consumed, unread_.size() - consumed);
      if (state == status::error) {
        seen_ += "!" + parser_.error();
        return false;
      }
      if (state == status::incomplete) return true;
      seen_ += describe(arguments);
    }
  }

  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  sider::request_parser parser_;
  std::string unread_;
  std::string seen_;  // the commands, then the error
};

std::string parse_whole(std::string_view stream, const sider::request_limits& given) {
  receiver all(given);
  (void)all.take(stream);
  return all.seen();
}

// parse_cut cuts the stream into pieces of one byte to `longest`, as `seed` decides.
std::string parse_cut(std::string_view stream, std::size_t longest, std::uint32_t seed) {
  receiver cut(limits);
  while (!stream.empty()) {
    seed = seed * 1664525 + 1013904223;
    const std::size_t size = std::min<std::size_t>(stream.size(), 1 + (seed >> 16) % longest);
    if (!cut.take(stream.substr(0, size))) break;
    stream.remove_prefix(size);
  }
  return cut.seen();
}

// check_encoded takes the text, cut at each zero byte, for the arguments of one request.
void check_encoded(std::string_view text) {
  std::vector<std::string_view> arguments;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find('\0');
    arguments.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  std::string stream = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string_view each : arguments) {
    stream += "$" + std::to_string(each.size()) + "\r\n" + std::string(each) + "\r\n";
  }
  if (parse_whole(stream, {}) != describe(arguments)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t longest = 1 + data[0] % 16;
  if (parse_whole(stream, limits) != parse_cut(stream, longest, data[1])) std::abort();
  check_encoded(stream);
  return 0;
}
