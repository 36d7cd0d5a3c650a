// The deadline and condition options that SET, GETEX and their relatives share.
//
// Pure functions over arguments; the time comes from the call. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "command.hpp"

namespace sider {

enum class expiry_unit : std::uint8_t { seconds, milliseconds };

struct expiry_kind {
  expiry_unit unit;
  bool absolute;  // a Unix time, not a distance from now
};

enum class string_command : std::uint8_t { set, getex };

struct string_options {
  bool only_new = false;
  bool only_present = false;
  bool get = false;
  bool keep_expiry = false;
  bool persist = false;
  std::optional<expiry_kind> expiry;
  std::string_view expiry_text;
};

// parse_string_options reads the options behind the fixed arguments; nothing on a syntax error,
// which includes two that exclude each other and those that belong to the other command.
[[nodiscard]] std::optional<string_options> parse_string_options(argument_list options,
                                                                 string_command owner);

// read_deadline turns `text` into Unix milliseconds. If it is no positive integer in range it
// writes the error, naming `command_name`, and returns nothing.
[[nodiscard]] std::optional<std::int64_t> read_deadline(shard_call& call, std::string_view text,
                                                        expiry_kind kind,
                                                        std::string_view command_name);

// write_expire_time_error words a deadline that lies outside of time.
void write_expire_time_error(reply_writer reply, std::string_view command_name);

}  // namespace sider
