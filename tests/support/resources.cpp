// The counting operator new and delete, and the count of descriptors; see resources.hpp.
#include "tests/support/resources.hpp"

#include <dirent.h>

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMARM_TEST_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SMARM_TEST_COUNTS 0
#endif
#endif
#ifndef SMARM_TEST_COUNTS
#define SMARM_TEST_COUNTS 1
#endif

namespace smarm::test {

namespace {

// Counters by address, so that threads which allocate do not all meet on one cache line; a block
// finds the counter it was counted in again when it is deleted.
struct alignas(64) counter {
  std::atomic<std::int64_t> live{0};
};
constexpr std::size_t counters = 64;
constinit counter counts[counters];

[[maybe_unused]] void count(void* block, std::int64_t by) noexcept {
  const auto page = reinterpret_cast<std::uintptr_t>(block) >> 12;
  counts[page % counters].live.fetch_add(by, std::memory_order_relaxed);  // relaxed: a count
}

}  // namespace

std::int64_t live_allocations() noexcept {
  std::int64_t sum = 0;
  for (const counter& one : counts) sum += one.live.load(std::memory_order_relaxed);
  return sum;
}

std::size_t open_descriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  std::size_t found = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++found;
  }
  closedir(directory);
  return found - 1;  // the directory itself was open
}

}  // namespace smarm::test

#if SMARM_TEST_COUNTS

namespace {

void* counted_allocate(std::size_t size, std::size_t align) {
  void* const block = align <= alignof(std::max_align_t)
                          ? std::malloc(size == 0 ? 1 : size)
                          : std::aligned_alloc(align, (size + align - 1) / align * align);
  if (block == nullptr) throw std::bad_alloc();
  smarm::test::count(block, 1);
  return block;
}

void counted_free(void* block) noexcept {
  if (block == nullptr) return;
  smarm::test::count(block, -1);
  std::free(block);
}

}  // namespace

// The array, nothrow and sized forms of the standard library call these.
void* operator new(std::size_t size) { return counted_allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t align) {
  return counted_allocate(size, static_cast<std::size_t>(align));
}
void operator delete(void* block) noexcept { counted_free(block); }
void operator delete(void* block, std::size_t) noexcept { counted_free(block); }
void operator delete(void* block, std::align_val_t) noexcept { counted_free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { counted_free(block); }

#endif
