// The cells that values travel in: where they come from and go to.
//
// A cell is a node, and right behind it the value; it is named by its node inside the library and
// by its value in the templates.
// Threads: any; a cell may be freed on another thread than it was allocated on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include <smarm/detail/value_type.hpp>

#include "base/atomic.hpp"
#include "fiber/block_pool.hpp"

namespace smarm::detail {

struct node {
  // Written once by the sender that comes after; publishes that sender's value to the receiver.
  atomic<node*> next{nullptr};
};

[[nodiscard]] inline node* node_of(void* cell) noexcept {
  // SAFETY: every cell has a node right before its value.
  return reinterpret_cast<node*>(static_cast<std::byte*>(cell) - sizeof(node));
}
[[nodiscard]] inline void* cell_of(node* of) noexcept {
  return reinterpret_cast<std::byte*>(of) + sizeof(node);
}

// cell_layout is how the cells of a type are made, worked out once for each channel.
class cell_layout {
 public:
  explicit constexpr cell_layout(const value_type& type) noexcept
      : offset_(static_cast<std::uint32_t>(std::max(sizeof(node), type.align))),
        pool_class_(type.align <= pooled_align_max && offset_ + type.size <= pooled_size_max
                        ? static_cast<std::uint32_t>(pool_class(offset_ + type.size))
                        : not_pooled) {}

  // allocate makes a cell with room for one value. Throws std::bad_alloc.
  [[nodiscard]] void* allocate(const value_type& type) const {
    void* const block = pool_class_ == not_pooled ? nullptr : pool_take(pool_class_);
    if (block == nullptr) [[unlikely]]
      return allocate_slowly(type);
    return cell_in(block);
  }
  void free(const value_type& type, void* cell) const noexcept {
    void* const block = static_cast<std::byte*>(cell) - offset_;
    if (pool_class_ == not_pooled || !pool_give(pool_class_, block)) [[unlikely]] {
      free_slowly(type, block);
    }
  }

 private:
  static constexpr std::size_t pooled_align_max = 16;
  static constexpr std::uint32_t not_pooled = ~std::uint32_t{0};

  // The value stands at offset_ from the beginning of its memory, and the node right before it.
  [[nodiscard]] void* cell_in(void* memory) const noexcept {
    auto* const cell = static_cast<std::byte*>(memory) + offset_;
    ::new (cell - sizeof(node)) node;
    return cell;
  }
  [[nodiscard]] void* allocate_slowly(const value_type& type) const;
  void free_slowly(const value_type& type, void* memory) const noexcept;

  std::uint32_t offset_;
  std::uint32_t pool_class_;
};

}  // namespace smarm::detail
