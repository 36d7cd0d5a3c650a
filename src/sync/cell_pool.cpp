// Cells from the block pool, or, overaligned ones, from the allocator; see cell_pool.hpp.
#include "sync/cell_pool.hpp"

#include <algorithm>
#include <new>

#include "sync/block_pool.hpp"

namespace smarm::detail {

namespace {

constexpr std::size_t pooled_align_max = 16;

// The value stands at this distance from the beginning of its memory, and the node right before it.
constexpr std::size_t value_offset(const value_type& type) noexcept {
  return std::max(sizeof(node), type.align);
}

}  // namespace

void* cell_allocate(const value_type& type) {
  const std::size_t offset = value_offset(type);
  const std::size_t size = offset + type.size;
  auto* const memory = static_cast<std::byte*>(
      type.align <= pooled_align_max ? pool_allocate(size)
                                     : ::operator new(size, std::align_val_t(type.align)));
  ::new (memory + offset - sizeof(node)) node;
  return memory + offset;
}

void cell_free(const value_type& type, void* cell) noexcept {
  const std::size_t offset = value_offset(type);
  const std::size_t size = offset + type.size;
  std::byte* const memory = static_cast<std::byte*>(cell) - offset;
  if (type.align <= pooled_align_max) {
    pool_free(memory, size);
  } else {
    ::operator delete(memory, size, std::align_val_t(type.align));
  }
}

}  // namespace smarm::detail
