// The table of descriptor numbers: chunks mapped when first needed and kept for good.
#include "io/fd_table.hpp"

#include <sys/mman.h>

#include <memory>

namespace smarm::detail {
namespace {

constinit fd_table the_table;

// Sees to it that the chunk is there; false: no memory.
bool make_chunk(std::size_t chunk) noexcept {
  constexpr std::size_t bytes = sizeof(fd_entry) * fd_table::chunk_size;
  // Mapped and not allocated: it stays to the end of the process and is no leak of any test's.
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* const made = static_cast<fd_entry*>(memory);
  std::uninitialized_default_construct_n(made, fd_table::chunk_size);
  if (the_table.publish(chunk, made) != made) ::munmap(memory, bytes);  // another thread's stands
  return true;
}

}  // namespace

const fd_table& fd_table_of_process() noexcept { return the_table; }

fd_entry* find_fd(int fd) noexcept {
  return fd < 0 ? nullptr : the_table.find(static_cast<std::size_t>(fd));
}

fd_entry* fd_entry_for(int fd) noexcept {
  if (fd < 0 || fd >= fd_table_max) return nullptr;
  if (fd_entry* const present = find_fd(fd)) return present;
  return make_chunk(static_cast<std::size_t>(fd) / fd_table::chunk_size) ? find_fd(fd) : nullptr;
}

}  // namespace smarm::detail
