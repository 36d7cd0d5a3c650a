// Waits for descriptors that are not ours; see fd_wait.hpp.
#include "io/fd_wait.hpp"

#include <errno.h>
#include <poll.h>

#include "base/assert.hpp"
#include "io/dispatch.hpp"
#include "io/epoll_driver.hpp"
#include "io/socket_wait.hpp"
#include "io/system_call.hpp"

namespace smarm::detail {
namespace {

short poll_events(fd_direction direction) noexcept {
  return direction == fd_direction::read ? POLLIN | POLLRDHUP : POLLOUT;
}

io_result<void> poll_until(int fd, fd_direction direction, deadline until) noexcept {
  const int result = poll_fd(fd, poll_events(direction), until);
  if (result < 0) return std::unexpected(error_of(result));
  if (result == 0) return failure(std::errc::timed_out);
  return {};
}

enum class begun : std::uint8_t {
  waiting,       // the waiter is entered: park
  ready_always,  // the kernel cannot watch it: a regular file
  is_owned,      // it is a socket of ours, which waits otherwise
  refused,       // there is an error
};

// fd_wait is one wait; leaving it, however, takes the waiter and the registration out again.
class fd_wait {
 public:
  fd_wait(fd_entry& entry, int fd, fd_direction direction) noexcept
      : entry_(entry), fd_(fd), direction_(direction) {}
  fd_wait(const fd_wait&) = delete;
  fd_wait& operator=(const fd_wait&) = delete;
  ~fd_wait() { (void)end(); }

  begun begin(epoll_set& own, std::error_code& error) noexcept {
    waker orphan;
    begun result = begun::waiting;
    {
      const raw_guard guard(entry_.lock);
      result = enter(own, error, orphan);
    }
    orphan.wake();
    return result;
  }

  fd_waiter::outcome end() noexcept {
    const raw_guard guard(entry_.lock);
    if (entry_.waiter(direction_) == &waiter_) {
      entry_.waiter(direction_) = nullptr;
      // Taking away cannot fail in a way that matters: at worst a report comes that nobody awaits.
      if (entry_.closing == 0) (void)arm_for_waiters(entry_, fd_, nullptr);
    }
    return waiter_.why;
  }

  [[nodiscard]] const waker& wake() const noexcept { return waiter_.wake; }

 private:
  begun enter(epoll_set& own, std::error_code& error, waker& orphan) noexcept {
    if (entry_.owned) return begun::is_owned;
    if (entry_.waiter(direction_) != nullptr) {
      error = std::make_error_code(std::errc::device_or_resource_busy);
      return begun::refused;
    }
    waiter_.wake = begin_wait();
    entry_.waiter(direction_) = &waiter_;
    if (entry_.closing > 0) return begun::waiting;  // end_close sends us on
    const int armed = arm_for_waiters(entry_, fd_, &own);
    if (armed == 0) return begun::waiting;
    entry_.waiter(direction_) = nullptr;
    // Whoever waits for the other direction waits for a descriptor that was closed behind our back.
    orphan = take_waiter(entry_, other(direction_), fd_waiter::outcome::closed);
    unregister(entry_, fd_);
    if (armed == -EPERM) return begun::ready_always;
    error = error_of(armed);
    return begun::refused;
  }

  static fd_direction other(fd_direction direction) noexcept {
    return direction == fd_direction::read ? fd_direction::write : fd_direction::read;
  }

  fd_entry& entry_;
  int fd_;
  fd_direction direction_;
  fd_waiter waiter_;
};

// wait_owned waits for a socket of ours by its number. Whoever calls reads and writes it without
// us, so its ready bits may be stale: the kernel is asked before they are believed.
io_result<void> wait_owned(int fd, fd_direction direction, deadline until) {
  const socket_hold held(fd);
  if (!held) return failure(std::errc::bad_file_descriptor);
  for (;;) {
    // acquire pairs with mark in dispatch.cpp: the poll comes after the report.
    const std::uint32_t seen = held.entry().ready_word(direction).load(acquire);
    const int now = poll_fd(fd, poll_events(direction), deadline::from_ns(0));
    if (now > 0) return {};
    if (now < 0) return std::unexpected(error_of(now));
    clear_ready(held.entry(), direction, seen);
    if (const std::error_code error = wait_socket(held, direction, until)) {
      return std::unexpected(error);
    }
  }
}

}  // namespace

std::error_code own_epoll_set(runtime_core& runtime, epoll_set*& own) {
  try {
    own = &epoll_set_of(runtime);
    return {};
  } catch (const std::system_error& error) {
    return error.code();
  }
}

io_result<void> wait_fd(int fd, fd_direction direction, deadline until, wait_reason reason) {
  runtime_core* const runtime = current_runtime();
  // So whoever enters a wait is an actor, whose begin_wait takes no lock; see wait_socket.
  if (runtime == nullptr) return poll_until(fd, direction, until);
  stop_point();
  if (fd < 0) return failure(std::errc::bad_file_descriptor);
  fd_entry* const entry = fd_entry_for(fd);
  if (entry == nullptr) return failure(std::errc::too_many_files_open);
  epoll_set* own = nullptr;
  if (const std::error_code error = own_epoll_set(*runtime, own)) return std::unexpected(error);
  for (;;) {
    std::error_code error;
    fd_wait wait(*entry, fd, direction);
    switch (wait.begin(*own, error)) {
      case begun::waiting:
        break;
      case begun::ready_always:
        return {};
      case begun::is_owned:
        return wait_owned(fd, direction, until);
      case begun::refused:
        return std::unexpected(error);
    }
    const fd_wait_count counted(*runtime);
    (void)park(wait.wake(), reason, until);
    switch (wait.end()) {
      // The thread that watches may not have come to it yet, so the kernel has the last word.
      case fd_waiter::outcome::none:
        return poll_until(fd, direction, deadline::from_ns(0));
      case fd_waiter::outcome::ready:
        return {};
      case fd_waiter::outcome::closed:
        return failure(std::errc::bad_file_descriptor);
      case fd_waiter::outcome::moved:
        break;  // once more, with our own set
    }
  }
}

void end_close(fd_entry& entry) noexcept {
  waker waiting[2];
  {
    const raw_guard guard(entry.lock);
    SMARM_ASSERT(entry.closing > 0, "a close that ends has begun", entry.closing);
    if (--entry.closing > 0) return;
    waiting[0] = take_waiter(entry, fd_direction::read, fd_waiter::outcome::moved);
    waiting[1] = take_waiter(entry, fd_direction::write, fd_waiter::outcome::moved);
  }
  for (const waker& wake : waiting) wake.wake();
}

fd_close::fd_close(int fd) noexcept : entry_(fd_entry_for(fd)) {
  if (entry_ == nullptr) return;  // and nobody else gets an entry to wait with
  waker waiting[2];
  {
    const raw_guard guard(entry_->lock);
    if (entry_->owned) {
      entry_ = nullptr;
      return;
    }
    ++entry_->closing;
    unregister(*entry_, fd);
    waiting[0] = take_waiter(*entry_, fd_direction::read, fd_waiter::outcome::closed);
    waiting[1] = take_waiter(*entry_, fd_direction::write, fd_waiter::outcome::closed);
  }
  for (const waker& wake : waiting) wake.wake();
}

fd_close::~fd_close() {
  if (entry_ != nullptr) end_close(*entry_);
}

}  // namespace smarm::detail
