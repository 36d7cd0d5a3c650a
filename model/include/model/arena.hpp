// arena is the memory of one run: blocks at addresses that depend on the thread and on how many
// blocks it had before, and on nothing else, so that a run that is repeated sees the same pointers.
//
// Invariants
//   1. A block is never used again within a run: a pointer into a freed block stays wrong.
//   2. A freed block is filled with a pattern; at the end of the run the pattern is still there.
//   3. reset() forgets everything; nothing is destroyed by it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "model/clock.hpp"
#include "model/fiber.hpp"

namespace model {

struct block {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::uint32_t site = 0;
  bool freed = false;
  bool kept = false;  // the checker's own: not a leak
};

class arena {
 public:
  // LIMIT: what one thread may allocate in one run.
  static constexpr std::size_t region_size = std::size_t{64} << 20;
  static constexpr unsigned char pattern_fresh = 0xcd;
  static constexpr unsigned char pattern_freed = 0xdd;

  // Where every arena of every process lies, one at a time: pointers are the same in a replay.
  static constexpr std::uintptr_t reserved_at = 0x200000000000;

  arena() {
    void* mapped = ::mmap(reinterpret_cast<void*>(reserved_at), region_size * threads_max,
                          PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == MAP_FAILED) {
      std::fputs("model: the arena's addresses are taken; one check at a time\n", stderr);
      std::abort();
    }
    base_ = static_cast<char*>(mapped);
  }
  [[nodiscard]] static bool is_reserved(const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) - reserved_at < region_size * threads_max;
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena() {
    reset();
    ::munmap(base_, region_size * threads_max);
  }

  // allocate returns fresh memory for `thread`, or null if its region is full.
  [[nodiscard]] void* allocate(std::size_t thread, std::size_t size, std::size_t alignment,
                               std::uint32_t site, bool kept) {
    region& r = regions_[thread];
    const std::size_t wanted = std::max<std::size_t>(alignment, 16);
    const std::size_t offset = (r.used + wanted - 1) / wanted * wanted;
    if (offset + size + 16 > region_size) return nullptr;
    r.used = offset + size + 16;  // a gap, so that neighbours are told apart
    r.blocks.push_back({offset, size, site, false, kept});
    char* at = base_ + thread * region_size + offset;
    std::memset(at, pattern_fresh, size);
    return at;
  }

  [[nodiscard]] static bool holds(const void* address) { return is_reserved(address); }

  // find returns the block that an address lies in, or null.
  [[nodiscard]] block* find(const void* address) {
    const auto distance = static_cast<std::size_t>(static_cast<const char*>(address) - base_);
    auto& blocks = regions_[distance / region_size].blocks;
    const std::size_t offset = distance % region_size;
    auto after = std::upper_bound(blocks.begin(), blocks.end(), offset,
                                  [](std::size_t o, const block& b) { return o < b.offset; });
    if (after == blocks.begin()) return nullptr;
    --after;
    return offset < after->offset + std::max<std::size_t>(after->size, 1) ? &*after : nullptr;
  }

  [[nodiscard]] bool is_freed(const void* address) {
    if (!holds(address)) return false;
    const block* b = find(address);
    return b != nullptr && b->freed;
  }

  [[nodiscard]] char* address_of(const block& b, const void* within) const {
    const auto distance = static_cast<std::size_t>(static_cast<const char*>(within) - base_);
    return base_ + distance / region_size * region_size + b.offset;
  }

  // free marks the block as gone. Precondition: it was not freed.
  void free(block& b, void* address) {
    b.freed = true;
    std::memset(address, pattern_freed, b.size);
#if defined(MODEL_ASAN)
    __asan_poison_memory_region(address, b.size);
#endif
  }

  // for_each visits every block of the run with its thread and its address.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t t = 0; t < threads_max; ++t)
      for (block& b : regions_[t].blocks) visit(t, b, base_ + t * region_size + b.offset);
  }

  // is_untouched: nobody wrote into the block after it was freed.
  [[nodiscard]] static bool is_untouched([[maybe_unused]] const block& b,
                                         [[maybe_unused]] const char* address) {
#if !defined(MODEL_ASAN)
    for (std::size_t i = 0; i < b.size; ++i)
      if (static_cast<unsigned char>(address[i]) != pattern_freed) return false;
#endif
    return true;
  }

  void reset() {
    for (std::size_t t = 0; t < threads_max; ++t) {
#if defined(MODEL_ASAN)
      if (regions_[t].used)
        __asan_unpoison_memory_region(base_ + t * region_size, regions_[t].used);
#endif
      regions_[t].used = 0;
      regions_[t].blocks.clear();
    }
  }

 private:
  struct region {
    std::size_t used = 0;
    std::vector<block> blocks;
  };

  char* base_ = nullptr;
  std::array<region, threads_max> regions_;
};

}  // namespace model
