// The lock-free hot paths as machine code, to be compared: `unpark`, and push and pop of the run
// queues. It is compiled with base/atomic.hpp as it is, and twice with raw_atomic.hpp in
// its place; compare.py disassembles the three. Nothing links it.
#include "sched/run_queue.cpp"  // NOLINT(bugprone-suspicious-include)
#include "sched/slot_state.hpp"

namespace smarm::detail {

// unpark_code is slot_state::unpark as a function of its own.
slot_state::unparked unpark_code(slot_state& word, std::uint64_t ticket) noexcept;
slot_state::unparked unpark_code(slot_state& word, std::uint64_t ticket) noexcept {
  return word.unpark(ticket);
}

// The same for a scheduler's own queue.
bool local_push_code(local_ring<256>& ring, slot& runnable) noexcept;
bool local_push_code(local_ring<256>& ring, slot& runnable) noexcept { return ring.push(runnable); }
slot* local_pop_code(local_ring<256>& ring) noexcept;
slot* local_pop_code(local_ring<256>& ring) noexcept { return ring.pop(); }

}  // namespace smarm::detail
