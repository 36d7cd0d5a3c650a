// context is the bare switch between two stacks: it saves the callee-saved registers and the
// floating-point control words of the context it leaves on that context's own stack, and nothing
// else. What belongs to the thread (exception state, errno, sanitizers) is fiber.hpp's.
//
// Invariants
//   1. A saved context is one pointer: the top of its stack, below which lies one frame of the
//      layout that context_<cpu>.S describes. Only switch and start make one, and each is resumed
//      exactly once.
//   2. A message of two words travels in registers, so whoever resumes learns who left and why
//      without looking at thread-local memory.
//   3. call and ret stay paired within each context: control goes from one to another by a jump
//      (where landing pads forbid that, by the `ret` of a context that was left by a call).
//      Breaking the pairing costs a mispredicted return for each frame of the woken call chain.
//   4. Both kinds of stack walk end at the entry: its caller is marked as the outermost frame for
//      unwind tables, and its frame pointer is 0.
// Threads: a context may be resumed on another thread than the one that saved it. Whoever resumes
// it must have acquired what its last thread released after the save.
// No shadow stacks: the object of the assembly, which every program has, is not marked as capable
// of them, so that the loader leaves the feature off. Branch-target landing pads are in place.
#pragma once

#include <cstdint>

namespace smarm::detail {

struct switch_message {
  void* from;
  std::uintptr_t what;
};

// fiber_entry is the first function on a fresh stack. It never returns: it leaves by smarm_leave or
// smarm_leave_start.
using fiber_entry = void (*)(void* from, std::uintptr_t what);

extern "C" {

// smarm_switch saves this context into *save_sp, resumes the one saved as to_sp, and returns when
// somebody resumes this one, with the message that came along.
[[nodiscard]] switch_message smarm_switch(void** save_sp, void* to_sp, void* from,
                                          std::uintptr_t what) noexcept;

// smarm_start saves this context into *save_sp and runs entry(from, what) on the fresh stack that
// ends at stack_top (aligned here), with default floating-point control. Returns like smarm_switch.
[[nodiscard]] switch_message smarm_start(void** save_sp, void* stack_top, fiber_entry entry,
                                         void* from, std::uintptr_t what) noexcept;

// smarm_leave resumes the context saved as to_sp and abandons this one: nothing of it is saved, and
// its stack may be reused by whoever runs next.
[[noreturn]] void smarm_leave(void* to_sp, void* from, std::uintptr_t what) noexcept;

// smarm_leave_start runs entry(from, what) on the stack that ends at stack_top and abandons this
// context. stack_top may be the top of the stack we stand on.
[[noreturn]] void smarm_leave_start(void* stack_top, fiber_entry entry, void* from,
                                    std::uintptr_t what) noexcept;

}  // extern "C"

}  // namespace smarm::detail
