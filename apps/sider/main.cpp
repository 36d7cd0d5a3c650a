// sider: a small Redis-compatible server on smarm. Exit status: 0 after SIGTERM, SIGINT or
// SHUTDOWN; 2 for a wrong command line, or where it cannot listen; 1 for a second signal and
// anything else.
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include <smarm/runtime.hpp>

#include "hash.hpp"
#include "options.hpp"
#include "server.hpp"

namespace {

void choose_hash_secret() {
  std::array<std::uint64_t, 2> secret{};
  // Without randomness the table still works; only its defence against chosen keys is gone.
  if (::getrandom(secret.data(), sizeof secret, 0) == sizeof secret) sider::set_hash_secret(secret);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::vector<std::string_view> words(arguments + 1, arguments + count);
    const auto parsed = sider::parse_options(words);
    if (!parsed) {
      std::fprintf(stderr, "sider: %s\n", parsed.error().c_str());
      return 2;
    }
    if (parsed->help) {
      std::fwrite(sider::usage().data(), 1, sider::usage().size(), stdout);
      return 0;
    }
    choose_hash_secret();
    smarm::runtime runtime({.schedulers = parsed->schedulers});
    sider::server server(*parsed, runtime.schedulers());
    return runtime.run([&] { return server.run(); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sider: %s\n", error.what());
    return 1;
  }
}
