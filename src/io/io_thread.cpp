// Threads of src/io; see io_thread.hpp.
#include "io/io_thread.hpp"

#include <pthread.h>

#include <utility>

namespace smarm::detail {
namespace {

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

}  // namespace

sigset_t block_signals(const sigset_t* except) noexcept {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int number : fatal_signals) sigdelset(&blocked, number);
  if (except != nullptr) {
    for (int number = 1; number < NSIG; ++number) {
      if (sigismember(except, number) == 1) sigdelset(&blocked, number);
    }
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  return before;
}

std::thread start_io_thread(const char* name, std::function<void()> body) {
  // Blocked before the thread exists: it inherits the mask and is at no moment without it.
  const struct restored {
    sigset_t before = block_signals();
    ~restored() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } mask;
  std::thread started(std::move(body));
  pthread_setname_np(started.native_handle(), name);
  return started;
}

}  // namespace smarm::detail
