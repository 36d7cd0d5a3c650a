// fiber is a stack and what a switch must carry beside the registers: the C++ runtime's exception
// state, errno, and what the sanitizers want to be told. A fiber also stands for a scheduler
// thread's native stack, so that the two kinds switch alike.
//
// Invariants
//   1. Exception state lives either in the thread's words (while the fiber runs) or in the fiber
//      (while it is parked), never in both: whoever leaves takes it along and leaves zeros. Hence
//      two tests for zero are all that a switch of ordinary fibers costs.
//   2. After a switch the thread may be another; everything of the thread is looked up again.
//   3. A fiber is entered only on stack.top(), and its entry leaves by leave_fiber or
//      leave_and_start_fiber, with no exception alive.
// Threads: the fiber's fields belong to the thread that runs it; a parked fiber's to whoever won
// the right to resume it.
// PARKS: switch_fiber and start_fiber may return on another thread.
// Why the state is swapped and not the accessor interposed: an interposed __cxa_get_globals is
// process-wide, and two libraries that each do it corrupt one another.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "fiber/context_inline.hpp"
#include "fiber/current.hpp"
#include "fiber/sanitizer.hpp"
#include "fiber/stack.hpp"

namespace smarm::detail {

struct fiber {
  void* sp = nullptr;         // of the saved context, while parked
  void* caught = nullptr;     // exceptions being handled, while parked
  unsigned int uncaught = 0;  // exceptions in flight, while parked
  int saved_errno = 0;        // while parked
  stack_span stack;           // empty for a native stack, but under AddressSanitizer
#if defined(SMARM_ADDRESS_SANITIZER)
  fiber_entry entry = nullptr;  // of a fresh fiber, for the trampoline
  void* entry_from = nullptr;
  std::uintptr_t entry_what = 0;
#elif defined(SMARM_THREAD_SANITIZER)
  void* twin = nullptr;  // ThreadSanitizer's own fiber
#endif
};

// adopt_thread makes `native` stand for the calling thread's own stack and prepares the thread to
// run fibers. Once per thread, before its first switch.
void adopt_thread(fiber& native) noexcept;

// save_thread_words moves the thread's exception state and errno into the fiber that leaves.
[[gnu::always_inline]] inline void save_thread_words(fiber& self) noexcept {
  const thread_state& here = current_thread();
  self.saved_errno = *here.errno_location;
  exception_globals& exceptions = *here.exceptions;
  if (exceptions.caught != nullptr || exceptions.uncaught != 0) [[unlikely]] {
    self.caught = exceptions.caught;
    self.uncaught = exceptions.uncaught;
    exceptions = {};
  }
}

// restore_thread_words moves them back, into the words of the thread that now runs the fiber.
[[gnu::always_inline]] inline void restore_thread_words(fiber& self) noexcept {
  const thread_state& here = current_thread();
  *here.errno_location = self.saved_errno;
  if (self.caught != nullptr || self.uncaught != 0) [[unlikely]] {
    *here.exceptions = {self.caught, self.uncaught};
    self.caught = nullptr;
    self.uncaught = 0;
  }
}

// check_leaving asserts that a fiber that ends leaves no exception behind in the thread's words,
// and gives the fresh fiber that may follow an errno of its own.
[[gnu::always_inline]] inline void check_leaving() noexcept {
  const thread_state& here = current_thread();
  SMARM_ASSERT(here.exceptions->caught == nullptr && here.exceptions->uncaught == 0,
               "a fiber ends with no exception alive", here.exceptions->caught,
               here.exceptions->uncaught);
  *here.errno_location = 0;
}

#if defined(SMARM_ADDRESS_SANITIZER) || defined(SMARM_THREAD_SANITIZER)

// The same functions as below, in fiber_sanitized.cpp, with the sanitizers told of each move.
switch_message switch_fiber(fiber& from, fiber& to, void* message_from,
                            std::uintptr_t what) noexcept;
switch_message start_fiber(fiber& from, fiber& to, fiber_entry entry, void* message_from,
                           std::uintptr_t what) noexcept;
[[noreturn]] void leave_fiber(fiber& from, fiber& to, void* message_from,
                              std::uintptr_t what) noexcept;
[[noreturn]] void leave_and_start_fiber(fiber& from, fiber& to, fiber_entry entry,
                                        void* message_from, std::uintptr_t what) noexcept;

#else

// switch_fiber parks `from`, which runs here, and resumes the parked `to` with the message. Returns
// when somebody resumes `from`, with that one's message.
[[gnu::always_inline]] inline switch_message switch_fiber(fiber& from, fiber& to,
                                                          void* message_from,
                                                          std::uintptr_t what) noexcept {
  save_thread_words(from);
  const switch_message message = switch_inline(&from.sp, to.sp, message_from, what);
  restore_thread_words(from);
  return message;
}

// start_fiber parks `from`, which runs here, and runs entry(message_from, what) on the stack of
// `to`, which must not have run. Returns as switch_fiber.
[[gnu::always_inline]] inline switch_message start_fiber(fiber& from, fiber& to, fiber_entry entry,
                                                         void* message_from,
                                                         std::uintptr_t what) noexcept {
  save_thread_words(from);
  *current_thread().errno_location = 0;
  const switch_message message = start_inline(&from.sp, to.stack.top(), entry, message_from, what);
  restore_thread_words(from);
  return message;
}

// leave_fiber ends `from`, which runs here, and resumes the parked `to` with the message. The stack
// of `from` is free as soon as `to` runs, on this thread.
[[noreturn, gnu::always_inline]] inline void leave_fiber([[maybe_unused]] fiber& from, fiber& to,
                                                         void* message_from,
                                                         std::uintptr_t what) noexcept {
  check_leaving();
  leave_inline(to.sp, message_from, what);
}

// leave_and_start_fiber ends `from`, which runs here, and runs entry(message_from, what) on the
// stack of `to`, which must not have run and may have been given the very stack of `from`.
[[noreturn, gnu::always_inline]] inline void leave_and_start_fiber([[maybe_unused]] fiber& from,
                                                                   fiber& to, fiber_entry entry,
                                                                   void* message_from,
                                                                   std::uintptr_t what) noexcept {
  check_leaving();
  leave_start_inline(to.stack.top(), entry, message_from, what);
}

#endif

}  // namespace smarm::detail
