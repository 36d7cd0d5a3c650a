// Reading the command line: "--name value" or "--name=value", in any order.
#include "options.hpp"

#include <optional>
#include <utility>

#include "text.hpp"

namespace sider {

namespace {

// take_number reads a whole number between `least` and `most` into `into`.
template <typename Number>
std::optional<std::string> take_number(std::string_view name, std::string_view text, Number& into,
                                       std::uint64_t least, std::uint64_t most) {
  const auto value = parse_unsigned(text);
  if (!value || *value < least || *value > most) {
    return std::string(name) + " takes a number from " + std::to_string(least) + " to " +
           std::to_string(most) + ", not '" + std::string(text) + "'";
  }
  into = static_cast<Number>(*value);
  return std::nullopt;
}

// take sets the option `name`; the text it returns is what is wrong.
std::optional<std::string> take(options& into, std::string_view name, std::string_view value) {
  if (name == "--port") return take_number(name, value, into.port, 0, 65535);
  if (name == "--schedulers") return take_number(name, value, into.schedulers, 0, 1024);
  if (name == "--shards") return take_number(name, value, into.shards, 0, 1024);
  if (name == "--maxclients") return take_number(name, value, into.clients_max, 1, 1'000'000);
  if (name == "--timeout") return take_number(name, value, into.timeout_s, 0, 31'536'000);
  if (name == "--bind") {
    into.bind = value;
    return std::nullopt;
  }
  if (name == "--unixsocket") {
    if (value.empty()) return "--unixsocket takes a path";
    into.unix_path = value;
    return std::nullopt;
  }
  return "unknown option '" + std::string(name) + "' (try --help)";
}

}  // namespace

std::expected<options, std::string> parse_options(std::span<const std::string_view> arguments) {
  options found;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") {
      found.help = true;
      continue;
    }
    std::string_view value;
    const std::size_t sign = name.find('=');
    if (sign != std::string_view::npos) {
      value = name.substr(sign + 1);
      name = name.substr(0, sign);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      // Tell a name that is wrong anyway from one that only lacks its value.
      const auto wrong = take(found, name, "1");
      return std::unexpected(wrong ? *wrong : std::string(name) + " needs a value");
    }
    if (auto wrong = take(found, name, value)) return std::unexpected(std::move(*wrong));
  }
  return found;
}

std::string_view usage() {
  return "usage: sider [option value]...\n"
         "A small Redis-compatible server whose connections and shards are actors.\n"
         "\n"
         "  --port N          TCP port (6380); 0 lets the kernel choose one\n"
         "  --bind ADDRESS    address to listen on (127.0.0.1); '' is every address\n"
         "  --unixsocket PATH listen on a unix socket too\n"
         "  --schedulers N    OS threads that run actors (0: one a CPU)\n"
         "  --shards N        actors that share the keys (0: as many as schedulers)\n"
         "  --maxclients N    connections at a time (10000)\n"
         "  --timeout S       close a client that sends no command for S seconds (0: never)\n"
         "  --help            this text\n";
}

}  // namespace sider
