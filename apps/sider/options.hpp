// The command line of sider, read without side effects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace sider {

struct options {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 6380;  // 0: one that the kernel chooses
  std::string unix_path;      // empty: no unix socket
  unsigned schedulers = 0;    // 0: one a CPU
  std::size_t shards = 0;     // 0: as many as schedulers
  std::size_t clients_max = 10'000;
  unsigned timeout_s = 0;  // 0: an idle client is never closed
  bool help = false;
};

// parse_options reads the arguments behind the program's name, or says in one line what is wrong.
[[nodiscard]] std::expected<options, std::string> parse_options(
    std::span<const std::string_view> arguments);

// usage is what --help prints.
[[nodiscard]] std::string_view usage();

}  // namespace sider
