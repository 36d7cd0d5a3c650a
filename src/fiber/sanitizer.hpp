// sanitizer tells AddressSanitizer, ThreadSanitizer, LeakSanitizer and Valgrind what they cannot
// see for themselves: that execution moves to another stack, and what memory is a stack. Without
// any of them each call below compiles to nothing.
//
// Threads: as the callers in fiber.hpp and stack.cpp.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define SMARM_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SMARM_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(SMARM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#define SMARM_NO_SANITIZE __attribute__((no_sanitize("address")))
#elif defined(SMARM_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#define SMARM_NO_SANITIZE __attribute__((no_sanitize("thread")))
#else
#define SMARM_NO_SANITIZE
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define SMARM_VALGRIND 1
#endif

namespace smarm::detail {

// unpoison_stack forgets what AddressSanitizer knew about the frames that lay there: their
// functions were abandoned and never took their red zones back.
inline void unpoison_stack([[maybe_unused]] const void* low,
                           [[maybe_unused]] std::size_t size) noexcept {
#if defined(SMARM_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(low, size);
#endif
}

// register_stack_root makes LeakSanitizer look for pointers in a stack that is no thread's.
inline void register_stack_root([[maybe_unused]] const void* low,
                                [[maybe_unused]] std::size_t size) noexcept {
#if defined(SMARM_ADDRESS_SANITIZER)
  __lsan_register_root_region(low, size);
#endif
}

inline void unregister_stack_root([[maybe_unused]] const void* low,
                                  [[maybe_unused]] std::size_t size) noexcept {
#if defined(SMARM_ADDRESS_SANITIZER)
  __lsan_unregister_root_region(low, size);
#endif
}

// runs_on_valgrind says whether the process runs under Valgrind.
[[nodiscard]] inline bool runs_on_valgrind() noexcept {
#if defined(SMARM_VALGRIND)
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

// register_valgrind_stack returns the number by which unregister_valgrind_stack forgets it.
[[nodiscard]] inline unsigned register_valgrind_stack([[maybe_unused]] const void* low,
                                                      [[maybe_unused]] const void* top) noexcept {
#if defined(SMARM_VALGRIND)
  return VALGRIND_STACK_REGISTER(low, top);
#else
  return 0;
#endif
}

inline void unregister_valgrind_stack([[maybe_unused]] unsigned id) noexcept {
#if defined(SMARM_VALGRIND)
  VALGRIND_STACK_DEREGISTER(id);
#endif
}

}  // namespace smarm::detail
