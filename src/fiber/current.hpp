// current is the state of the OS thread that runs this code, and the only thread-local variable of
// the project.
//
// Invariants
//   1. The address is never kept across a switch: the fiber may go on on another thread. So
//      current_thread() is read anew after each, and built so that no compiler can join two reads.
// Threads: each touches its own.
// Why not a plain thread_local: compilers hold that a function stays on its thread, and reuse its
// address on the far side of a call that switches. Neither volatile nor a memory clobber stops
// them. On x86-64 a volatile instruction that reads the thread pointer cannot be joined with
// another, and costs a load; elsewhere a call of a function that cannot be seen through.
#pragma once

namespace smarm::detail {

// exception_globals is the head of the C++ runtime's per-thread exception state, as the Itanium ABI
// lays it out: the stack of exceptions that are being handled, and how many are in flight.
struct exception_globals {
  void* caught;
  unsigned int uncaught;
};

struct thread_state {
  // The scheduler that runs on this thread, or null. Set and read by the layer above.
  void* scheduler = nullptr;
  // The actor that runs on this thread, or null. As above.
  void* running = nullptr;
  // What this thread blocks on where it waits as a thread and no actor, or null. As above.
  void* parker = nullptr;
  // Where the C++ runtime and the C library keep this thread's words. Null until adopt_thread():
  // only threads that run fibers need them.
  exception_globals* exceptions = nullptr;
  int* errno_location = nullptr;
  // The free memory blocks this thread keeps for messages, or null. Set and read by the layer
  // above.
  void* blocks = nullptr;
  // How many raw_mutexes this thread holds; counted in debug builds.
  int held_raw_mutexes = 0;
};

#if defined(__x86_64__)

// current_thread returns the calling thread's state. Any thread; never keep it across a switch.
[[nodiscard, gnu::always_inline]] inline thread_state& current_thread() noexcept {
  thread_state* state;
  asm volatile(
      "movq smarm_thread_state@gottpoff(%%rip), %0\n\t"
      "addq %%fs:0, %0"
      : "=r"(state)
      :
      : "cc");
  return *state;
}

#else

[[nodiscard]] thread_state& current_thread() noexcept;

#endif

// bind_thread_words finds this thread's exception state and errno and notes them in its
// thread_state. Called once on each thread that is to run fibers.
void bind_thread_words() noexcept;

}  // namespace smarm::detail
