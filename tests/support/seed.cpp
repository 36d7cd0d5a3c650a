// The seed of the test process; see seed.hpp.
#include "tests/support/seed.hpp"

#include <cstdlib>

namespace smarm::test {

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    if (const char* given = std::getenv("SMARM_TEST_SEED")) {
      return static_cast<std::uint64_t>(std::strtoull(given, nullptr, 0));
    }
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }();
  return value;
}

std::mt19937_64 make_rng(std::uint64_t salt) {
  // The golden-ratio multiplier spreads small salts over all bits before they meet the seed.
  return std::mt19937_64(seed() ^ (salt * 0x9e3779b97f4a7c15ULL));
}

}  // namespace smarm::test
