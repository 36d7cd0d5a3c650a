// fiber_sanitized is the switches of fiber.hpp for builds under AddressSanitizer or
// ThreadSanitizer, with each move announced. Out of line and uninstrumented: between the
// announcement and the move the sanitizer already believes in the other stack, so no code of its
// own may run there.
#include "fiber/fiber.hpp"

namespace smarm::detail {

#if defined(SMARM_ADDRESS_SANITIZER)

namespace {

// enter is where a fresh stack begins: it finishes the move, then runs the real entry.
SMARM_NO_SANITIZE void enter(void* self, std::uintptr_t) {
  fiber& fresh = *static_cast<fiber*>(self);
  const fiber_entry entry = fresh.entry;
  void* const from = fresh.entry_from;
  const std::uintptr_t what = fresh.entry_what;
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  entry(from, what);
}

SMARM_NO_SANITIZE void prepare_entry(fiber& to, fiber_entry entry, void* message_from,
                                     std::uintptr_t what) noexcept {
  to.entry = entry;
  to.entry_from = message_from;
  to.entry_what = what;
  unpoison_stack(to.stack.low, to.stack.size);
}

}  // namespace

[[gnu::noinline]] SMARM_NO_SANITIZE switch_message switch_fiber(fiber& from, fiber& to,
                                                                void* message_from,
                                                                std::uintptr_t what) noexcept {
  save_thread_words(from);
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, to.stack.low, to.stack.size);
  const switch_message message = smarm_switch(&from.sp, to.sp, message_from, what);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  restore_thread_words(from);
  return message;
}

[[gnu::noinline]] SMARM_NO_SANITIZE switch_message start_fiber(fiber& from, fiber& to,
                                                               fiber_entry entry,
                                                               void* message_from,
                                                               std::uintptr_t what) noexcept {
  save_thread_words(from);
  *current_thread().errno_location = 0;
  prepare_entry(to, entry, message_from, what);
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, to.stack.low, to.stack.size);
  const switch_message message = smarm_start(&from.sp, to.stack.top(), &enter, &to, 0);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  restore_thread_words(from);
  return message;
}

[[gnu::noinline]] SMARM_NO_SANITIZE void leave_fiber(fiber&, fiber& to, void* message_from,
                                                     std::uintptr_t what) noexcept {
  check_leaving();
  // No place to keep the fake stack: it is freed, since nobody comes back.
  __sanitizer_start_switch_fiber(nullptr, to.stack.low, to.stack.size);
  smarm_leave(to.sp, message_from, what);
}

[[gnu::noinline]] SMARM_NO_SANITIZE void leave_and_start_fiber(fiber&, fiber& to, fiber_entry entry,
                                                               void* message_from,
                                                               std::uintptr_t what) noexcept {
  check_leaving();
  prepare_entry(to, entry, message_from, what);
  __sanitizer_start_switch_fiber(nullptr, to.stack.low, to.stack.size);
  smarm_leave_start(to.stack.top(), &enter, &to, 0);
}

#elif defined(SMARM_THREAD_SANITIZER)

// Each move synchronizes the two fibers (flag 0): what one wrote before it, the other may read,
// because both run on one thread.

[[gnu::noinline]] SMARM_NO_SANITIZE switch_message switch_fiber(fiber& from, fiber& to,
                                                                void* message_from,
                                                                std::uintptr_t what) noexcept {
  save_thread_words(from);
  void* const to_sp = to.sp;
  __tsan_switch_to_fiber(to.twin, 0);
  const switch_message message = smarm_switch(&from.sp, to_sp, message_from, what);
  restore_thread_words(from);
  return message;
}

[[gnu::noinline]] SMARM_NO_SANITIZE switch_message start_fiber(fiber& from, fiber& to,
                                                               fiber_entry entry,
                                                               void* message_from,
                                                               std::uintptr_t what) noexcept {
  save_thread_words(from);
  *current_thread().errno_location = 0;
  to.twin = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.twin, 0);
  const switch_message message = smarm_start(&from.sp, to.stack.top(), entry, message_from, what);
  restore_thread_words(from);
  return message;
}

[[gnu::noinline]] SMARM_NO_SANITIZE void leave_fiber(fiber& from, fiber& to, void* message_from,
                                                     std::uintptr_t what) noexcept {
  check_leaving();
  void* const to_sp = to.sp;
  void* const gone = from.twin;
  from.twin = nullptr;
  __tsan_switch_to_fiber(to.twin, 0);
  __tsan_destroy_fiber(gone);  // Only a fiber that is not the current one may be destroyed.
  smarm_leave(to_sp, message_from, what);
}

[[gnu::noinline]] SMARM_NO_SANITIZE void leave_and_start_fiber(fiber& from, fiber& to,
                                                               fiber_entry entry,
                                                               void* message_from,
                                                               std::uintptr_t what) noexcept {
  check_leaving();
  void* const gone = from.twin;
  from.twin = nullptr;
  to.twin = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.twin, 0);
  __tsan_destroy_fiber(gone);
  smarm_leave_start(to.stack.top(), entry, message_from, what);
}

#endif

}  // namespace smarm::detail
