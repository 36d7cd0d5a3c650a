// The keyed hash of sider: SipHash-1-3 with a secret of the process.
//
// A client chooses the keys, so an unkeyed hash would let it choose the collisions too and turn the
// tables into lists. The low bits pick the shard, the high bits the place in its table: they are
// independent, so that a shard's table fills evenly. Threads: any, once set_hash_secret is done.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sider {

// set_hash_secret is called once, before the first key is hashed; without it the secret is zero,
// which makes tests repeatable.
void set_hash_secret(std::array<std::uint64_t, 2> secret);

// hash_text hashes a key.
[[nodiscard]] std::uint64_t hash_text(std::string_view text);

// A key with its hash, computed once per command by whoever routes it.
struct key_ref {
  std::string_view text;
  std::uint64_t hash;

  explicit key_ref(std::string_view key) : text(key), hash(hash_text(key)) {}
  key_ref(std::string_view key, std::uint64_t known_hash) : text(key), hash(known_hash) {}
};

}  // namespace sider
