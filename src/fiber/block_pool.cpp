// The magazines and the depot; see block_pool.hpp.
#include "fiber/block_pool.hpp"

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/current.hpp"

namespace smarm::detail {

namespace {

constexpr std::size_t cache_line = 64;
// A magazine is so many bytes, whatever the size of its blocks, and so is the depot's limit.
constexpr std::size_t magazine_bytes = 8'192;
constexpr std::size_t magazines_max = 64;

constexpr std::size_t class_size(std::size_t index) noexcept { return (index + 1) * pool_granule; }

struct depot_class {
  raw_mutex lock;
  free_block* magazines = nullptr;  // guarded by lock; each is full
  std::size_t count = 0;            // guarded by lock
};
// Never destroyed: blocks may be freed by destructors of static objects.
constinit std::array<depot_class, pool_classes> depot;

constexpr std::size_t magazine_capacity(std::size_t index) noexcept {
  return magazine_bytes / class_size(index);
}

// Whether blocks of the size lie on cache lines; smaller ones would waste half of their memory.
constexpr bool lies_on_lines(std::size_t size) noexcept { return size % (2 * cache_line) == 0; }

void* allocate_block(std::size_t index) {
  const std::size_t size = class_size(index);
  void* const block =
      lies_on_lines(size) ? std::aligned_alloc(cache_line, size) : std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void free_all(magazine& blocks) noexcept {
  while (blocks.count > 0) std::free(blocks.pop());
}

// deposit takes a magazine away: into the depot if it is full and there is room.
void deposit(std::size_t index, magazine& full) noexcept {
  depot_class& shelf = depot[index];
  if (full.count == magazine_capacity(index)) {
    const raw_guard guard(shelf.lock);
    if (shelf.count < magazines_max) {
      full.first->next_magazine = shelf.magazines;
      shelf.magazines = full.first;
      ++shelf.count;
      full = {};
      return;
    }
  }
  free_all(full);
}

// withdraw fetches a full magazine; false: there is none.
bool withdraw(std::size_t index, magazine& empty) noexcept {
  depot_class& shelf = depot[index];
  const raw_guard guard(shelf.lock);
  if (shelf.magazines == nullptr) return false;
  empty.first = shelf.magazines;
  empty.count = magazine_capacity(index);
  shelf.magazines = empty.first->next_magazine;
  --shelf.count;
  return true;
}

void release_thread(void* blocks) {
  auto* const mine = static_cast<thread_blocks*>(blocks);
  current_thread().blocks = nullptr;
  for (std::size_t index = 0; index < pool_classes; ++index) {
    deposit(index, (*mine)[index].loaded);
    deposit(index, (*mine)[index].spare);
  }
  std::free(mine);
}

pthread_key_t make_release_key() noexcept {
  pthread_key_t key{};
  const int error = pthread_key_create(&key, &release_thread);
  SMARM_ASSERT(error == 0, "there is a key for the end of a thread", error);
  return key;
}

// adopt_thread gives this thread its magazines; null: there is no memory for them.
thread_blocks* adopt_thread() noexcept {
  static const pthread_key_t key = make_release_key();
  void* const memory = std::malloc(sizeof(thread_blocks));
  if (memory == nullptr) return nullptr;
  auto* const mine = ::new (memory) thread_blocks;
  for (std::size_t index = 0; index < pool_classes; ++index) {
    (*mine)[index].capacity = magazine_capacity(index);
  }
  if (pthread_setspecific(key, mine) != 0) {
    std::free(memory);
    return nullptr;
  }
  current_thread().blocks = mine;
  return mine;
}

thread_blocks* this_thread() noexcept {
  void* const mine = current_thread().blocks;
  return mine != nullptr ? static_cast<thread_blocks*>(mine) : adopt_thread();
}

// The way past the pool, for what is too large and where the pool is off.
void* allocate_plainly(std::size_t size) {
  return lies_on_lines(size) ? ::operator new(size, std::align_val_t(cache_line))
                             : ::operator new(size);
}

void free_plainly(void* block, std::size_t size) noexcept {
  if (lies_on_lines(size)) {
    ::operator delete(block, size, std::align_val_t(cache_line));
  } else {
    ::operator delete(block, size);
  }
}

}  // namespace

void* pool_allocate_slowly(std::size_t size) {
  if (!pool_is_on || size > pooled_size_max) return allocate_plainly(size);
  const std::size_t index = pool_class(size);
  thread_blocks* const mine = this_thread();
  if (mine == nullptr) return allocate_block(index);
  magazine_pair& pair = (*mine)[index];
  if (pair.spare.count > 0) {
    std::swap(pair.loaded, pair.spare);
  } else if (pair.loaded.count == 0 && !withdraw(index, pair.loaded)) {
    return allocate_block(index);
  }
  return pair.loaded.pop();
}

void pool_free_slowly(void* block, std::size_t size) noexcept {
  if (!pool_is_on || size > pooled_size_max) return free_plainly(block, size);
  const std::size_t index = pool_class(size);
  thread_blocks* const mine = this_thread();
  if (mine == nullptr) return std::free(block);
  magazine_pair& pair = (*mine)[index];
  if (pair.loaded.count == pair.capacity) {
    if (pair.spare.count > 0) deposit(index, pair.spare);
    std::swap(pair.loaded, pair.spare);
  }
  pair.loaded.push(::new (block) free_block);
}

}  // namespace smarm::detail
