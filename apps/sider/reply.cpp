// RESP2 encoding; see reply.hpp.
#include "reply.hpp"

#include <algorithm>
#include <charconv>

namespace sider {

void reply_writer::simple(std::string_view text) { line('+', text); }

void reply_writer::error(std::string_view text) { line('-', text); }

void reply_writer::bulk(std::string_view text) {
  prefixed('$', static_cast<std::int64_t>(text.size()));
  out_ += text;
  out_ += "\r\n";
}

void reply_writer::prefixed(char kind, std::int64_t value) {
  char digits[24];
  digits[0] = kind;
  char* end = std::to_chars(digits + 1, digits + sizeof digits - 2, value).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(digits, end);
}

void reply_writer::line(char kind, std::string_view text) {
  out_ += kind;
  const std::size_t begin = out_.size();
  out_ += text;
  std::replace_if(
      out_.begin() + static_cast<std::ptrdiff_t>(begin), out_.end(),
      [](char letter) { return letter == '\r' || letter == '\n'; }, ' ');
  out_ += "\r\n";
}

}  // namespace sider
