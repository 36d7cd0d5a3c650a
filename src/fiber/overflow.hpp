// overflow turns a stack overflow from a bare "segmentation fault" into a report: which actor, its
// name and stack size, and the calls that led there; then the process aborts.
//
// How: the guard below a stack faults, the handler runs on a signal stack of its own (the actor's
// is used up), finds the fault inside the running actor's guard, and prints. A fault that is no
// overflow goes to whoever handled the signal before.
//
// Invariants
//   1. The handler calls only what is safe in a signal handler: no allocation, no lock.
//   2. Each scheduler thread has a signal_stack while it runs actors; without one the kernel cannot
//      deliver the signal and kills the process silently.
// Threads: install from any thread, any number of times; signal_stack on the thread it serves.
#pragma once

#include <cstddef>

#include "fiber/stack.hpp"

namespace smarm::detail {

// describe_stack_owner says whether a fiber runs on the calling thread: it stores that fiber's
// stack and writes a short text that names its owner, such as `actor 12.3 "worker"`, and returns
// true. It runs inside a signal handler on the faulting thread: no allocation, no lock.
using describe_stack_owner = bool (*)(stack_span& stack, char* buffer, std::size_t size) noexcept;

// install_overflow_handler takes SIGSEGV and SIGBUS for the whole process, once; later calls only
// replace `describe`.
void install_overflow_handler(describe_stack_owner describe) noexcept;

// signal_stack gives the calling thread a stack for its signal handlers for a scope, and then puts
// back the one that was there (a sanitizer's own, which it unmaps when the thread ends).
class signal_stack {
 public:
  signal_stack() noexcept;
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;
  ~signal_stack();

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  void* previous_memory_ = nullptr;
  std::size_t previous_size_ = 0;
  int previous_flags_ = 0;
};

}  // namespace smarm::detail
