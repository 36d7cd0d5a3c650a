// overflow: the fault handler and its report, from async-signal-safe parts only.
#include "fiber/overflow.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"

namespace smarm::detail {

namespace {

constexpr int frames_first_max = 24;  // shown from where it overflowed
constexpr int frames_last_max = 8;    // shown from where the stack begins
constexpr int frames_worth_showing = 3;
constexpr std::size_t signal_stack_size_min = std::size_t{64} << 10;

// Written by install, read by the handler on any thread.
constinit atomic<describe_stack_owner> describe_hook{nullptr};
constinit raw_mutex install_mutex;
constinit bool is_installed = false;  // protected by install_mutex
// Written once before the handler can run.
struct sigaction previous_segv;
struct sigaction previous_bus;

// text_line gathers a line without the C library's formatting, which is not safe in a handler.
class text_line {
 public:
  void add(const char* text) noexcept {
    while (*text != '\0' && length_ < sizeof text_) {
      text_[length_++] = *text++;
    }
  }

  void add_number(std::size_t number) noexcept {
    char digits[24];
    std::size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    add(digits + at);
  }

  void write_out() noexcept {
    static_cast<void>(!::write(STDERR_FILENO, text_, length_));
    length_ = 0;
  }

 private:
  char text_[512];
  std::size_t length_ = 0;
};

struct machine_state {
  std::uintptr_t pc;
  std::uintptr_t sp;
  std::uintptr_t fp;
};

machine_state state_of(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(machine.gregs[REG_RSP]),
          static_cast<std::uintptr_t>(machine.gregs[REG_RBP])};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp, machine.regs[29]};
#else
#error "smarm runs on x86-64 and aarch64"
#endif
}

// print_backtrace walks the frame pointers of the overflowed stack, never outside of it, and prints
// the innermost and the outermost calls. A recursion is all alike in between.
void print_backtrace(const machine_state& state, stack_span stack) noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(stack.low);
  const auto top = reinterpret_cast<std::uintptr_t>(stack.top());
  void* first[frames_first_max];
  void* last[frames_last_max];
  int count = 0;
  first[count++] = reinterpret_cast<void*>(state.pc);
  std::uintptr_t frame = state.fp;
  // LIMIT: each step goes up by at least two words, so the stack's size bounds the walk.
  while (frame >= low && frame + 2 * sizeof(void*) <= top && frame % sizeof(void*) == 0) {
    const auto* const record = reinterpret_cast<const std::uintptr_t*>(frame);
    // The return address points behind the call; one byte less lies in it.
    void* const caller = reinterpret_cast<void*>(record[1] - 1);
    if (count < frames_first_max) {
      first[count] = caller;
    } else {
      last[count % frames_last_max] = caller;
    }
    ++count;
    if (record[0] <= frame) {
      break;
    }
    frame = record[0];
  }
  if (count < frames_worth_showing) {
    // It overflowed in code that uses the frame pointer for something else: the unwind tables then,
    // which lead from here over the signal's frame to the stack.
    count = backtrace(first, frames_first_max);
  }
  backtrace_symbols_fd(first, std::min(count, frames_first_max), STDERR_FILENO);
  if (count > frames_first_max) {
    const int shown_last = std::min(count - frames_first_max, frames_last_max);
    text_line line;
    if (const int hidden = count - frames_first_max - shown_last; hidden != 0) {
      line.add("... ");
      line.add_number(static_cast<std::size_t>(hidden));
      line.add(" frames not shown\n");
      line.write_out();
    }
    for (int index = count - shown_last; index < count; ++index) {
      backtrace_symbols_fd(&last[index % frames_last_max], 1, STDERR_FILENO);
    }
  }
}

// report_overflow prints the report if the fault lies in the guard of the stack that runs on this
// thread, and then does not return.
void report_overflow(const siginfo_t& info, const void* context) noexcept {
  // pairs with install_overflow_handler(): what the hook reads was set up before it was stored.
  const describe_stack_owner describe = describe_hook.load(acquire);
  stack_span stack;
  char owner[160] = "";
  if (describe == nullptr || !describe(stack, owner, sizeof owner) || stack.empty()) {
    return;
  }
  const auto low = reinterpret_cast<std::uintptr_t>(stack.low);
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  if (address >= low || low - address > guard_size_below(stack)) {
    return;
  }
  text_line line;
  line.add("smarm: stack overflow in ");
  line.add(owner[0] != '\0' ? owner : "an actor without a name");
  line.add(", stack of ");
  line.add_number(nominal_stack_size(stack) >> 10);
  line.add(" KiB; spawn it with a larger one, or recurse less\n");
  line.write_out();
  print_backtrace(state_of(context), stack);
  std::abort();
}

// pass_on hands a fault that is none of ours to whoever would have got it.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& previous = signal == SIGBUS ? previous_bus : previous_segv;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // The faulting instruction runs again and now ends the process with the right signal and core.
    ::signal(signal, SIG_DFL);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  // Only the kernel's own reports name an address; a signal that was sent by kill() does not.
  if (info->si_code > 0) {
    report_overflow(*info, context);
  }
  pass_on(signal, info, context);
}

}  // namespace

void install_overflow_handler(describe_stack_owner describe) noexcept {
  // pairs with report_overflow(): acquire load.
  describe_hook.store(describe, release);
  raw_guard guard(install_mutex);
  if (is_installed) {
    return;
  }
  is_installed = true;
  // The first call loads the unwinder, which is not for a signal handler to do.
  void* frame = nullptr;
  static_cast<void>(backtrace(&frame, 1));
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  // ONSTACK: the stack that overflowed has no room for a handler. NODEFER: a fault inside a chained
  // handler should reach it again and not kill the process without a word.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, nullptr, &previous_segv);
  sigaction(SIGBUS, nullptr, &previous_bus);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

signal_stack::signal_stack() noexcept {
  // The kernel's own minimum grows with the vector registers that it saves.
  const long kernel_min = sysconf(_SC_MINSIGSTKSZ);
  size_ = std::max(signal_stack_size_min, 4 * static_cast<std::size_t>(std::max(kernel_min, 0L)));
  void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return;  // The thread keeps what it had; only the report of an overflow is at stake.
  }
  memory_ = static_cast<std::byte*>(memory);
  stack_t mine = {};
  mine.ss_sp = memory_;
  mine.ss_size = size_;
  stack_t previous = {};
  sigaltstack(&mine, &previous);
  previous_memory_ = previous.ss_sp;
  previous_size_ = previous.ss_size;
  previous_flags_ = previous.ss_flags;
}

signal_stack::~signal_stack() {
  if (memory_ == nullptr) {
    return;
  }
  stack_t previous = {};
  previous.ss_sp = previous_memory_;
  previous.ss_size = previous_size_;
  previous.ss_flags = previous_flags_;
  sigaltstack(&previous, nullptr);
  munmap(memory_, size_);
}

}  // namespace smarm::detail
