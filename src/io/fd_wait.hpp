// fd_wait is how an actor waits for a descriptor that is not ours: a registration for one report,
// made for the wait and gone with it.
//
// A wait enters its fd_waiter in the descriptor's entry and registers, under the entry's lock, for
// the union of what is waited for on that descriptor. Whatever ends the wait takes the waiter out
// and brings the registration in line with who is left, under the same lock. A wait that is left by
// a stop or its deadline finds by the waiter's address whether the entry is still its own: the
// fresh wait of another actor on the same descriptor is another waiter, and left alone.
#pragma once

#include <system_error>

#include <smarm/deadline.hpp>
#include <smarm/io_result.hpp>

#include "io/fd_table.hpp"
#include "sched/driver.hpp"
#include "sched/wait_reason.hpp"

namespace smarm::detail {

class epoll_set;

// wait_fd waits until the direction is ready; see smarm::wait_readable. PARKS; a stop point.
[[nodiscard]] io_result<void> wait_fd(int fd, fd_direction direction, deadline until,
                                      wait_reason reason);

// fd_close stands around the close of a descriptor that is not ours: who waits for it is woken, and
// who begins to wait before the close is over waits for its end and then looks again. So nobody
// waits for a descriptor that has gone. Any thread.
class fd_close {
 public:
  explicit fd_close(int fd) noexcept;
  ~fd_close();
  fd_close(const fd_close&) = delete;
  fd_close& operator=(const fd_close&) = delete;

 private:
  fd_entry* entry_;  // null: nobody can wait for it, or it is ours
};

// end_close says that a close counted in `closing` is over.
void end_close(fd_entry& entry) noexcept;

// own_epoll_set finds the runtime's set, or says why there is none.
[[nodiscard]] std::error_code own_epoll_set(runtime_core& runtime, epoll_set*& own);

// fd_wait_count counts the calling actor among those that wait for a descriptor.
class fd_wait_count {
 public:
  explicit fd_wait_count(runtime_core& runtime) noexcept : runtime_(runtime) {
    fd_wait_started(runtime_);
  }
  fd_wait_count(const fd_wait_count&) = delete;
  fd_wait_count& operator=(const fd_wait_count&) = delete;
  ~fd_wait_count() { fd_wait_finished(runtime_); }

 private:
  runtime_core& runtime_;
};

}  // namespace smarm::detail
