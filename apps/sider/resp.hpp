// RESP2 requests, parsed from whatever bytes have arrived so far.
//
// The caller owns one growing buffer; parse() looks at its unread part and either appends a whole
// command's arguments (views into that buffer, no copies) or remembers how far it came. So:
//   1. A byte is looked at once, however the input is cut up: partial input is never read again.
//   2. The outcome does not depend on how the input was cut up.
//   3. Memory grows with what was received, never with what a header declares: "*1000000" costs
//      nothing until its arguments come.
//   4. After an error the stream has no meaning any more: reply with the text and close.
// Between two calls the buffer may move and grow at its end, for only offsets are kept.
//
// What is a request: an array of bulk strings, or an inline line split at blanks with "..." and
// '...' quoting. Inline arguments are unescaped in place (they only shrink), which is why the
// buffer is writable. Nested arrays are no requests. As in Redis, the two bytes that end a bulk
// string or a length line are skipped, not checked. The argument count is limited to 1024 * 1024,
// which is less than Redis 7 takes (it stops at INT_MAX). Threads: one at a time; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sider {

struct request_limits {
  std::size_t bulk_length_max = std::size_t{512} << 20;
  std::size_t argument_count_max = std::size_t{1024} * 1024;
  std::size_t line_length_max = std::size_t{64} << 10;
  std::size_t request_length_max = std::size_t{1} << 30;
};

class request_parser {
 public:
  enum class status : std::uint8_t {
    command,     // a command's arguments were appended, at least one
    incomplete,  // everything there was is understood, more is needed
    error,       // not RESP: error() says why, and the connection must close
  };
  struct outcome {
    status state;
    std::size_t consumed;  // drop so many bytes from the front of the unread part
  };

  explicit request_parser(request_limits limits = {}) : limits_(limits) {}

  // parse reads at most one command from the front of `unread`. Appended views point into `unread`
  // and stay valid as long as the caller leaves those bytes in place. Empty commands are skipped.
  // Precondition: `unread` begins with what earlier calls left unconsumed.
  [[nodiscard]] outcome parse(std::span<char> unread, std::vector<std::string_view>& arguments);

  // error is the text of the protocol error, "Protocol error: ...", without its code.
  [[nodiscard]] const std::string& error() const { return error_; }

  // missing is how many bytes the bulk string now arriving still lacks, 0 if that is unknown; a
  // hint for the size of the next read.
  [[nodiscard]] std::size_t missing(std::size_t unread_size) const;

  // is_idle tells that no command has been begun.
  [[nodiscard]] bool is_idle() const { return position_ == 0 && scanned_ == 0; }

  void set_limits(request_limits limits) { limits_ = limits; }

 private:
  struct piece {
    std::size_t begin;
    std::size_t length;
  };
  enum class progress : std::uint8_t { done, incomplete, error, empty };

  progress parse_inline(std::span<char> unread);
  progress parse_array(std::span<char> unread);
  progress parse_array_header(std::string_view text);
  progress parse_bulk(std::string_view text);
  progress find_line(std::string_view text, std::string_view too_long, std::string_view& line);
  progress fail(std::string text);
  bool split_inline(std::span<char> line);
  void reset();

  request_limits limits_;
  std::string error_;
  std::vector<piece> pieces_;               // the arguments found so far
  std::size_t position_ = 0;                // everything before it is understood
  std::size_t scanned_ = 0;                 // no line end between position_ and here
  std::size_t pending_ = 0;                 // arguments of the array still to come
  std::optional<std::size_t> bulk_length_;  // of the bulk string whose header has been read
};

}  // namespace sider
