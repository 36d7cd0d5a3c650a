// slot_word is a decoded copy of the word of slot_state.hpp, which draws its bits and transitions.
// Pure.
#pragma once

#include <cstdint>

namespace smarm::detail {

enum class run_state : std::uint8_t {
  vacant,    // in a free list; nobody's
  queued,    // in exactly one run queue or run-next; nobody owns the stack
  running,   // on a scheduler, which owns the stack
  notified,  // running, and the wake of the open wait has come already: it will not park
  parked,    // registered with what it waits for; whoever unparks it owns the next step
};

class slot_word {
 public:
  static constexpr std::uint64_t state_mask = 0x7;
  // Of a copy only: the word itself never has it, see slot_state.
  static constexpr std::uint64_t stop_flag = 1U << 3;
  static constexpr std::uint64_t shield_flag = 1U << 4;
  static constexpr std::uint64_t done_flag = 1U << 5;
  static constexpr unsigned epoch_shift = 6;
  static constexpr std::uint64_t epoch_one = std::uint64_t{1} << epoch_shift;
  static constexpr std::uint64_t epoch_mask = ((std::uint64_t{1} << 30) - 1) << epoch_shift;
  static constexpr unsigned generation_shift = 36;
  static constexpr std::uint32_t generation_max = (std::uint32_t{1} << 28) - 1;
  // ticket_mask covers what identifies a wait: generation and epoch.
  static constexpr std::uint64_t ticket_mask = ~std::uint64_t{0x3f};

  constexpr explicit slot_word(std::uint64_t bits) noexcept : bits_(bits) {}

  static constexpr slot_word make(std::uint32_t generation, run_state state) noexcept {
    return slot_word((std::uint64_t{generation} << generation_shift) |
                     static_cast<std::uint64_t>(state));
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr run_state state() const noexcept {
    return static_cast<run_state>(bits_ & state_mask);
  }
  [[nodiscard]] constexpr std::uint32_t generation() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> generation_shift);
  }
  [[nodiscard]] constexpr std::uint64_t ticket() const noexcept { return bits_ & ticket_mask; }
  [[nodiscard]] constexpr bool stop_requested() const noexcept { return (bits_ & stop_flag) != 0; }
  [[nodiscard]] constexpr bool is_shielded() const noexcept { return (bits_ & shield_flag) != 0; }
  [[nodiscard]] constexpr bool is_live() const noexcept {
    return state() != run_state::vacant && (bits_ & done_flag) == 0;
  }

  [[nodiscard]] constexpr bool is_live_as(std::uint32_t who) const noexcept {
    return generation() == who && is_live();
  }

  [[nodiscard]] constexpr slot_word with_state(run_state state) const noexcept {
    return slot_word((bits_ & ~state_mask) | static_cast<std::uint64_t>(state));
  }
  [[nodiscard]] constexpr slot_word with_stop() const noexcept {
    return slot_word(bits_ | stop_flag);
  }
  // next_epoch wraps within its field: an epoch comes again after 2^30 waits of one actor, and is
  // held meanwhile at most by a waker that is just being called.
  [[nodiscard]] constexpr slot_word next_epoch() const noexcept {
    return slot_word((bits_ & ~epoch_mask) | ((bits_ + epoch_one) & epoch_mask));
  }

 private:
  std::uint64_t bits_;
};

}  // namespace smarm::detail
