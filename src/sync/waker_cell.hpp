// waker_cell is where a receiver leaves its waker for the one sender that takes it.
//
// Who may touch it when is settled by the word beside it (a tag, a state) that the receiver sets
// afterwards and the sender clears before; so both halves are relaxed.
// Why not a plain waker: a compiler copies one by a 16-byte load, and a load that spans two younger
// 8-byte stores waits for both to leave the store buffer, five nanoseconds in each message.
#pragma once

#include <bit>
#include <cstdint>

#include "base/atomic.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

class waker_cell {
 public:
  void store(const waker& wake) noexcept {
    const auto parts = std::bit_cast<halves>(wake);
    // relaxed, both: the exchange that sets the tag publishes them.
    first_.store(parts.first, relaxed);
    second_.store(parts.second, relaxed);
  }
  [[nodiscard]] waker load() const noexcept {
    // relaxed, both: the exchange that cleared the tag has acquired them.
    return std::bit_cast<waker>(halves{first_.load(relaxed), second_.load(relaxed)});
  }

 private:
  struct halves {
    std::uint64_t first;
    std::uint64_t second;
  };
  static_assert(sizeof(halves) == sizeof(waker));

  atomic<std::uint64_t> first_{0};
  atomic<std::uint64_t> second_{0};
};

}  // namespace smarm::detail
