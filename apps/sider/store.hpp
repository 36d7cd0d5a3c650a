// shard_store holds the keys of one shard: their values and when they expire.
//
// Invariants
//   1. An entry is in expiries_ exactly if its expires_ms is not `never`.  [set_expiry, detach]
//   2. A list that is present is not empty: whoever takes the last element erases the key.
//   3. No operation that is given the time returns an entry whose deadline has come.
// Clocks: deadlines are Unix milliseconds, as commands give them, and the store never reads a
// clock: the caller passes `now_ms`, once per batch. Threads: one owner, the shard's actor; so no
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "hash.hpp"
#include "key_table.hpp"

namespace sider {

class shard_store {
 public:
  explicit shard_store(std::uint64_t random_seed = 1) : random_(random_seed) {}

  // size counts the keys, those included whose deadline has passed unnoticed.
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  [[nodiscard]] std::size_t expiring_size() const { return expiries_.size(); }

  // find returns the live entry of `name`, or null; it erases one that has expired.
  [[nodiscard]] entry* find(key_ref name, std::int64_t now_ms);

  // set gives `name` a value, overwriting any other and, unless `keep_expiry`, its deadline.
  entry& set(key_ref name, value content, bool keep_expiry = false);

  // erase removes `present`, which must be in this store.
  void erase(entry& present) { static_cast<void>(detach(present)); }

  // detach takes `present` out with its value and deadline; attach puts one in, over any that has
  // the key. Together they move a key to another name or another shard.
  [[nodiscard]] std::unique_ptr<entry> detach(entry& present);
  entry& attach(std::unique_ptr<entry> moved, std::int64_t now_ms);

  // set_expiry sets the deadline of `present`; `never` clears it.
  void set_expiry(entry& present, std::int64_t deadline_ms);

  // next_expiry is the earliest deadline there is.
  [[nodiscard]] std::optional<std::int64_t> next_expiry() const;

  // expire_due erases keys whose deadline has come, the earliest first and at most `count_max`, and
  // returns how many; call again while it returns count_max.
  std::size_t expire_due(std::int64_t now_ms, std::size_t count_max);

  // random_entry returns a live entry, each with the same probability; null if there is none.
  [[nodiscard]] entry* random_entry(std::int64_t now_ms);

  // for_each calls visit(entry&) for every live entry; visit must not change the store.
  template <typename Visit>
  void for_each(std::int64_t now_ms, Visit&& visit) {
    for (std::uint64_t cursor = 0; cursor != key_table::scan_end;) {
      cursor = scan(cursor, table_.size() + 1, now_ms, visit);
    }
  }

  // scan visits live entries from `cursor` on and returns the next cursor, key_table::scan_end at
  // the end. An entry present from the first call to the last is visited, whatever else comes and
  // goes.
  template <typename Visit>
  [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count, std::int64_t now_ms,
                                   Visit&& visit) {
    return table_.scan(cursor, count, [&](entry& present) {
      if (present.expires_ms > now_ms) visit(present);
    });
  }

  void clear();

  // destroy_part does a part of what the destructor does, up to steps_max small steps, and returns
  // whether nothing is left. After it nothing else may be called but the destructor.
  bool destroy_part(std::size_t steps_max);

 private:
  key_table table_;
  std::set<std::pair<std::int64_t, entry*>> expiries_;  // ordered by deadline
  std::minstd_rand random_;
};

}  // namespace sider
