// block_pool keeps small blocks of memory, the cells of messages and the functions of actors above
// all, close to who needs them.
//
// Each thread has two magazines for each size: it takes from one and gives to one without a lock,
// and trades full and empty magazines with a depot that all threads share. So a block that is
// allocated on one thread and freed on another, which is what a message does, costs a lock once in
// a magazine and never meets the lock of an allocator's arena.
//
// Invariants
//   1. A block is in use, in one magazine, or in a magazine of the depot.
//   2. LIMIT: a thread holds at most two magazines of a size, the depot at most magazines_max; what
//      is beyond goes back to the allocator, so that a burst of messages does not keep its memory.
// Threads: any. A thread's magazines go to the depot when it ends.
// Why not the allocator alone: its per-thread cache holds seven blocks of a size, and a queue of
// messages that one thread fills and another empties overflows it at every turn.
#pragma once

#include <array>
#include <cstddef>
#include <new>

#include "fiber/current.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define SMARM_POOL_OFF 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SMARM_POOL_OFF 1
#endif
#endif

namespace smarm::detail {

// AddressSanitizer watches each block by itself, which a pool would hide from it.
#ifdef SMARM_POOL_OFF
inline constexpr bool pool_is_on = false;
#else
inline constexpr bool pool_is_on = true;
#endif

// Blocks of up to so many bytes come from the pool; larger ones straight from the allocator.
inline constexpr std::size_t pooled_size_max = 256;

inline constexpr std::size_t pool_granule = 16;
inline constexpr std::size_t pool_classes = pooled_size_max / pool_granule;

// What a free block holds. The first of a magazine in the depot also links to the next magazine.
struct free_block {
  free_block* next;
  free_block* next_magazine;
};
static_assert(sizeof(free_block) <= pool_granule);

struct magazine {
  free_block* first = nullptr;
  std::size_t count = 0;

  [[nodiscard]] free_block* pop() noexcept {
    free_block* const block = first;
    first = block->next;
    --count;
    return block;
  }
  void push(free_block* block) noexcept {
    block->next = first;
    first = block;
    ++count;
  }
};

// A thread's magazines of one size. `spare` is empty or full.
struct magazine_pair {
  magazine loaded;
  magazine spare;
  std::size_t capacity = 0;  // constant; here, so that a free needs no division
};
using thread_blocks = std::array<magazine_pair, pool_classes>;

// What the fast paths below leave to block_pool.cpp.
[[nodiscard]] void* pool_allocate_slowly(std::size_t size);
void pool_free_slowly(void* block, std::size_t size) noexcept;

[[nodiscard]] constexpr std::size_t pool_class(std::size_t size) noexcept {
  return (size + pool_granule - 1) / pool_granule - 1;
}

// pool_take returns a block of the class that the thread has at hand, or null.
[[nodiscard]] inline void* pool_take(std::size_t of_class) noexcept {
  auto* const mine = static_cast<thread_blocks*>(current_thread().blocks);
  if (!pool_is_on || mine == nullptr) [[unlikely]]
    return nullptr;
  magazine& loaded = (*mine)[of_class].loaded;
  return loaded.count > 0 ? loaded.pop() : nullptr;
}

// pool_give keeps a block of the class at hand; false: there is no room.
[[nodiscard]] inline bool pool_give(std::size_t of_class, void* block) noexcept {
  auto* const mine = static_cast<thread_blocks*>(current_thread().blocks);
  if (!pool_is_on || mine == nullptr) [[unlikely]]
    return false;
  magazine_pair& pair = (*mine)[of_class];
  if (pair.loaded.count >= pair.capacity) [[unlikely]]
    return false;
  pair.loaded.push(::new (block) free_block);
  return true;
}

// pool_allocate returns memory aligned for 16, or for a cache line where the size is a multiple of
// two of them. size is not 0. Throws std::bad_alloc. Never parks; takes a raw_mutex now and
// then.
[[nodiscard]] inline void* pool_allocate(std::size_t size) {
  if (size <= pooled_size_max) [[likely]] {
    if (void* const block = pool_take(pool_class(size))) [[likely]]
      return block;
  }
  return pool_allocate_slowly(size);
}

// pool_free gives a block back; size is what it was allocated with.
inline void pool_free(void* block, std::size_t size) noexcept {
  if (size <= pooled_size_max && pool_give(pool_class(size), block)) [[likely]]
    return;
  pool_free_slowly(block, size);
}

}  // namespace smarm::detail
