// The incremental request parser; its invariants stand in resp.hpp.
#include "resp.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "release.hpp"
#include "text.hpp"

namespace sider {

namespace {

// After a big command the argument list is given back, so that an idle connection keeps nothing.
constexpr std::size_t pieces_kept_max = 64;

bool is_blank(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }

// ends_word tells which blanks end an unquoted word; fewer than those that may stand between two.
bool ends_word(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

std::optional<char> hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return static_cast<char>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<char>(letter - 'a' + 10);
  if (letter >= 'A' && letter <= 'F') return static_cast<char>(letter - 'A' + 10);
  return std::nullopt;
}

// unescape reads what stands after the backslash at line[at] inside double quotes, and moves `at`
// to its last byte.
char unescape(std::span<char> line, std::size_t& at) {
  if (at + 3 < line.size() && line[at + 1] == 'x') {
    const auto high = hex_digit(line[at + 2]);
    const auto low = hex_digit(line[at + 3]);
    if (high && low) {
      at += 3;
      return static_cast<char>(*high * 16 + *low);
    }
  }
  switch (line[++at]) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return line[at];
  }
}

// read_quoted unquotes the text from the quote at line[at] on to line[end...]; false if the quote
// is not closed, or is followed by something other than a blank.
bool read_quoted(std::span<char> line, std::size_t& at, std::size_t& end) {
  const char quote = line[at++];
  for (; at < line.size(); ++at) {
    char letter = line[at];
    if (letter == quote) {
      ++at;
      return at == line.size() || is_blank(line[at]);
    }
    if (letter == '\\' && at + 1 < line.size()) {
      if (quote == '"') {
        letter = unescape(line, at);
      } else if (line[at + 1] == '\'') {
        letter = line[++at];
      }
    }
    line[end++] = letter;
  }
  return false;
}

}  // namespace

request_parser::outcome request_parser::parse(std::span<char> unread,
                                              std::vector<std::string_view>& arguments) {
  std::size_t consumed = 0;
  for (;;) {
    const std::span<char> rest = unread.subspan(consumed);
    if (rest.empty()) return {status::incomplete, consumed};
    progress made = rest[0] == '*' ? parse_array(rest) : parse_inline(rest);
    if (made == progress::incomplete && rest.size() > limits_.request_length_max) {
      made = fail("Protocol error: too big request");
    }
    switch (made) {
      case progress::error:
        return {status::error, consumed};
      case progress::incomplete:
        return {status::incomplete, consumed};
      case progress::empty:
        consumed += position_;
        reset();
        continue;
      case progress::done:
        for (const piece& part : pieces_) {
          arguments.emplace_back(rest.data() + part.begin, part.length);
        }
        consumed += position_;
        reset();
        return {status::command, consumed};
    }
  }
}

std::size_t request_parser::missing(std::size_t unread_size) const {
  if (!bulk_length_) return 0;
  const std::size_t end = position_ + *bulk_length_ + 2;
  return end > unread_size ? end - unread_size : 0;
}

// find_line puts the text from position_ up to the next '\r' in `line` and moves on past the two
// bytes that end it.
request_parser::progress request_parser::find_line(std::string_view text, std::string_view too_long,
                                                   std::string_view& line) {
  const std::size_t end = text.find('\r', std::max(scanned_, position_));
  const std::size_t length = (end == std::string_view::npos ? text.size() : end) - position_;
  if (length > limits_.line_length_max) return fail(std::string(too_long));
  if (end == std::string_view::npos || end + 2 > text.size()) {
    scanned_ = end == std::string_view::npos ? text.size() : end;
    return progress::incomplete;
  }
  line = text.substr(position_, length);
  position_ = end + 2;
  scanned_ = position_;
  return progress::done;
}

request_parser::progress request_parser::parse_array(std::span<char> unread) {
  const std::string_view text(unread.data(), unread.size());
  if (pending_ == 0) {
    const progress made = parse_array_header(text);
    if (made != progress::done) return made;
  }
  while (pending_ > 0) {
    const progress made = parse_bulk(text);
    if (made != progress::done) return made;
    --pending_;
  }
  return progress::done;
}

request_parser::progress request_parser::parse_array_header(std::string_view text) {
  std::string_view line;
  const progress made = find_line(text, "Protocol error: too big mbulk count string", line);
  if (made != progress::done) return made;
  const auto count = parse_integer(line.substr(1));
  if (!count || *count > static_cast<std::int64_t>(limits_.argument_count_max)) {
    return fail("Protocol error: invalid multibulk length");
  }
  if (*count <= 0) return progress::empty;
  pending_ = static_cast<std::size_t>(*count);
  return progress::done;
}

request_parser::progress request_parser::parse_bulk(std::string_view text) {
  if (!bulk_length_) {
    std::string_view line;
    const std::size_t header = position_;
    const progress made = find_line(text, "Protocol error: too big bulk count string", line);
    if (made != progress::done) return made;
    if (text[header] != '$') {
      return fail(std::string("Protocol error: expected '$', got '") + text[header] + "'");
    }
    const auto length = parse_integer(line.substr(1));
    if (!length || *length < 0 || static_cast<std::uint64_t>(*length) > limits_.bulk_length_max) {
      return fail("Protocol error: invalid bulk length");
    }
    bulk_length_ = static_cast<std::size_t>(*length);
  }
  if (text.size() - position_ < *bulk_length_ + 2) return progress::incomplete;
  pieces_.push_back({position_, *bulk_length_});
  position_ += *bulk_length_ + 2;
  scanned_ = position_;
  bulk_length_.reset();
  return progress::done;
}

request_parser::progress request_parser::parse_inline(std::span<char> unread) {
  const std::string_view text(unread.data(), unread.size());
  const std::size_t end = text.find('\n', scanned_);
  const std::size_t length = end == std::string_view::npos ? text.size() : end;
  if (length > limits_.line_length_max) return fail("Protocol error: too big inline request");
  if (end == std::string_view::npos) {
    scanned_ = text.size();
    return progress::incomplete;
  }
  position_ = end + 1;
  const std::size_t stripped = length > 0 && text[length - 1] == '\r' ? length - 1 : length;
  // A zero byte ends the line as it ends a C string.
  const std::size_t word_end = std::min(stripped, text.substr(0, stripped).find('\0'));
  if (!split_inline(unread.first(word_end))) {
    return fail("Protocol error: unbalanced quotes in request");
  }
  return pieces_.empty() ? progress::empty : progress::done;
}

// split_inline cuts `line` into pieces_, unescaping in place; false if a quote is not closed. Text
// is written no further than it has been read, for every escape is longer than what it stands for.
bool request_parser::split_inline(std::span<char> line) {
  std::size_t at = 0;
  for (;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) return true;
    const std::size_t begin = at;
    std::size_t end = at;
    while (at < line.size() && !ends_word(line[at])) {
      if (line[at] == '"' || line[at] == '\'') {
        if (!read_quoted(line, at, end)) return false;
        break;  // a closing quote ends its argument
      }
      line[end++] = line[at++];
    }
    pieces_.push_back({begin, end - begin});
  }
}

request_parser::progress request_parser::fail(std::string text) {
  error_ = std::move(text);
  return progress::error;
}

void request_parser::reset() {
  clear_within(pieces_, pieces_kept_max * sizeof(piece));
  position_ = 0;
  scanned_ = 0;
  pending_ = 0;
  bulk_length_.reset();
}

}  // namespace sider
