// slot_table holds every actor slot of the process: found by index, taken and given back in
// batches.
//
// One table for all runtimes, so a pid is unique in the process and a pid of another runtime is
// recognised. It grows by chunks and never shrinks: slots are type-stable (see slot.hpp).
//
// Invariants
//   1. A chunk's pointer is written once, after its slots have been initialized.
//   2. A vacant slot is in exactly one free list: the table's, or a scheduler's cache.
// Threads: any. `lock_` guards the free list and growth; look-up takes no lock.
// LIMIT: 2^26 slots; beyond, take returns fewer than asked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class slot_table {
 public:
  static constexpr std::uint32_t chunk_slots = 512;
  static constexpr std::uint32_t chunks_max = (1U << 26) / chunk_slots;

  // instance is the process's table. Constant-initialized, never destroyed: late calls from static
  // destructors find it.
  [[nodiscard]] static slot_table& instance() noexcept;

  // find returns the slot of that index, or null where no such slot exists yet. Any number is
  // legal. Never locks.
  [[nodiscard]] slot* find(std::uint32_t index) noexcept;

  // take moves up to `count` vacant slots into `out` and returns how many; fewer only when memory
  // or the limit is reached.
  [[nodiscard]] std::size_t take(slot** out, std::size_t count) noexcept;

  // give_back returns vacant slots.
  void give_back(slot* const* slots, std::size_t count) noexcept;

  // size is how many slots exist; with find it walks the table.
  [[nodiscard]] std::uint32_t size() const noexcept {
    return chunk_count_.load(acquire) * chunk_slots;  // pairs with grow: the chunks below exist
  }

 private:
  bool grow() noexcept;  // with lock_ held

  // Written once each by grow (release), read by find (acquire): publishes the chunk's slots.
  atomic<slot*> chunks_[chunks_max]{};
  atomic<std::uint32_t> chunk_count_{0};  // written under lock_ (release), read by size
  raw_mutex lock_;
  slot* free_ = nullptr;  // guarded by lock_
};

}  // namespace smarm::detail
