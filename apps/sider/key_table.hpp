// key_table maps keys to entries: an open hash table that is sorted by hash.
//
// Invariants
//   1. Read from the first slot to the last, the hashes ascend (equal ones side by side).
//   2. An entry's home slot is the top bits of its hash. It stands there or further right, and
//      no slot between is empty.
//   3. Home slots are 2^k; behind them lie spare slots for entries that are pushed past the last
//   home,
//      and the very last slot is always empty, so that no walk needs a bound.
//
// Why sorted. The top bits of a hash are its order, whatever the size of the table, so "everything
// with a smaller hash has been returned" stays true while the table grows and shrinks: a scan
// cursor is simply a hash, and an element that is there all the time is returned, most often
// once. Growing is one sweep over both tables without a random access (1 to 2 ns an entry); a
// step-by-step rehash was left out for that. Threads: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hash.hpp"

namespace sider {

using list_value = std::deque<std::string>;
using value = std::variant<std::string, std::unique_ptr<list_value>>;

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

struct entry {
  std::uint64_t hash;
  std::int64_t expires_ms = never;  // Unix milliseconds; written by shard_store, which indexes it
  std::string key;
  value content;

  entry(key_ref name, value initial)
      : hash(name.hash), key(name.text), content(std::move(initial)) {}
};

class key_table {
 public:
  // Scan cursors count in units of 2^-48 of the hash range; scan_end is one past the last.
  static constexpr unsigned cursor_bits = 48;
  static constexpr std::uint64_t scan_end = std::uint64_t{1} << cursor_bits;

  key_table() { rebuild(home_bits_min); }
  ~key_table();
  key_table(const key_table&) = delete;
  key_table& operator=(const key_table&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }

  // find returns the entry of `name`, or null.
  [[nodiscard]] entry* find(key_ref name) const;

  // insert takes `added`, whose key must not be present. Other entries keep their address.
  entry& insert(std::unique_ptr<entry> added);

  // remove takes `present`, which must be in this table, out of it.
  std::unique_ptr<entry> remove(const entry& present);

  // clear deletes all entries and gives the memory back.
  void clear();

  // destroy_part does a part of what the destructor does, up to slots_max slots, and returns
  // whether nothing is left. After it nothing else may be called but the destructor.
  bool destroy_part(std::size_t slots_max);

  // scan calls visit(entry&) for entries from `cursor` on, at least `count` of them unless the end
  // or ten times as many slots come first, and returns the cursor to go on with. visit must not
  // change the table.
  template <typename Visit>
  [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count, Visit&& visit) const;

  // at returns the entry in slot `position` (taken modulo slot_count()), null if that is empty.
  [[nodiscard]] entry* at(std::uint64_t position) const {
    return slots_[position % slots_.size()].item;
  }
  // slot_count is the number of slots, taken or not.
  [[nodiscard]] std::size_t slot_count() const { return slots_.size(); }

 private:
  struct slot {
    std::uint64_t hash = 0;
    entry* item = nullptr;  // owned; null: empty
  };

  static constexpr unsigned home_bits_min = 4;

  [[nodiscard]] std::size_t home(std::uint64_t hash) const { return hash >> (64 - home_bits_); }
  [[nodiscard]] std::size_t home_count() const { return std::size_t{1} << home_bits_; }
  [[nodiscard]] std::size_t position_of(const entry& present) const;
  void rebuild(unsigned home_bits);

  std::vector<slot> slots_;
  std::size_t size_ = 0;
  unsigned home_bits_ = home_bits_min;
};

template <typename Visit>
std::uint64_t key_table::scan(std::uint64_t cursor, std::size_t count, Visit&& visit) const {
  if (cursor >= scan_end) return scan_end;
  constexpr unsigned unit = 64 - cursor_bits;
  const std::uint64_t from = cursor << unit;
  std::size_t slots_left = count * 10;
  std::size_t visited = 0;
  std::uint64_t last = 0;  // the cursor unit of the entry visited last
  for (std::size_t i = home(from); i < slots_.size(); ++i) {
    const slot& here = slots_[i];
    if (here.item != nullptr) {
      if (here.hash < from) continue;
      // Entries that share a cursor unit go out together, for no cursor lies between them.
      if (visited >= count && here.hash >> unit != last) return last + 1;
      visit(*here.item);
      ++visited;
      last = here.hash >> unit;
    } else if (visited >= count || slots_left-- == 0) {
      // Nothing whose home is this slot or an earlier one lies behind an empty slot.
      if (i + 1 >= home_count()) return scan_end;
      return (static_cast<std::uint64_t>(i) + 1) << (cursor_bits - home_bits_);
    }
  }
  return scan_end;
}

}  // namespace sider
