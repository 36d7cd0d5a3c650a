// Waiting for a file descriptor that somebody else reads and writes, and an owner for one.
//
// An actor that waits here parks; no thread is blocked. One actor may wait for reading and another
// for writing on the same descriptor at the same time. Whatever ends a wait (readiness, the
// deadline, a stop) leaves nothing behind: neither a waiter nor a registration in the kernel.
//
// tcp.hpp and unix_socket.hpp have streams of their own that cost fewer system calls.
#pragma once

#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/io_result.hpp>

namespace smarm {

// wait_readable waits until a read from fd would not block: there is data, the end, or an error to
// be had. Errors: timed_out at the deadline, unless fd is ready; bad_file_descriptor where fd is
// not open or a unique_fd closed it meanwhile; device_or_resource_busy where somebody else already
// waits for the same direction of fd. A regular file is always ready. Parks; a stop point. On a
// thread that is no actor it blocks that thread.
io_result<void> wait_readable(int fd, deadline until = deadline::never());

// wait_writable waits until a write to fd would not block; otherwise as wait_readable.
io_result<void> wait_writable(int fd, deadline until = deadline::never());

// unique_fd owns a file descriptor and closes it. Actors that wait for it with wait_readable or
// wait_writable are then woken with bad_file_descriptor. Closing never parks.
class unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~unique_fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

  // release gives the descriptor out of hand without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  // reset closes the descriptor, if there is one, and takes another.
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace smarm
