// The table of settings; see settings.hpp.
#include "settings.hpp"

#include <algorithm>
#include <optional>

#include "glob.hpp"
#include "text.hpp"

namespace sider {

namespace {

using smarm::detail::relaxed;

// parse_bytes reads a number with an optional unit, as Redis does: k is a thousand, kb is 1024.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, std::uint64_t> units[] = {
      {"kb", std::uint64_t{1} << 10},
      {"mb", std::uint64_t{1} << 20},
      {"gb", std::uint64_t{1} << 30},
      {"k", 1000},
      {"m", 1'000'000},
      {"g", 1'000'000'000},
      {"b", 1},
  };
  const std::string lowered = lowercase(text);
  std::string_view digits = lowered;
  std::uint64_t factor = 1;
  for (const auto& [unit, bytes] : units) {
    if (!digits.ends_with(unit)) continue;
    digits.remove_suffix(unit.size());
    factor = bytes;
    break;
  }
  const auto value = parse_unsigned(digits);
  std::uint64_t bytes = 0;
  if (!value || __builtin_mul_overflow(*value, factor, &bytes)) return std::nullopt;
  return bytes;
}

std::unexpected<std::string> failed(std::string_view name, std::string_view why) {
  return std::unexpected("CONFIG SET failed (possibly related to argument '" + std::string(name) +
                         "') - " + std::string(why));
}

}  // namespace

settings::settings(const options& from)
    : clients_max_(from.clients_max),
      timeout_s_(from.timeout_s),
      port_(from.port),
      bind_(from.bind),
      unix_path_(from.unix_path) {}

std::vector<std::pair<std::string, std::string>> settings::all() const {
  return {
      {"appendonly", "no"},
      {"bind", bind_},
      {"client-output-buffer-limit",
       "normal 0 0 0 slave 0 0 0 pubsub " + std::to_string(outbox_bytes_max()) + " 0 0"},
      {"client-query-buffer-limit", std::to_string(request_length_max())},
      {"databases", "1"},
      {"maxclients", std::to_string(clients_max())},
      {"maxmemory", "0"},
      {"maxmemory-policy", "noeviction"},
      {"port", std::to_string(port_)},
      {"proto-max-bulk-len", std::to_string(bulk_length_max())},
      {"save", ""},
      {"timeout", std::to_string(timeout_s())},
      {"unixsocket", unix_path_},
  };
}

std::vector<std::pair<std::string, std::string>> settings::matching(
    std::vector<std::string> patterns) const {
  auto found = all();
  std::erase_if(found, [&](const auto& each) {
    return std::ranges::none_of(patterns, [&](const std::string& pattern) {
      return glob_matches(lowercase(pattern), each.first);
    });
  });
  return found;
}

std::expected<void, std::string> settings::set(std::string_view given, std::string_view value) {
  struct range {
    std::string_view name;
    number& into;
    std::uint64_t least;
    std::uint64_t most;
    bool bytes;
  };
  const std::string name = lowercase(given);
  const range ranges[] = {
      {"maxclients", clients_max_, 1, 1'000'000, false},
      {"timeout", timeout_s_, 0, 2147483647, false},
      {"proto-max-bulk-len", bulk_length_max_, 1 << 20, std::uint64_t{512} << 20, true},
      {"client-query-buffer-limit", request_length_max_, 1 << 20, std::uint64_t{1} << 40, true},
  };
  for (const range& each : ranges) {
    if (each.name != name) continue;
    const auto parsed = each.bytes ? parse_bytes(value) : parse_unsigned(value);
    if (!parsed) {
      return failed(name, each.bytes ? "argument must be a memory value"
                                     : "argument couldn't be parsed into an integer");
    }
    if (*parsed < each.least || *parsed > each.most) {
      return failed(name, "argument must be between " + std::to_string(each.least) + " and " +
                              std::to_string(each.most) + " inclusive");
    }
    each.into.store(*parsed, relaxed);  // a number by itself
    return {};
  }
  if (name == "client-output-buffer-limit") return set_outbox_limit(value);
  for (const auto& [known, current] : all()) {
    if (known != name) continue;
    if (current == value) return {};  // asking for what is so is granted
    return failed(name, "can't set immutable config");
  }
  return std::unexpected("Unknown option or number of arguments for CONFIG SET - '" +
                         std::string(given) + "'");
}

// set_outbox_limit takes "class hard soft seconds" groups, of which the hard limit of pubsub is the
// one that sider has.
std::expected<void, std::string> settings::set_outbox_limit(std::string_view value) {
  std::vector<std::string> words(1);
  for (const char letter : value) {
    if (letter != ' ') {
      words.back() += letter;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  if (words.size() % 4 != 0 || words.empty()) {
    return failed("client-output-buffer-limit",
                  "Wrong number of arguments in buffer limit configuration.");
  }
  // Set at the end: of what is refused, nothing is done.
  std::optional<std::uint64_t> pubsub_max;
  for (std::size_t i = 0; i < words.size(); i += 4) {
    static constexpr std::string_view classes[] = {"normal", "slave", "replica", "pubsub"};
    const std::string client_class = lowercase(words[i]);
    if (std::ranges::find(classes, client_class) == std::end(classes)) {
      return failed("client-output-buffer-limit",
                    "Invalid client class specified in buffer limit configuration.");
    }
    const auto hard = parse_bytes(words[i + 1]);
    if (!hard || !parse_bytes(words[i + 2]) || !parse_unsigned(words[i + 3])) {
      return failed("client-output-buffer-limit",
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    // Zero means no limit.
    if (client_class == "pubsub") pubsub_max = *hard == 0 ? UINT64_MAX : *hard;
  }
  if (pubsub_max) outbox_bytes_max_.store(*pubsub_max, relaxed);  // a number by itself
  return {};
}

}  // namespace sider
