// Goal: no input makes the request parser crash, read out of bounds, or depend on how it is cut.
// Method: the first byte chooses a piece size; the rest is parsed whole and in such pieces, and
// both must agree. Run with: resp_fuzz apps/sider/corpus/resp
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "resp.hpp"

namespace {

// parse_all returns everything that was understood as one string: the commands, then the error.
std::string parse_all(std::string_view stream, std::size_t piece) {
  sider::request_limits limits;
  limits.line_length_max = 256;
  sider::request_parser parser(limits);
  std::string buffer;
  std::string seen;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    buffer += stream.substr(at, piece);
    for (;;) {
      std::vector<std::string_view> arguments;
      const auto [state, consumed] = parser.parse(buffer, arguments);
      if (consumed > buffer.size()) std::abort();
      if (state == sider::request_parser::status::error) return seen + "!" + parser.error();
      if (state == sider::request_parser::status::command) {
        if (arguments.empty()) std::abort();
        for (const std::string_view each : arguments) {
          seen += std::to_string(each.size()) + ":" + std::string(each) + ",";
        }
        seen += "\n";
      }
      buffer.erase(0, consumed);
      if (state == sider::request_parser::status::incomplete) break;
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t piece = 1 + data[0] % 16;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (parse_all(stream, stream.size()) != parse_all(stream, piece)) std::abort();
  return 0;
}
