// Numbers and names of commands; the rules stand in text.hpp.
#include "text.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace sider {

namespace {

// The longest text that strtold is asked to read, and the longest that a long double prints to:
// 4933 digits before the point and 17 after it.
constexpr std::size_t long_double_text_max = std::size_t{5} * 1024;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text == "0") return 0;
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() <= first || text[first] < '1' || text[first] > '9') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<long double> parse_long_double(std::string_view text) {
  if (text.empty() || text.size() >= long_double_text_max) return std::nullopt;
  if (std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  const std::string copy(text);  // strtold wants a terminator
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || std::fpclassify(value) == FP_ZERO)) {
    return std::nullopt;
  }
  return value;
}

std::string format_long_double(long double value) {
  std::string text(64, '\0');
  int length = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  if (static_cast<std::size_t>(length) >= text.size()) {
    text.resize(static_cast<std::size_t>(length) + 1);
    length = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  }
  text.resize(static_cast<std::size_t>(length));
  if (text.find('.') != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  if (text == "-0") text = "0";
  return text;
}

bool equals_caseless(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

std::string lowercase(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

std::string uppercase(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), upper);
  return result;
}

}  // namespace sider
