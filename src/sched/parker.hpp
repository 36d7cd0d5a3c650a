// parker puts one thread to sleep and wakes it, with a permit: an unpark that comes first is kept.
//
// Invariants
//   1. empty -> permit by unpark, permit -> empty by park; `waiting` only while its thread is about
//      to sleep or asleep. Permits do not add up.
//   2. Only an unpark that found `waiting` calls the kernel.
// Threads: park by the owner only; unpark by anybody, also long after the owner has gone on.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/clock.hpp"

namespace smarm::detail {

class parker {
 public:
  // park waits for the permit and takes it: true; or until the deadline: false. Blocks the thread.
  bool park(std::int64_t deadline_ns) noexcept;

  // unpark leaves a permit and wakes the owner if it sleeps. Never blocks.
  void unpark() noexcept;

 private:
  enum : std::uint32_t { empty, permit, waiting };

  atomic<std::uint32_t> state_{empty};
};

}  // namespace smarm::detail
