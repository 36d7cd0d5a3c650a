// stack_walk finds the return addresses of an actor's stack, from a throw outwards.
//
// The unwinder can do that, but it works out the frame of each function anew from the program's
// tables, which took as long as the whole throw. What it finds depends on the return address alone,
// so here each is asked for once: how far on the caller's frame is, and where in this one its
// return address and its frame pointer are. From then on a frame costs a few instructions.
//
// Invariants
//   1. A rule is kept under its return address and found by it only; half of one is never found.
//   2. The walk by rules ends at an address without one, and the unwinder then does it all: so a
//      function is never left out, as a walk of frame pointers leaves out the caller of one that
//      has none.
//   3. Nothing but the actor's own stack is read, whatever a rule says, and each step goes up.
// Threads: the actor whose stack it is; the rules are every thread's.
// Elsewhere than on x86-64, and under a sanitizer, which would object to reads between variables,
// the unwinder does each walk.
//
// Source: the cache of libunwind's unw_backtrace has the same idea.
#pragma once

#include <cstddef>
#include <span>

#include "fiber/stack.hpp"

namespace smarm::detail {

// walk_stack writes return addresses into frames and returns how many: that of the function that
// called the C++ runtime's throw first (or of the caller, where none did), and so on to the
// actor's own outermost function, or until frames is full. The caller stands on the stack.
[[nodiscard]] std::size_t walk_stack(stack_span stack, std::span<void*> frames) noexcept;

}  // namespace smarm::detail
