// The cells that values travel in: where they come from and go to.
//
// A cell is a node, and right behind it the value; it is named by its node inside the library and
// by its value in the templates.
// Threads: any; a cell may be freed on another thread than it was allocated on.
#pragma once

#include <cstddef>

#include <smarm/detail/value_type.hpp>

#include "base/atomic.hpp"

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

// cell_allocate makes a cell with room for one value. Throws std::bad_alloc.
[[nodiscard]] void* cell_allocate(const value_type& type);
void cell_free(const value_type& type, void* cell) noexcept;

}  // namespace smarm::detail
