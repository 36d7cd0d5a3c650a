// Cells whose blocks the thread has not at hand, and overaligned and large ones; see cell_pool.hpp.
#include "sync/cell_pool.hpp"

namespace smarm::detail {

void* cell_layout::allocate_slowly(const value_type& type) const {
  const std::size_t size = offset_ + type.size;
  return cell_in(type.align <= pooled_align_max
                     ? pool_allocate(size)
                     : ::operator new(size, std::align_val_t(type.align)));
}

void cell_layout::free_slowly(const value_type& type, void* memory) const noexcept {
  const std::size_t size = offset_ + type.size;
  if (type.align <= pooled_align_max) {
    pool_free(memory, size);
  } else {
    ::operator delete(memory, size, std::align_val_t(type.align));
  }
}

}  // namespace smarm::detail
