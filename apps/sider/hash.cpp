// SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; the 1-3 variant is
// the one that hash tables of several languages use).
#include "hash.hpp"

#include <bit>
#include <cstring>

namespace sider {

namespace {

std::array<std::uint64_t, 2> hash_secret{};

struct sip_state {
  std::uint64_t a, b, c, d;

  void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }

  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

}  // namespace

void set_hash_secret(std::array<std::uint64_t, 2> secret) { hash_secret = secret; }

std::uint64_t hash_text(std::string_view text) {
  const auto [first, second] = hash_secret;
  sip_state state{first ^ 0x736f6d6570736575U, second ^ 0x646f72616e646f6dU,
                  first ^ 0x6c7967656e657261U, second ^ 0x7465646279746573U};
  const char* data = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    state.absorb(word);
  }
  std::uint64_t last = 0;
  if (left > 0) std::memcpy(&last, data, left);
  state.absorb(last | static_cast<std::uint64_t>(text.size()) << 56);
  state.c ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace sider
