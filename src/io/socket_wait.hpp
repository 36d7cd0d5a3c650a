// socket_wait is how operations on a socket of ours try, and wait, without a system call for the
// waiting.
//
// A socket is registered with the kernel when an operation first has to wait, edge-triggered, for
// the directions that have been waited for, and stays so until it is closed. Each report of the
// kernel (dispatch) sets the direction's ready bit and adds one to its count of reports. An
// operation on a direction goes
//   seen = the word;                            (1)
//   is the ready bit set in seen?  then attempt (2)   else wait (4)
//   the attempt found nothing:     clear_ready(seen)  (3), and start over
//   wait: under the entry's lock, if the ready bit is still clear, enter the waiter and park (4)
// clear_ready clears the bit only if the word still equals seen.
//
// Why no edge is lost. Say the kernel's state turns ready at moment T and is reported at R > T.
//   - R before (1): the attempt (2) comes after T and finds it.
//   - R between (1) and (3): the word differs from seen, (3) fails, and the operation starts over.
//   - R after (3): the report sets the bit again. R and (4) are under the same lock: either (4)
//     sees the bit, or R finds the waiter and wakes it.
// So the bit is clear only while the kernel's direction is not ready or a report of it is still to
// come. A report that comes late, for what an attempt has consumed already, costs one attempt
// that finds nothing; it never clears anything. If the direction was not registered at (4), it is
// now, under the lock; registering makes the kernel report what is so at that moment.
//
// A read that gave less than was asked for has emptied the socket, and clears the bit as an
// attempt does that found nothing: so a request costs one read and no second one to learn that
// there is no more. Not so when
//   - the end or an error has been reported (inexact bit): it will not be reported again;
//   - urgent data has been reported (inexact bit): a read stops short at the mark;
//   - descriptors were passed with what was read, on a local socket: the kernel stops there.
// An end that is reported later than (1) makes the clear fail, as any report. A short write is
// followed by an attempt that finds no room: rare enough, and it makes the kernel report the room.
//
// RDHUP marks the reading side only: a peer that has ended its half still reads.
#pragma once

#include <cstdint>
#include <optional>
#include <system_error>

#include <smarm/deadline.hpp>
#include <smarm/fd.hpp>

#include "io/fd_table.hpp"

namespace smarm::detail {

// socket_hold keeps a socket's descriptor open while an operation is inside; empty where the
// socket of that generation is closed.
class socket_hold {
 public:
  socket_hold(int fd, std::uint32_t generation) noexcept;
  // Holds whatever socket of ours has the number now.
  explicit socket_hold(int fd) noexcept;
  socket_hold(const socket_hold&) = delete;
  socket_hold& operator=(const socket_hold&) = delete;
  ~socket_hold();

  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
  [[nodiscard]] fd_entry& entry() const noexcept { return *entry_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return entry_->is_open(generation_); }

 private:
  int fd_;
  std::uint32_t generation_ = 0;
  fd_entry* entry_ = nullptr;
};

enum class socket_family : std::uint8_t { inet, local };

// adopt_socket makes the descriptor a socket of ours and returns its generation; nothing where
// there is no entry for it. Any thread; never parks.
[[nodiscard]] std::optional<std::uint32_t> adopt_socket(int fd, socket_family family) noexcept;

// close_socket ends the socket: no operation begins any more, waiters are woken, and the
// descriptor is closed when the last operation has left. False: it was not open. Any thread.
bool close_socket(int fd, std::uint32_t generation) noexcept;

// clear_ready notes that an attempt after the load of `seen` found the direction not ready.
void clear_ready(fd_entry& entry, fd_direction direction, std::uint32_t seen) noexcept;

// wait_socket waits until an attempt makes sense. Errors: timed_out, bad_file_descriptor (closed),
// device_or_resource_busy (somebody else waits), what registering gave. PARKS; a stop point. On a
// thread that is no actor it blocks that thread.
[[nodiscard]] std::error_code wait_socket(const socket_hold& held, fd_direction direction,
                                          deadline until);

}  // namespace smarm::detail
