// Numbers and names as they travel in commands: strict integers, long doubles, caseless words.
//
// Redis is strict here and clients rely on it: "01", "+1", "-0", " 1" and "" are no integers, so a
// value read as one prints back to the very same bytes. Everything is pure and allocates nothing
// but the strings it returns. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sider {

// parse_integer returns the value of `text` if it is a canonical decimal int64.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

// parse_unsigned returns the value of `text` if it consists of decimal digits and fits; leading
// zeros are let pass, for SCAN cursors are read that way.
[[nodiscard]] std::optional<std::uint64_t> parse_unsigned(std::string_view text);

// parse_long_double reads a whole-text long double: no leading blank, no rest, no NaN.
[[nodiscard]] std::optional<long double> parse_long_double(std::string_view text);

// format_long_double prints up to 17 decimals without trailing zeros and never an exponent.
[[nodiscard]] std::string format_long_double(long double value);

// equals_caseless compares ASCII letters without their case; every other byte exactly.
[[nodiscard]] bool equals_caseless(std::string_view left, std::string_view right);

// lowercase returns `text` with its ASCII letters lowered, uppercase with them raised.
[[nodiscard]] std::string lowercase(std::string_view text);
[[nodiscard]] std::string uppercase(std::string_view text);

}  // namespace sider
