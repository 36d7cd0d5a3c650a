// chunk_table is an array that grows by chunks and is looked up without a lock. What stands in it
// is never moved and never freed, so whoever has found an element may keep it.
//
// Invariants
//   1. A chunk's pointer is written once, after its elements have been constructed.
// Threads: any.
//
// The table makes no chunks: where their memory comes from is the owner's business.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"

namespace smarm::detail {

template <class T, std::size_t ChunkSize, std::size_t ChunkCount>
class chunk_table {
 public:
  static constexpr std::size_t chunk_size = ChunkSize;
  static constexpr std::size_t chunk_count = ChunkCount;
  static constexpr std::size_t size_max = ChunkSize * ChunkCount;

  // find returns the element of that number, or null where there is none (yet). Any number is
  // legal.
  [[nodiscard]] T* find(std::size_t index) const noexcept {
    if (index >= size_max) return nullptr;
    T* const first = find_chunk(index / ChunkSize);
    return first == nullptr ? nullptr : first + index % ChunkSize;
  }

  // find_chunk returns the first element of a chunk, of which there are fewer than chunk_count.
  [[nodiscard]] T* find_chunk(std::size_t chunk) const noexcept {
    // acquire: pairs with publish; without it the elements might be seen unconstructed.
    return chunks_[chunk].load(acquire);
  }

  // publish puts chunk_size constructed elements where there are none yet, and returns those that
  // stand there now: `made`, or another thread's that came first, and then `made` is still the
  // caller's.
  [[nodiscard]] T* publish(std::size_t chunk, T* made) noexcept {
    T* present = nullptr;
    // release: pairs with find_chunk: publishes the elements. acquire where another thread's stand:
    // they are used instead.
    return chunks_[chunk].compare_exchange_strong(present, made, release, acquire) ? made : present;
  }

 private:
  atomic<T*> chunks_[ChunkCount]{};
};

}  // namespace smarm::detail
