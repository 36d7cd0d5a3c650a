// Cells from the allocator of the program; see cell_pool.hpp.
#include "sync/cell_pool.hpp"

#include <algorithm>
#include <new>

namespace smarm::detail {

namespace {

// The value stands at this distance from the beginning of its memory, and the node right before it.
constexpr std::size_t value_offset(const value_type& type) noexcept {
  return std::max(sizeof(node), type.align);
}

}  // namespace

void* cell_allocate(const value_type& type) {
  const std::size_t offset = value_offset(type);
  auto* const memory =
      static_cast<std::byte*>(::operator new(offset + type.size, std::align_val_t(type.align)));
  ::new (memory + offset - sizeof(node)) node;
  return memory + offset;
}

void cell_free(const value_type& type, void* cell) noexcept {
  const std::size_t offset = value_offset(type);
  ::operator delete(static_cast<std::byte*>(cell) - offset, offset + type.size,
                    std::align_val_t(type.align));
}

}  // namespace smarm::detail
