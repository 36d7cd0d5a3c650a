// The magazines and the depot; see block_pool.hpp.
#include "sync/block_pool.hpp"

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/current.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define SMARM_POOL_OFF 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SMARM_POOL_OFF 1
#endif
#endif

namespace smarm::detail {

namespace {

// AddressSanitizer watches each block by itself, which a pool would hide from it.
#ifdef SMARM_POOL_OFF
constexpr bool pool_is_on = false;
#else
constexpr bool pool_is_on = true;
#endif

constexpr std::size_t granule = 16;
constexpr std::size_t classes = pooled_size_max / granule;
constexpr std::size_t cache_line = 64;
// A magazine is so many bytes, whatever the size of its blocks, and so is the depot's limit.
constexpr std::size_t magazine_bytes = 8 * 1024;
constexpr std::size_t magazines_max = 64;

constexpr std::size_t class_of(std::size_t size) noexcept {
  return (size + granule - 1) / granule - 1;
}
constexpr std::size_t class_size(std::size_t index) noexcept { return (index + 1) * granule; }

// What a free block holds. The first of a magazine in the depot also links to the next magazine.
struct free_block {
  free_block* next;
  free_block* next_magazine;
};
static_assert(sizeof(free_block) <= granule);

struct magazine {
  free_block* first = nullptr;
  std::size_t count = 0;

  [[nodiscard]] free_block* pop() noexcept {
    free_block* const block = first;
    first = block->next;
    --count;
    return block;
  }
  void push(free_block* block) noexcept {
    block->next = first;
    first = block;
    ++count;
  }
};

// A thread's magazines of one size. `spare` is empty or full.
struct magazine_pair {
  magazine loaded;
  magazine spare;
  std::size_t capacity = 0;  // constant; here, so that a free needs no division
};
using thread_blocks = std::array<magazine_pair, classes>;

struct depot_class {
  raw_mutex lock;
  free_block* magazines = nullptr;  // guarded by lock; each is full
  std::size_t count = 0;            // guarded by lock
};
// Never destroyed: blocks may be freed by destructors of static objects.
constinit std::array<depot_class, classes> depot;

constexpr std::size_t magazine_capacity(std::size_t index) noexcept {
  return magazine_bytes / class_size(index);
}

void* allocate_block(std::size_t index) {
  const std::size_t size = class_size(index);
  void* const block = size % cache_line == 0 && index + 1 == classes
                          ? std::aligned_alloc(cache_line, size)
                          : std::malloc(size);
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
  for (std::size_t index = 0; index < classes; ++index) {
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
[[gnu::noinline]] thread_blocks* adopt_thread() noexcept {
  static const pthread_key_t key = make_release_key();
  void* const memory = std::malloc(sizeof(thread_blocks));
  if (memory == nullptr) return nullptr;
  auto* const mine = ::new (memory) thread_blocks;
  for (std::size_t index = 0; index < classes; ++index) {
    (*mine)[index].capacity = magazine_capacity(index);
  }
  if (pthread_setspecific(key, mine) != 0) {
    std::free(memory);
    return nullptr;
  }
  current_thread().blocks = mine;
  return mine;
}

[[gnu::always_inline]] inline thread_blocks* this_thread() noexcept {
  void* const mine = current_thread().blocks;
  return mine != nullptr ? static_cast<thread_blocks*>(mine) : adopt_thread();
}

[[gnu::noinline]] void* allocate_slowly(std::size_t index, magazine_pair* mine) {
  if (mine == nullptr) return allocate_block(index);
  if (mine->spare.count > 0) {
    std::swap(mine->loaded, mine->spare);
  } else if (!withdraw(index, mine->loaded)) {
    return allocate_block(index);
  }
  return mine->loaded.pop();
}

[[gnu::noinline]] void free_slowly(free_block* block, std::size_t index, magazine_pair* mine) {
  if (mine == nullptr) {
    std::free(block);
    return;
  }
  if (mine->spare.count > 0) deposit(index, mine->spare);
  std::swap(mine->loaded, mine->spare);
  mine->loaded.push(block);
}

// The way past the pool, for what is too large and where the pool is off.
void* allocate_plainly(std::size_t size) {
  return size == pooled_size_max ? ::operator new(size, std::align_val_t(cache_line))
                                 : ::operator new(size);
}

void free_plainly(void* block, std::size_t size) noexcept {
  if (size == pooled_size_max) {
    ::operator delete(block, size, std::align_val_t(cache_line));
  } else {
    ::operator delete(block, size);
  }
}

}  // namespace

void* pool_allocate(std::size_t size) {
  if (!pool_is_on || size > pooled_size_max) [[unlikely]]
    return allocate_plainly(size);
  const std::size_t index = class_of(size);
  thread_blocks* const mine = this_thread();
  magazine_pair* const pair = mine == nullptr ? nullptr : &(*mine)[index];
  if (pair == nullptr || pair->loaded.count == 0) [[unlikely]]
    return allocate_slowly(index, pair);
  return pair->loaded.pop();
}

void pool_free(void* block, std::size_t size) noexcept {
  if (!pool_is_on || size > pooled_size_max) [[unlikely]]
    return free_plainly(block, size);
  const std::size_t index = class_of(size);
  thread_blocks* const mine = this_thread();
  magazine_pair* const pair = mine == nullptr ? nullptr : &(*mine)[index];
  auto* const freed = ::new (block) free_block;
  if (pair == nullptr || pair->loaded.count == pair->capacity) [[unlikely]] {
    return free_slowly(freed, index, pair);
  }
  pair->loaded.push(freed);
}

}  // namespace smarm::detail
