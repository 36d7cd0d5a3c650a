// context_inline is the four moves of context.hpp without a call. Same frames, so a context that
// one kind has saved the other may resume.
//
// Why: a processor predicts a return by the calls that it has seen. A switch that is called leaves
// its own return address among them, and so does a call that never returns; who goes on next finds
// them in the place of its own, and each of its returns is mispredicted (11 ns on the machines at
// hand). With the moves inline, what is left among the predictions is the chain of functions that
// contains the switch, and nothing else; an actor that starts another and waits for it returns as
// predicted. On other processors than x86-64 the moves are those of context.hpp, called.
//
// Invariants
//   1. The red zone below rsp is the function's; the frame begins below it.
//   2. A walk by unwind tables that comes by in the middle of a move, a sampling profiler's, ends
//   there:
//      no rule holds for both stacks. Where the function has a frame pointer, as ours have, the
//      rules outside of that stretch hold as they are.
//   3. Nothing but rbp, rsp and floating-point control outlives a move; the compiler is told so and
//      keeps what it needs on the stack.
// Threads: as context.hpp.
#pragma once

#include <cstdint>

#include "fiber/context.hpp"

namespace smarm::detail {

#if defined(__x86_64__)

// What a move between two stacks loses.
#if defined(__AVX512F__)
#define SMARM_LOST_WITH_AVX512                                                                  \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7"
#else
#define SMARM_LOST_WITH_AVX512
#endif
#define SMARM_LOST_REGISTERS                                                                       \
  "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rbx", "xmm0", "xmm1", "xmm2", "xmm3",     \
      "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
      "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory",      \
      "cc" SMARM_LOST_WITH_AVX512

// Saves a context that goes on at label 1, in *save_sp.
#define SMARM_SAVE_CONTEXT(save_sp) \
  "leaq -128(%%rsp), %%rsp\n\t"     \
  "leaq 1f(%%rip), %%r8\n\t"        \
  "pushq %%r8\n\t"                  \
  "pushq %%rbp\n\t"                 \
  "subq $8, %%rsp\n\t"              \
  "stmxcsr (%%rsp)\n\t"             \
  "fnstcw 4(%%rsp)\n\t"             \
  "movq %%rsp, (" save_sp ")\n\t"

#define SMARM_GOES_ON \
  "1:\n\t"            \
  "endbr64\n\t"       \
  "leaq 128(%%rsp), %%rsp"

// Goes on with the context saved as sp; the message is in rax and rdx.
#define SMARM_RESUME(sp)      \
  ".cfi_remember_state\n\t"   \
  ".cfi_undefined %%rip\n\t"  \
  "movq " sp                  \
  ", %%rsp\n\t"               \
  "ldmxcsr (%%rsp)\n\t"       \
  "fldcw 4(%%rsp)\n\t"        \
  "movq 8(%%rsp), %%rbp\n\t"  \
  "movq 16(%%rsp), %%rcx\n\t" \
  "addq $24, %%rsp\n\t"       \
  "jmpq *%%rcx\n\t"           \
  ".cfi_restore_state\n\t"

// Enters rdx on the stack that ends at rcx, with the message in rdi and rsi.
#define SMARM_ENTER_FRESH                  \
  ".cfi_remember_state\n\t"                \
  ".cfi_undefined %%rip\n\t"               \
  "movq %%rcx, %%rsp\n\t"                  \
  "andq $-16, %%rsp\n\t"                   \
  "ldmxcsr smarm_fresh_control(%%rip)\n\t" \
  "fldcw 4+smarm_fresh_control(%%rip)\n\t" \
  "xorl %%ebp, %%ebp\n\t"                  \
  "leaq smarm_stack_end(%%rip), %%rcx\n\t" \
  "pushq %%rcx\n\t"                        \
  "jmpq *%%rdx\n\t"                        \
  ".cfi_restore_state\n\t"

// switch_inline is smarm_switch.
[[gnu::always_inline]] inline switch_message switch_inline(void** save_sp, void* to_sp, void* from,
                                                           std::uintptr_t what) noexcept {
  asm volatile(SMARM_SAVE_CONTEXT("%%rdi") SMARM_RESUME("%%rsi") SMARM_GOES_ON
               : "+a"(from), "+d"(what), "+D"(save_sp), "+S"(to_sp)
               :
               : "rcx", SMARM_LOST_REGISTERS);
  return {from, what};
}

// start_inline is smarm_start.
[[gnu::always_inline]] inline switch_message start_inline(void** save_sp, void* stack_top,
                                                          fiber_entry entry, void* from,
                                                          std::uintptr_t what) noexcept {
  void* rax = static_cast<void*>(save_sp);             // and then who comes back
  auto rdx = reinterpret_cast<std::uintptr_t>(entry);  // and then what it says
  asm volatile(SMARM_SAVE_CONTEXT("%%rax") SMARM_ENTER_FRESH SMARM_GOES_ON
               : "+a"(rax), "+d"(rdx), "+D"(from), "+S"(what), "+c"(stack_top)
               :
               : SMARM_LOST_REGISTERS);
  return {rax, rdx};
}

// leave_inline is smarm_leave.
[[noreturn, gnu::always_inline]] inline void leave_inline(void* to_sp, void* from,
                                                          std::uintptr_t what) noexcept {
  asm volatile(SMARM_RESUME("%%rsi") : : "a"(from), "d"(what), "S"(to_sp) : "memory");
  __builtin_unreachable();
}

// leave_start_inline is smarm_leave_start.
[[noreturn, gnu::always_inline]] inline void leave_start_inline(void* stack_top, fiber_entry entry,
                                                                void* from,
                                                                std::uintptr_t what) noexcept {
  asm volatile(SMARM_ENTER_FRESH : : "D"(from), "S"(what), "d"(entry), "c"(stack_top) : "memory");
  __builtin_unreachable();
}

#undef SMARM_ENTER_FRESH
#undef SMARM_RESUME
#undef SMARM_GOES_ON
#undef SMARM_SAVE_CONTEXT
#undef SMARM_LOST_REGISTERS
#undef SMARM_LOST_WITH_AVX512

#else

[[gnu::always_inline]] inline switch_message switch_inline(void** save_sp, void* to_sp, void* from,
                                                           std::uintptr_t what) noexcept {
  return smarm_switch(save_sp, to_sp, from, what);
}
[[gnu::always_inline]] inline switch_message start_inline(void** save_sp, void* stack_top,
                                                          fiber_entry entry, void* from,
                                                          std::uintptr_t what) noexcept {
  return smarm_start(save_sp, stack_top, entry, from, what);
}
[[noreturn, gnu::always_inline]] inline void leave_inline(void* to_sp, void* from,
                                                          std::uintptr_t what) noexcept {
  smarm_leave(to_sp, from, what);
}
[[noreturn, gnu::always_inline]] inline void leave_start_inline(void* stack_top, fiber_entry entry,
                                                                void* from,
                                                                std::uintptr_t what) noexcept {
  smarm_leave_start(stack_top, entry, from, what);
}

#endif

}  // namespace smarm::detail
