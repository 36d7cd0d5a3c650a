// fiber is a stack with a saved place in it; all model threads are fibers of one OS thread.
//
// Exceptions work in them because the C++ runtime's per-thread exception state is exchanged with
// the stack, and AddressSanitizer is told of each change of stack. A fiber that is given up is not
// unwound: its stack is used again as it is, and what lived on it lived in the arena.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MODEL_ASAN 1
#endif
#endif

#if defined(MODEL_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}  // namespace __cxxabiv1

namespace model {

// What the C++ runtime keeps per OS thread about exceptions in flight (Itanium ABI, section 2.2.2).
struct exception_state {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

#if defined(__x86_64__)
// switch_stack saves the callee's registers on this stack, its pointer in *save, and goes on where
// `load` was saved.
[[gnu::naked, gnu::noinline]] inline void switch_stack([[maybe_unused]] void** save,
                                                       [[maybe_unused]] void* load) {
  asm("pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"
      "ret");
}
#endif

class fiber {
 public:
  using entry = void (*)();
  static constexpr std::size_t stack_size = std::size_t{256} * 1024;

  fiber() = default;
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber() {
    if (stack_ != nullptr) ::munmap(stack_, stack_size);
  }

  // prepare makes the next switch_to begin `start` on this fiber's own stack; `start` never
  // returns.
  void prepare(entry start) {
    if (stack_ == nullptr) map_stack();
#if defined(MODEL_ASAN)
    __asan_unpoison_memory_region(stack_, stack_size);
    fake_stack_ = nullptr;
#endif
    exceptions_ = {};
#if defined(__x86_64__)
    auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + stack_size);
    *--top = nullptr;  // a return address for `start`, which keeps the stack aligned
    *--top = reinterpret_cast<void*>(start);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    pointer_ = top;
#else
    ::getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = stack_size;
    context_.uc_link = nullptr;
    ::makecontext(&context_, start, 0);
#endif
  }

  // switch_to leaves `this`, which is running, and goes on in `next`; returns when somebody
  // switches back.
  void switch_to(fiber& next) {
    auto* state = reinterpret_cast<exception_state*>(__cxxabiv1::__cxa_get_globals());
    exceptions_ = *state;
    *state = next.exceptions_;
#if defined(MODEL_ASAN)
    __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.size_);
#endif
#if defined(__x86_64__)
    switch_stack(&pointer_, next.pointer_);
#else
    ::swapcontext(&context_, &next.context_);
#endif
#if defined(MODEL_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }

  // begin is the first call on a new stack: it completes the switch from `from`, whose bounds the
  // sanitizer tells on this occasion.
  static void begin([[maybe_unused]] fiber& from) {
#if defined(MODEL_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.size_);
#endif
  }

  [[nodiscard]] bool holds(const void* address) const {
    const auto* at = static_cast<const char*>(address);
    return stack_ != nullptr && at >= static_cast<const char*>(stack_) - guard_size &&
           at < static_cast<const char*>(stack_) + stack_size;
  }

 private:
  static constexpr std::size_t guard_size = std::size_t{64} * 1024;

  void map_stack() {
    void* mapped = ::mmap(nullptr, stack_size + guard_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      std::fputs("model: no memory for a thread's stack\n", stderr);
      std::abort();
    }
    ::mprotect(mapped, guard_size, PROT_NONE);
    stack_ = static_cast<char*>(mapped) + guard_size;
    bottom_ = stack_;
    size_ = stack_size;
  }

  void* stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  exception_state exceptions_;
#if defined(MODEL_ASAN)
  void* fake_stack_ = nullptr;
#endif
#if defined(__x86_64__)
  void* pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

}  // namespace model
