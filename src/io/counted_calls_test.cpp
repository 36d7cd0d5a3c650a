// The calls that counted_calls.hpp counts: each stands in front of the C library's function of its
// name in this program, and goes on to the kernel.
#include "io/counted_calls.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace smarm::test {
namespace {

enum hold_state : int { not_wanted, wanted, held };
detail::atomic<int> hold{not_wanted};  // wanted by the test, held by the thread that watches

}  // namespace

void hold_next_report() noexcept { hold.store(wanted, detail::seq_cst); }
bool is_report_held() noexcept { return hold.load(detail::seq_cst) == held; }
void release_report() noexcept { hold.store(not_wanted, detail::seq_cst); }

call_counts& counted_calls() noexcept {
  static call_counts counts;
  return counts;
}

}  // namespace smarm::test

#ifndef SMARM_THREAD_SANITIZER

using smarm::detail::relaxed;
using smarm::test::counted_calls;

// Every count is a number by itself, hence relaxed throughout.
extern "C" int accept4(int fd, sockaddr* __restrict address, socklen_t* __restrict size,
                       int flags) {
  counted_calls().accepts.fetch_add(1, relaxed);  // relaxed: as said above
  return static_cast<int>(::syscall(SYS_accept4, fd, address, size, flags));
}

extern "C" ssize_t send(int fd, const void* from, size_t size, int flags) {
  counted_calls().sends.fetch_add(1, relaxed);  // relaxed: as said above
  return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  counted_calls().sends.fetch_add(1, relaxed);  // relaxed: as said above
  return ::syscall(SYS_sendmsg, fd, message, flags);
}

extern "C" int epoll_wait(int epoll, epoll_event* into, int capacity, int timeout) {
  counted_calls().epoll_waits.fetch_add(1, relaxed);  // relaxed: as said above
  const auto count =
      static_cast<int>(::syscall(SYS_epoll_pwait, epoll, into, capacity, timeout, nullptr, 0));
  int expected = smarm::test::wanted;
  if (count > 0 && timeout < 0 &&
      smarm::test::hold.compare_exchange_strong(expected, smarm::test::held,
                                                smarm::detail::seq_cst)) {
    while (smarm::test::is_report_held()) std::this_thread::yield();
  }
  return count;
}

extern "C" int socket(int family, int type, int protocol) noexcept {
  if ((type & SOCK_CLOEXEC) == 0) {
    counted_calls().sockets_open_on_exec.fetch_add(1, relaxed);  // relaxed: as said above
  }
  return static_cast<int>(::syscall(SYS_socket, family, type, protocol));
}

#endif
