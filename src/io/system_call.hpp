// system_call is every call of the kernel that src/io makes for an actor, each a leaf function of
// its own: the value, or the error as a negative number.
//
// Why not in place: an actor may go on on another thread after each park, and a compiler that
// inlined the call may have kept the address of the former thread's errno. Here nothing parks
// between the call and the look at errno. The functions stand in a source file of their own and
// leave the caller's errno alone.
// EINTR is dealt with here; no caller sees it. Sockets are in non-blocking mode, so but for
// poll_fd, close_fd and wait_events nothing here blocks.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <system_error>

#include <smarm/deadline.hpp>

namespace smarm::detail {

// error_of makes the error code of a negative result.
[[nodiscard]] inline std::error_code error_of(ssize_t negative) noexcept {
  return {static_cast<int>(-negative), std::system_category()};
}
[[nodiscard]] inline std::unexpected<std::error_code> failure(std::errc code) noexcept {
  return std::unexpected(std::make_error_code(code));
}

ssize_t receive(int fd, std::span<std::byte> into) noexcept;
// receive_local is for local sockets: `cut_short` says that the kernel stopped at descriptors which
// the peer had passed (and which are thereby closed), though more may be there.
ssize_t receive_local(int fd, std::span<std::byte> into, bool& cut_short) noexcept;
ssize_t send_bytes(int fd, std::span<const std::byte> from) noexcept;
ssize_t send_vector(int fd, std::span<iovec> from) noexcept;
int accept_on(int fd) noexcept;  // the new descriptor, or a negative error
int connect_to(int fd, const void* address, std::size_t size) noexcept;
int take_socket_error(int fd) noexcept;  // 0, or the negative error that the socket had
int shutdown_socket(int fd, int how) noexcept;
int set_nonblocking(int fd) noexcept;
int set_socket_option(int fd, int level, int name, int value) noexcept;
int socket_name(int fd, bool peer, sockaddr_storage& address, socklen_t& size) noexcept;
int make_socket(int family) noexcept;  // stream, non-blocking, close on exec
int make_local_datagram_socket() noexcept;
int make_socket_pair(int (&ends)[2]) noexcept;  // likewise, local and connected
int bind_socket(int fd, const void* address, std::size_t size) noexcept;
int listen_socket(int fd, int backlog) noexcept;

// read_bytes and write_bytes are for pipes and event descriptors in non-blocking mode.
ssize_t read_bytes(int fd, std::span<std::byte> into) noexcept;
ssize_t write_bytes(int fd, std::span<const std::byte> from) noexcept;
int make_pipe(int (&ends)[2]) noexcept;  // non-blocking, close on exec

// poll_fd waits for the poll(2) events: the events, 0 at the deadline, or a negative error.
int poll_fd(int fd, short events, deadline until) noexcept;

int make_epoll() noexcept;
int make_event() noexcept;  // an eventfd, non-blocking
int control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t data) noexcept;
// wait_events is epoll_wait: for as long as it takes, or (may_block false) for what is there.
int wait_events(int epoll, std::span<epoll_event> into, bool may_block) noexcept;

// close_fd closes the descriptor. An error is of no use to anybody: Linux has closed it all the
// same.
void close_fd(int fd) noexcept;

// plain_fd owns a descriptor that nobody can be waiting for: unlike unique_fd it takes no lock, so
// it may go where a lock is held.
class plain_fd {
 public:
  explicit plain_fd(int fd) noexcept : fd_(fd) {}
  plain_fd(const plain_fd&) = delete;
  plain_fd& operator=(const plain_fd&) = delete;
  ~plain_fd() {
    if (fd_ >= 0) close_fd(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace smarm::detail
