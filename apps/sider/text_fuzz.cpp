// Goal: numbers are read as strictly as they are meant to be, print back to what they were read
// from, and words are compared without their case and nothing else.
// Method: each text is given to every reader, beside the C library's or a rule stated anew.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "text.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool canonical =
      error == std::errc{} && end == text.data() + text.size() && std::to_string(value) == text;
  const auto got = sider::parse_integer(text);
  require(got.has_value() == canonical && got.value_or(value) == value);
}

void check_unsigned(std::string_view text) {
  const auto got = sider::parse_unsigned(text);
  const bool digits =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  require(digits || !got);
  if (!digits) return;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  if (got) {
    require(std::to_string(*got) == text);
  } else {
    constexpr std::string_view most = "18446744073709551615";
    require(text.size() > most.size() || (text.size() == most.size() && text > most));
  }
}

void check_long_double(std::string_view text) {
  const auto got = sider::parse_long_double(text);
  if (!got || !std::isfinite(*got)) return;
  // What is printed has at most 17 decimals, so it may be another number; but it stays itself.
  const std::string printed = sider::format_long_double(*got);
  const auto again = sider::parse_long_double(printed);
  require(again.has_value() && sider::format_long_double(*again) == printed);
  require(printed.find_first_not_of("-0123456789.") == std::string::npos);
}

void check_words(std::string_view left, std::string_view right) {
  const std::string low = sider::lowercase(left);
  require(sider::equals_caseless(left, low) && sider::equals_caseless(sider::uppercase(left), low));
  require(sider::equals_caseless(left, right) == (low == sider::lowercase(right)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_integer(text);
  check_unsigned(text);
  check_long_double(text);
  check_words(text.substr(0, size / 2), text.substr(size / 2));
  return 0;
}
