// The public face of waiting for descriptors; see smarm/fd.hpp.
#include <smarm/fd.hpp>

#include "io/fd_wait.hpp"
#include "io/system_call.hpp"

namespace smarm {

io_result<void> wait_readable(int fd, deadline until) {
  return detail::wait_fd(fd, detail::fd_direction::read, until, detail::wait_reason::fd_readable);
}

io_result<void> wait_writable(int fd, deadline until) {
  return detail::wait_fd(fd, detail::fd_direction::write, until, detail::wait_reason::fd_writable);
}

void unique_fd::reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const detail::fd_close closing(old);
  detail::close_fd(old);
}

}  // namespace smarm
