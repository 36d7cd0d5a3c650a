// What CONFIG GET shows and CONFIG SET changes.
//
// Only what sider acts on can be changed. What Redis has and clients ask for, but sider has not
// (persistence, several databases), is shown with the value that says so, and fixed.
// Threads: any; each setting is a number by itself, so every access is relaxed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "options.hpp"

namespace sider {

class settings {
 public:
  explicit settings(const options& from);

  [[nodiscard]] std::size_t clients_max() const { return read(clients_max_); }
  [[nodiscard]] std::uint64_t timeout_s() const { return read(timeout_s_); }
  [[nodiscard]] std::size_t bulk_length_max() const { return read(bulk_length_max_); }
  [[nodiscard]] std::size_t request_length_max() const { return read(request_length_max_); }
  // outbox_bytes_max is how much a subscriber may be behind.
  [[nodiscard]] std::size_t outbox_bytes_max() const { return read(outbox_bytes_max_); }

  // set_port records the port that was bound, before clients come.
  void set_port(std::uint16_t port) { port_ = port; }

  // matching returns the name and value of each setting whose name fits one of the patterns.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> matching(
      std::vector<std::string> patterns) const;

  // set changes one setting, or says why not in Redis's words (without "ERR").
  [[nodiscard]] std::expected<void, std::string> set(std::string_view name, std::string_view value);

 private:
  using number = smarm::detail::atomic<std::uint64_t>;

  static std::uint64_t read(const number& from) { return from.load(smarm::detail::relaxed); }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> all() const;
  [[nodiscard]] std::expected<void, std::string> set_outbox_limit(std::string_view value);

  number clients_max_;
  number timeout_s_;
  number bulk_length_max_{std::uint64_t{512} << 20};
  number request_length_max_{std::uint64_t{1} << 30};
  number outbox_bytes_max_{std::uint64_t{32} << 20};
  std::uint16_t port_;
  const std::string bind_;
  const std::string unix_path_;
};

}  // namespace sider
