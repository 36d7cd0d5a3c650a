// What a test may leave behind, counted: live allocations and open file descriptors.
//
// Every operator new and delete of a test program goes through resources.cpp, which counts the
// blocks that live. Under a sanitizer it does not: the sanitizer's own allocator finds leaks
// better.
#pragma once

#include <cstddef>
#include <cstdint>

namespace smarm::test {

// live_allocations() is how many blocks of operator new have not been deleted; 0 where it is not
// counted. Any thread.
[[nodiscard]] std::int64_t live_allocations() noexcept;

// open_descriptors() is how many file descriptors this process has open. Any thread.
[[nodiscard]] std::size_t open_descriptors();

}  // namespace smarm::test
