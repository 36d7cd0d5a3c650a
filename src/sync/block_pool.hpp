// block_pool keeps small blocks of memory, the cells of messages above all, close to who needs
// them.
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

#include <cstddef>

namespace smarm::detail {

// Blocks of up to so many bytes come from the pool; larger ones straight from the allocator.
inline constexpr std::size_t pooled_size_max = 128;

// pool_allocate returns memory aligned for 16, or for a cache line where the size is
// pooled_size_max. Throws std::bad_alloc. Never parks; takes a raw_mutex now and then.
[[nodiscard]] void* pool_allocate(std::size_t size);
// pool_free gives a block back; size is what it was allocated with.
void pool_free(void* block, std::size_t size) noexcept;

}  // namespace smarm::detail
