// slot_table holds every actor slot of the process: found by index, taken and given back in
// batches.
//
// One table for all runtimes, so a pid is unique in the process and a pid of another runtime is
// recognised. It grows by chunks and never shrinks: slots are type-stable (see slot.hpp).
//
// Invariants
//   1. A vacant slot is in exactly one free list: the table's, or a scheduler's cache.
// Threads: any. `lock_` guards the free list and growth; look-up takes no lock.
// LIMIT: 2^26 slots; beyond, take returns fewer than asked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/chunk_table.hpp"
#include "base/raw_mutex.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class slot_table {
 public:
  // instance is the process's table. Constant-initialized, never destroyed: late calls from static
  // destructors find it.
  [[nodiscard]] static slot_table& instance() noexcept;

  // find returns the slot of that index, or null where no such slot exists yet. Any number is
  // legal. Never locks.
  [[nodiscard]] slot* find(std::uint32_t index) const noexcept { return slots_.find(index); }

  // take moves up to `count` vacant slots into `out` and returns how many; fewer only when memory
  // or the limit is reached.
  [[nodiscard]] std::size_t take(slot** out, std::size_t count) noexcept;

  // give_back returns vacant slots.
  void give_back(slot* const* slots, std::size_t count) noexcept;

  // size is how many slots exist; with find it walks the table.
  [[nodiscard]] std::uint32_t size() const noexcept {
    // acquire: pairs with grow: the chunks below that number exist.
    return static_cast<std::uint32_t>(chunk_count_.load(acquire) * table::chunk_size);
  }

 private:
  bool grow() noexcept;  // with lock_ held

  using table = chunk_table<slot, 512, (std::size_t{1} << 26) / 512>;

  table slots_;
  atomic<std::size_t> chunk_count_{0};  // written under lock_ (release), read by size
  raw_mutex lock_;
  slot* free_ = nullptr;  // guarded by lock_
};

}  // namespace smarm::detail
