// Options of SET and GETEX; see expiry_options.hpp.
#include "expiry_options.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "text.hpp"

namespace sider {

namespace {

constexpr std::int64_t time_max = std::numeric_limits<std::int64_t>::max();

std::optional<expiry_kind> expiry_option(std::string_view word) {
  if (equals_caseless(word, "ex")) return expiry_kind{expiry_unit::seconds, false};
  if (equals_caseless(word, "px")) return expiry_kind{expiry_unit::milliseconds, false};
  if (equals_caseless(word, "exat")) return expiry_kind{expiry_unit::seconds, true};
  if (equals_caseless(word, "pxat")) return expiry_kind{expiry_unit::milliseconds, true};
  return std::nullopt;
}

bool same_kind(expiry_kind left, expiry_kind right) {
  return left.unit == right.unit && left.absolute == right.absolute;
}

// take_flag reads one option that has no argument; false if `word` is none that fits.
bool take_flag(std::string_view word, string_command owner, string_options& found) {
  const bool is_set = owner == string_command::set;
  if (is_set && equals_caseless(word, "nx") && !found.only_present) return found.only_new = true;
  if (is_set && equals_caseless(word, "xx") && !found.only_new) return found.only_present = true;
  if (is_set && equals_caseless(word, "get")) return found.get = true;
  if (is_set && equals_caseless(word, "keepttl") && !found.expiry) return found.keep_expiry = true;
  if (!is_set && equals_caseless(word, "persist") && !found.expiry) return found.persist = true;
  return false;
}

}  // namespace

std::optional<string_options> parse_string_options(argument_list options, string_command owner) {
  string_options found;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (take_flag(options[i], owner, found)) continue;
    const auto kind = expiry_option(options[i]);
    const bool excluded = found.keep_expiry || found.persist ||
                          (kind && found.expiry && !same_kind(*kind, *found.expiry));
    if (!kind || excluded || i + 1 == options.size()) return std::nullopt;
    found.expiry = kind;
    found.expiry_text = options[++i];
  }
  return found;
}

std::optional<std::int64_t> read_deadline(shard_call& call, std::string_view text, expiry_kind kind,
                                          std::string_view command_name) {
  const auto given = parse_integer(text);
  if (!given) {
    call.reply.error(not_an_integer_error);
    return std::nullopt;
  }
  const std::int64_t unit_ms = kind.unit == expiry_unit::seconds ? 1000 : 1;
  const std::int64_t base_ms = kind.absolute ? 0 : call.now_ms;
  if (*given <= 0 || *given > (time_max - base_ms) / unit_ms) {
    write_expire_time_error(call.reply, command_name);
    return std::nullopt;
  }
  return std::min(*given * unit_ms + base_ms, never - 1);
}

void write_expire_time_error(reply_writer reply, std::string_view command_name) {
  reply.error("ERR invalid expire time in '" + std::string(command_name) + "' command");
}

}  // namespace sider
