// release and clear_within empty a container so that its memory really goes back.
//
// Neither `held = {}` nor clear() does: the first assigns an empty list of elements, and a
// container that is assigned elements keeps its capacity; nor does `held = std::string()`, which
// copies a short text into the buffer that is there. A swap with a new container is what is
// certain. Pure. Threads: whoever owns the container.
#pragma once

#include <cstddef>

namespace sider {

// release empties `held` and frees its memory.
template <typename Container>
void release(Container& held) {
  Container().swap(held);
}

// clear_within empties `held`, whose memory is kept for its next use if it is bytes_max at most.
template <typename Container>
void clear_within(Container& held, std::size_t bytes_max) {
  if (held.capacity() > bytes_max / sizeof(typename Container::value_type)) {
    release(held);
  } else {
    held.clear();
  }
}

}  // namespace sider
