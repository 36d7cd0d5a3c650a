// fd_table has an entry for each descriptor number of the process: who waits for it, how it stands
// registered with the kernel, and, for a socket of ours, its life and its readiness.
//
// Invariants
//   1. An entry is never freed or moved, so an event that the kernel reported before a descriptor
//      was closed still finds memory that is an entry. Its registration number tells it apart.
//   2. What is marked "guarded" is read and written under the entry's lock. Nobody holds two.
//   3. hold_: only an open entry gains users, and of the users of a closed one the last closes the
//      descriptor. So a descriptor is open as long as anybody is inside an operation on it, and
//      its number is not given to a new socket before.
//
// Threads: any. The locks are the entries' own; nothing here is held by the end of a runtime while
// it joins a thread.
//
// Why by number, process-wide: the kernel's numbers are small, dense and unique while open, so an
// array takes the place of a map and its lock, and it does not matter in which runtime a
// descriptor is waited for. Waits for the descriptors of others use the same entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/chunk_table.hpp"
#include "base/raw_mutex.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

class epoll_set;

enum class fd_direction : std::uint8_t { read, write };

// fd_waiter is one wait for one direction. It lives on the waiter's stack; the entry points at it
// as long as it waits, and who takes it out of the entry writes the outcome under the lock.
struct fd_waiter {
  enum class outcome : std::uint8_t {
    none,    // nobody took it out
    ready,   // the kernel reported the direction
    closed,  // the descriptor was closed
    moved,   // wait again: the runtime whose thread watched it has ended, or the close is over
  };

  waker wake;
  outcome why = outcome::none;
};

// ready_bits make up what we know of one direction of a socket of ours. Bit 0: it may be ready, so
// an attempt makes sense. Bit 1: a short read does not prove the socket empty (the peer has closed,
// or sent urgent data). The rest counts the kernel's reports. See socket_wait.hpp for the protocol.
namespace ready_bits {
inline constexpr std::uint32_t ready = 1;
inline constexpr std::uint32_t inexact = 2;
inline constexpr std::uint32_t report = 4;
}  // namespace ready_bits

struct alignas(64) fd_entry {
  raw_mutex lock;
  std::uint32_t registration = 0;  // guarded: number of the registration; events carry it
  epoll_set* set = nullptr;        // guarded: where it is registered; null: nowhere
  fd_waiter* waiters[2] = {};      // guarded: by fd_direction
  std::uint32_t armed = 0;         // guarded: the events it is registered for; 0 where set is null
  bool owned = false;              // guarded: a socket of ours, registered to its end
  // guarded: closes of this number that are going on. Who begins a wait meanwhile is not
  // registered, for it would be with a descriptor that goes; the end of the close sends it to look
  // again.
  std::uint16_t closing = 0;

  // passes_descriptors: a local socket, whose reads may stop short at a passed descriptor. Written
  // by adopt before it publishes hold_, constant while the socket is open.
  bool passes_descriptors = false;

  // How many operations in a row got on without waiting, by direction. Only the one reader and the
  // one writer use theirs; atomic because a second one by mistake must not be a data race.
  atomic<std::uint8_t> streak[2] = {};

  // Written by dispatch (under the lock) and by operations (without). See ready_bits.
  atomic<std::uint32_t> readiness[2] = {};

  // generation << 32 | closed_bit | users. Written by adopt, enter, leave and close.
  atomic<std::uint64_t> hold_{closed_bit};

  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 31;
  static constexpr std::uint64_t users_mask = closed_bit - 1;
  static constexpr std::uint32_t generation_of(std::uint64_t hold) noexcept {
    return static_cast<std::uint32_t>(hold >> 32);
  }

  fd_waiter*& waiter(fd_direction direction) noexcept {
    return waiters[static_cast<std::size_t>(direction)];
  }
  atomic<std::uint32_t>& ready_word(fd_direction direction) noexcept {
    return readiness[static_cast<std::size_t>(direction)];
  }

  // is_open tells whether the socket of that generation is still open. Any thread.
  [[nodiscard]] bool is_open(std::uint32_t generation) const noexcept {
    // acquire pairs with close_socket: who sees it closed sees what the closer did before.
    const std::uint64_t hold = hold_.load(acquire);
    return generation_of(hold) == generation && (hold & closed_bit) == 0;
  }
};

static_assert(sizeof(fd_entry) == 64, "an entry is a cache line: 64 bytes a connection");

inline constexpr int fd_table_max = 1 << 24;  // LIMIT: descriptor numbers; EMFILE beyond
using fd_table = chunk_table<fd_entry, 1024, fd_table_max / 1024>;

// fd_table_of_process is for whoever walks it; fd_entry_for alone adds to it.
[[nodiscard]] const fd_table& fd_table_of_process() noexcept;

// find_fd returns the entry of the number, null where the table has never been asked for it.
[[nodiscard]] fd_entry* find_fd(int fd) noexcept;

// fd_entry_for returns the entry and makes it first where need be; null: the number is out of range
// or there is no memory.
[[nodiscard]] fd_entry* fd_entry_for(int fd) noexcept;

// for_each_fd calls visit(fd, entry) for each entry that exists.
template <class Visit>
void for_each_fd(Visit visit) {
  for (std::size_t chunk = 0; chunk < fd_table::chunk_count; ++chunk) {
    fd_entry* const entries = fd_table_of_process().find_chunk(chunk);
    for (std::size_t i = 0; entries != nullptr && i < fd_table::chunk_size; ++i) {
      visit(static_cast<int>(chunk * fd_table::chunk_size + i), entries[i]);
    }
  }
}

}  // namespace smarm::detail
