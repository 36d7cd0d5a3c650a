// The table of descriptor numbers: chunks mapped when first needed and kept for good.
#include "io/fd_table.hpp"

#include <sys/mman.h>

#include <new>

namespace smarm::detail {
namespace {

// Written once for each chunk by fd_entry_for. Publishes the entries' construction.
atomic<fd_entry*> chunks[fd_chunks::count];

fd_entry* make_chunk(int chunk) noexcept {
  constexpr std::size_t bytes = sizeof(fd_entry) * fd_chunks::size;
  // Mapped and not allocated: it stays to the end of the process and is no leak of any test's.
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const made = static_cast<fd_entry*>(memory);
  for (int i = 0; i < fd_chunks::size; ++i) ::new (static_cast<void*>(made + i)) fd_entry;
  fd_entry* present = nullptr;
  // release pairs with find: publishes the constructed entries. acquire on failure: another
  // thread's chunk is used instead.
  if (chunks[chunk].compare_exchange_strong(present, made, acq_rel, acquire)) return made;
  ::munmap(memory, bytes);
  return present;
}

}  // namespace

fd_entry* fd_chunks::find(int chunk) noexcept {
  // acquire pairs with make_chunk: without it the entries might be seen unconstructed.
  return chunks[chunk].load(acquire);
}

fd_entry* find_fd(int fd) noexcept {
  if (fd < 0 || fd >= fd_table_max) return nullptr;
  fd_entry* const chunk = fd_chunks::find(fd / fd_chunks::size);
  return chunk == nullptr ? nullptr : chunk + fd % fd_chunks::size;
}

fd_entry* fd_entry_for(int fd) noexcept {
  if (fd < 0 || fd >= fd_table_max) return nullptr;
  if (fd_entry* const present = find_fd(fd)) return present;
  fd_entry* const made = make_chunk(fd / fd_chunks::size);
  return made == nullptr ? nullptr : made + fd % fd_chunks::size;
}

}  // namespace smarm::detail
