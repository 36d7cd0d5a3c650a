// Life and waits of sockets of ours; see socket_wait.hpp.
#include "io/socket_wait.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/assert.hpp"
#include "io/dispatch.hpp"
#include "io/epoll_driver.hpp"
#include "io/fd_wait.hpp"
#include "io/system_call.hpp"
#include "sched/driver.hpp"

namespace smarm::detail {
namespace {

constexpr std::uint32_t persistent_read = EPOLLET | EPOLLIN | EPOLLRDHUP | EPOLLPRI;
constexpr std::uint32_t persistent_write = EPOLLET | EPOLLOUT;

// arm registers the socket for the direction if it is not yet. The kernel then reports what is so
// at that moment. Under the entry's lock. 0 or a negative error.
int arm(fd_entry& entry, int fd, fd_direction direction, epoll_set& own) noexcept {
  SMARM_ASSERT(entry.set != nullptr || entry.armed == 0,
               "what is registered nowhere is armed for nothing", fd, entry.armed);
  const bool read = direction == fd_direction::read;
  const std::uint32_t wanted = entry.armed | (read ? persistent_read : persistent_write);
  if (entry.set != nullptr && wanted == entry.armed) return 0;
  // A new number, and kept only if the kernel has taken it: one that failed to change a
  // registration goes on reporting under the old one. A report under the new one waits for the
  // lock.
  const std::uint32_t registration = entry.registration + 1;
  const int result = entry.set != nullptr ? entry.set->modify(fd, registration, wanted)
                                          : own.add(fd, registration, wanted);
  if (result != 0) return result;
  if (entry.set == nullptr) entry.set = &own;
  entry.registration = registration;
  entry.armed = wanted;
  return 0;
}

// socket_wait is one wait of one operation; leaving it, however, takes the waiter out again.
class socket_wait {
 public:
  socket_wait(const socket_hold& held, fd_direction direction) noexcept
      : held_(held), direction_(direction) {}
  socket_wait(const socket_wait&) = delete;
  socket_wait& operator=(const socket_wait&) = delete;
  ~socket_wait() { (void)end(); }

  // begin enters the waiter. True: park now; false: there is an error, or no need to wait.
  bool begin(epoll_set& own, std::error_code& error) noexcept {
    fd_entry& entry = held_.entry();
    const raw_guard guard(entry.lock);
    // Under the lock: a closer marks the socket closed first and looks for waiters under it.
    if (!held_.is_open()) {
      error = std::make_error_code(std::errc::bad_file_descriptor);
      return false;
    }
    // relaxed: reports are made under this lock; see "why no edge is lost".
    const std::uint32_t word = entry.ready_word(direction_).load(relaxed);
    if ((word & ready_bits::ready) != 0) return false;
    if (entry.waiter(direction_) != nullptr) {
      error = std::make_error_code(std::errc::device_or_resource_busy);
      return false;
    }
    if (const int armed = arm(entry, held_.fd(), direction_, own); armed < 0) {
      error = error_of(armed);
      return false;
    }
    waiter_.wake = begin_wait();
    entry.waiter(direction_) = &waiter_;
    return true;
  }

  // end takes the waiter out if nobody has, and tells what became of the wait.
  fd_waiter::outcome end() noexcept {
    fd_entry& entry = held_.entry();
    const raw_guard guard(entry.lock);
    if (entry.waiter(direction_) == &waiter_) entry.waiter(direction_) = nullptr;
    return waiter_.why;
  }

  [[nodiscard]] const waker& wake() const noexcept { return waiter_.wake; }

 private:
  const socket_hold& held_;
  fd_direction direction_;
  fd_waiter waiter_;
};

std::error_code wait_on_thread(const socket_hold& held, fd_direction direction, deadline until) {
  const short events = direction == fd_direction::read ? POLLIN | POLLRDHUP : POLLOUT;
  const int result = poll_fd(held.fd(), events, until);
  if (result < 0) return error_of(result);
  if (!held.is_open()) return std::make_error_code(std::errc::bad_file_descriptor);
  return result == 0 ? std::make_error_code(std::errc::timed_out) : std::error_code();
}

}  // namespace

socket_hold::socket_hold(int fd, std::uint32_t generation) noexcept
    : fd_(fd), generation_(generation) {
  fd_entry* const entry = find_fd(fd);
  if (entry == nullptr) return;
  std::uint64_t hold = entry->hold_.load(relaxed);  // relaxed: the exchange below decides
  do {
    if (fd_entry::generation_of(hold) != generation || (hold & fd_entry::closed_bit) != 0) return;
    // acquire pairs with adopt_socket: what it wrote of the socket is seen.
  } while (!entry->hold_.compare_exchange_weak(hold, hold + 1, acquire, relaxed));
  entry_ = entry;
}

socket_hold::socket_hold(int fd) noexcept
    : socket_hold(fd, find_fd(fd) == nullptr
                          ? 0
                          // relaxed: a number to try; the other constructor checks it
                          : fd_entry::generation_of(find_fd(fd)->hold_.load(relaxed))) {}

socket_hold::~socket_hold() {
  if (entry_ == nullptr) return;
  // acq_rel: the operations of every user happen before the close by the last one, and before
  // adopt_socket for the next socket of that number. After this the entry may be another's.
  const std::uint64_t before = entry_->hold_.fetch_sub(1, acq_rel);
  SMARM_ASSERT((before & fd_entry::users_mask) != 0, "an operation that leaves had entered", fd_);
  if ((before & fd_entry::closed_bit) == 0 || (before & fd_entry::users_mask) != 1) return;
  close_fd(fd_);
  end_close(*entry_);
}

std::optional<std::uint32_t> adopt_socket(int fd, socket_family family) noexcept {
  fd_entry* const entry = fd_entry_for(fd);
  if (entry == nullptr) return std::nullopt;
  // acquire pairs with the last user's leaving of the former socket of that number.
  const std::uint64_t before = entry->hold_.load(acquire);
  if ((before & fd_entry::closed_bit) == 0 || (before & fd_entry::users_mask) != 0) {
    fatal("descriptor %d of an open socket was closed by somebody who does not own it", fd);
  }
  waker left_over[2];
  {
    const raw_guard guard(entry->lock);
    // Whoever still waits for the number waits for a descriptor that was closed behind our back.
    unregister(*entry, fd);
    left_over[0] = take_waiter(*entry, fd_direction::read, fd_waiter::outcome::closed);
    left_over[1] = take_waiter(*entry, fd_direction::write, fd_waiter::outcome::closed);
    entry->owned = true;
    entry->passes_descriptors = family == socket_family::local;
    for (const auto direction : {fd_direction::read, fd_direction::write}) {
      atomic<std::uint32_t>& word = entry->ready_word(direction);
      // relaxed: nobody else has the socket yet; published with hold_ below.
      const std::uint32_t count = word.load(relaxed) & ~(ready_bits::report - 1);
      word.store((count + ready_bits::report) | ready_bits::ready, relaxed);  // relaxed: as above
    }
  }
  std::uint32_t generation = fd_entry::generation_of(before) + 1;
  if (generation == 0) generation = 1;  // 0 is no socket's
  // release pairs with the constructor of socket_hold.
  entry->hold_.store(std::uint64_t{generation} << 32, release);
  for (const waker& wake : left_over) wake.wake();
  return generation;
}

bool close_socket(int fd, std::uint32_t generation) noexcept {
  fd_entry* const entry = find_fd(fd);
  if (entry == nullptr) return false;
  std::uint64_t hold = entry->hold_.load(relaxed);  // relaxed: the exchange below decides
  do {
    if (fd_entry::generation_of(hold) != generation || (hold & fd_entry::closed_bit) != 0) {
      return false;
    }
    // The closer is a user itself, so that the descriptor is open until it has unregistered it.
    // acq_rel pairs with is_open and with the users' leaving.
  } while (!entry->hold_.compare_exchange_weak(hold, (hold | fd_entry::closed_bit) + 1, acq_rel,
                                               relaxed));
  waker waiting[2];
  {
    const raw_guard guard(entry->lock);
    unregister(*entry, fd);
    entry->owned = false;
    ++entry->closing;
    waiting[0] = take_waiter(*entry, fd_direction::read, fd_waiter::outcome::closed);
    waiting[1] = take_waiter(*entry, fd_direction::write, fd_waiter::outcome::closed);
  }
  const bool others = (hold & fd_entry::users_mask) != 0;
  if (others) (void)shutdown_socket(fd, SHUT_RDWR);  // ends the poll of a thread that is no actor
  for (const waker& wake : waiting) wake.wake();
  // acq_rel: as in ~socket_hold. The last to leave closes.
  const std::uint64_t before = entry->hold_.fetch_sub(1, acq_rel);
  if ((before & fd_entry::users_mask) != 1) return true;
  close_fd(fd);
  end_close(*entry);
  return true;
}

void clear_ready(fd_entry& entry, fd_direction direction, std::uint32_t seen) noexcept {
  // relaxed: the value alone counts. A report since `seen` has changed the word, and this fails.
  (void)entry.ready_word(direction).compare_exchange_strong(seen, seen & ~ready_bits::ready,
                                                            relaxed, relaxed);
}

std::error_code wait_socket(const socket_hold& held, fd_direction direction, deadline until) {
  runtime_core* const runtime = current_runtime();
  // So whoever goes on is an actor, whose begin_wait takes no lock and may be called under the
  // entry's. A thread's first one would take the lock of the parkers' pool.
  if (runtime == nullptr) return wait_on_thread(held, direction, until);
  epoll_set* own = nullptr;
  if (const std::error_code error = own_epoll_set(*runtime, own)) return error;
  socket_wait wait(held, direction);
  std::error_code error;
  if (!wait.begin(*own, error)) return error;
  const fd_wait_count counted(*runtime);
  const bool read = direction == fd_direction::read;
  (void)park(wait.wake(), read ? wait_reason::fd_readable : wait_reason::fd_writable, until);
  switch (wait.end()) {
    case fd_waiter::outcome::none:
      return std::make_error_code(std::errc::timed_out);
    case fd_waiter::outcome::closed:
      return std::make_error_code(std::errc::bad_file_descriptor);
    case fd_waiter::outcome::ready:
    case fd_waiter::outcome::moved:
      break;
  }
  return {};
}

}  // namespace smarm::detail
