// The system calls of src/io; see system_call.hpp for why they stand apart.
#include "io/system_call.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <limits>

#include "base/clock.hpp"

namespace smarm::detail {
namespace {

// errno_kept puts the caller's errno back: an actor may be looking at its own.
class errno_kept {
 public:
  errno_kept() noexcept : saved_(errno) {}
  errno_kept(const errno_kept&) = delete;
  errno_kept& operator=(const errno_kept&) = delete;
  ~errno_kept() { errno = saved_; }

 private:
  int saved_;
};

// call runs a system call until it is not interrupted: its result or its negative error.
template <class Call>
auto call(Call&& system_call) noexcept -> decltype(system_call()) {
  const errno_kept kept;
  for (;;) {
    const auto result = system_call();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(result)>(-errno);
  }
}

timespec time_left(std::int64_t ns) noexcept {
  return {static_cast<time_t>(ns / ns_per_second), static_cast<long>(ns % ns_per_second)};
}

}  // namespace

ssize_t receive(int fd, std::span<std::byte> into) noexcept {
  return call([&] { return ::recv(fd, into.data(), into.size(), 0); });
}

ssize_t receive_local(int fd, std::span<std::byte> into, bool& cut_short) noexcept {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t size = call([&] { return ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC); });
  cut_short = size > 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return size;
}

ssize_t send_bytes(int fd, std::span<const std::byte> from) noexcept {
  return call([&] { return ::send(fd, from.data(), from.size(), MSG_NOSIGNAL); });
}

ssize_t send_vector(int fd, std::span<iovec> from) noexcept {
  msghdr message{};
  message.msg_iov = from.data();
  message.msg_iovlen = from.size();
  return call([&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL); });
}

int accept_on(int fd) noexcept {
  return call([&] { return ::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

int connect_to(int fd, const void* address, std::size_t size) noexcept {
  const errno_kept kept;
  const auto* to = static_cast<const sockaddr*>(address);
  if (::connect(fd, to, static_cast<socklen_t>(size)) == 0) return 0;
  // An interrupted connect goes on by itself; a second call would only answer EALREADY.
  return errno == EINTR ? -EINPROGRESS : -errno;
}

int take_socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  const int result = call([&] { return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size); });
  return result < 0 ? result : -error;
}

int shutdown_socket(int fd, int how) noexcept {
  return call([&] { return ::shutdown(fd, how); });
}

int set_nonblocking(int fd) noexcept {
  const int flags = call([&] { return ::fcntl(fd, F_GETFL); });
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return flags < 0 ? flags : 0;
  return call([&] { return ::fcntl(fd, F_SETFL, flags | O_NONBLOCK); });
}

int set_socket_option(int fd, int level, int name, int value) noexcept {
  return call([&] { return ::setsockopt(fd, level, name, &value, sizeof value); });
}

int socket_name(int fd, bool peer, sockaddr_storage& address, socklen_t& size) noexcept {
  auto* const into = reinterpret_cast<sockaddr*>(&address);
  size = sizeof address;
  return call(
      [&] { return peer ? ::getpeername(fd, into, &size) : ::getsockname(fd, into, &size); });
}

int make_socket(int family) noexcept {
  return call([&] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

int make_local_datagram_socket() noexcept {
  return call([] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

int make_socket_pair(int (&ends)[2]) noexcept {
  return call(
      [&] { return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends); });
}

int bind_socket(int fd, const void* address, std::size_t size) noexcept {
  const auto* to = static_cast<const sockaddr*>(address);
  return call([&] { return ::bind(fd, to, static_cast<socklen_t>(size)); });
}

int listen_socket(int fd, int backlog) noexcept {
  return call([&] { return ::listen(fd, backlog); });
}

ssize_t read_bytes(int fd, std::span<std::byte> into) noexcept {
  return call([&] { return ::read(fd, into.data(), into.size()); });
}

ssize_t write_bytes(int fd, std::span<const std::byte> from) noexcept {
  return call([&] { return ::write(fd, from.data(), from.size()); });
}

int make_pipe(int (&ends)[2]) noexcept {
  return call([&] { return ::pipe2(ends, O_NONBLOCK | O_CLOEXEC); });
}

int poll_fd(int fd, short events, deadline until) noexcept {
  if (fd < 0) return -EBADF;  // poll(2) itself would wait for nothing
  const errno_kept kept;
  for (;;) {
    pollfd entry{fd, events, 0};
    timespec left{};
    if (!until.is_never()) {
      const std::int64_t ns = until.ns() - monotonic_ns();
      left = time_left(ns > 0 ? ns : 0);
    }
    const int count = ::ppoll(&entry, 1, until.is_never() ? nullptr : &left, nullptr);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -errno;
    if ((entry.revents & POLLNVAL) != 0) return -EBADF;
    return entry.revents;
  }
}

int make_epoll() noexcept {
  return call([] { return ::epoll_create1(EPOLL_CLOEXEC); });
}

int make_event() noexcept {
  return call([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
}

int control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t data) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return call([&] { return ::epoll_ctl(epoll, operation, fd, &event); });
}

int wait_events(int epoll, std::span<epoll_event> into, bool may_block) noexcept {
  const int capacity = static_cast<int>(into.size());
  return call([&] { return ::epoll_wait(epoll, into.data(), capacity, may_block ? -1 : 0); });
}

void close_fd(int fd) noexcept {
  const errno_kept kept;
  ::close(fd);
}

}  // namespace smarm::detail
