// current: the definition of the project's only thread-local variable, and where the thread's own
// words of the C++ runtime and the C library are looked up.
#include "fiber/current.hpp"

#include <cxxabi.h>

#include <cerrno>

#include "base/raw_mutex.hpp"

namespace smarm::detail {

extern "C" {
// Under a plain C name, because the x86-64 accessor names it in assembly.
constinit thread_local thread_state smarm_thread_state{};
}

namespace {

// launder returns its argument in a way that hides from the compiler that it is the same.
template <class T>
[[gnu::always_inline]] inline T* launder_address(T* address) noexcept {
  asm volatile("" : "+r"(address));
  return address;
}

// The C++ runtime and the C library declare their accessors const, which allows a compiler to reuse
// a result across a switch. Here each is called once per thread, out of line.
[[gnu::noinline]] exception_globals* exception_globals_of_thread() noexcept {
  return launder_address(reinterpret_cast<exception_globals*>(abi::__cxa_get_globals()));
}

[[gnu::noinline]] int* errno_of_thread() noexcept { return launder_address(&errno); }

int* held_count_of_thread() noexcept { return &current_thread().held_raw_mutexes; }

// Registers the count before main, when no other thread exists yet.
[[maybe_unused]] const bool leaf_rule_is_armed = [] {
  held_raw_mutex_count = &held_count_of_thread;
  return true;
}();

}  // namespace

#if !defined(__x86_64__)
[[gnu::noinline]] thread_state& current_thread() noexcept {
  return *launder_address(&smarm_thread_state);
}
#endif

void bind_thread_words() noexcept {
  thread_state& here = current_thread();
  here.exceptions = exception_globals_of_thread();
  here.errno_location = errno_of_thread();
}

}  // namespace smarm::detail
