// The operations on a stream socket: attempt first, wait where there was nothing; see
// socket_wait.hpp for why no readiness is lost between the two.
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>

#include <smarm/detail/stream_socket.hpp>
#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "io/fd_wait.hpp"
#include "io/socket_wait.hpp"
#include "io/system_call.hpp"
#include "sched/driver.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t parts_max = 64;  // buffers of one write; tcp.hpp promises this number
constexpr std::uint8_t streak_max = 64;

// An actor whose peer is always a step ahead never waits and would keep its scheduler for ever; so
// every streak_max operations it lets the others run.
void give_way_after_streak(fd_entry& entry, fd_direction direction) {
  atomic<std::uint8_t>& streak = entry.streak[static_cast<std::size_t>(direction)];
  // relaxed: the one reader's (writer's) own count.
  const std::uint8_t length = streak.load(relaxed);
  streak.store(length < streak_max ? length + 1 : 0, relaxed);  // relaxed: as above
  if (length >= streak_max) yield();
}

// attempted is what one try of the system call gave.
struct attempted {
  ssize_t result;        // a value, or a negative error
  bool emptied = false;  // it took all there was: the next try would find nothing
};

// attempt_or_wait calls attempt() until it gives something else than "would block": that value, or
// the error. After the deadline it tries once more, since the report may be on its way.
template <class Attempt>
io_result<std::size_t> attempt_or_wait(int fd, std::uint32_t generation, fd_direction direction,
                                       deadline until, Attempt attempt) {
  stop_point();
  const socket_hold held(fd, generation);
  if (!held) return failure(std::errc::bad_file_descriptor);
  fd_entry& entry = held.entry();
  give_way_after_streak(entry, direction);
  bool try_now = false;
  bool is_last = false;
  for (;;) {
    // acquire pairs with mark in dispatch.cpp: the attempt comes after the report.
    const std::uint32_t seen = entry.ready_word(direction).load(acquire);
    if (try_now || (seen & ready_bits::ready) != 0) {
      const attempted got = attempt(held);
      if (got.emptied && (seen & ready_bits::inexact) == 0) clear_ready(entry, direction, seen);
      if (got.result > 0) return static_cast<std::size_t>(got.result);
      // Closed by another actor meanwhile: the end or error it made is not the peer's.
      if (!held.is_open()) return failure(std::errc::bad_file_descriptor);
      if (got.result == 0) return 0;
      if (got.result != -EAGAIN) return std::unexpected(error_of(got.result));
      clear_ready(entry, direction, seen);
      if (is_last) return failure(std::errc::timed_out);
    }
    // relaxed: the one reader's (writer's) own count.
    entry.streak[static_cast<std::size_t>(direction)].store(0, relaxed);
    const std::error_code error = wait_socket(held, direction, until);
    is_last = error == std::errc::timed_out;
    if (error && !is_last) return std::unexpected(error);
    try_now = true;
  }
}

// gather fills `parts` with those of the buffers that are not empty, leaving out the first `skip`
// bytes; it returns how many it filled and how many bytes they hold.
struct gathered {
  std::size_t count = 0;
  std::size_t bytes = 0;
};
gathered gather(std::span<const const_buffer> from, std::size_t skip,
                std::array<iovec, parts_max>& parts) noexcept {
  gathered sum;
  for (const const_buffer part : from) {
    if (sum.count == parts.size()) break;
    const std::size_t left_out = std::min(skip, part.size());
    skip -= left_out;
    const const_buffer rest = part.subspan(left_out);
    if (rest.empty()) continue;
    // SAFETY: sendmsg does not write through the pointer; iovec serves both directions.
    parts[sum.count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    sum.bytes += rest.size();
  }
  return sum;
}

// Errors that accept reports of the connection it took from the queue, not of the listener
// (accept(2), "Error handling").
bool is_of_the_connection(std::error_code error) noexcept {
  switch (error.value()) {
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

bool is_shortage(std::error_code error) noexcept {
  const int value = error.value();
  return value == EMFILE || value == ENFILE || value == ENOBUFS || value == ENOMEM;
}

// back_off pauses, each time twice as long as before; false: the deadline is reached.
class back_off {
 public:
  back_off(std::chrono::nanoseconds first, std::chrono::nanoseconds longest) noexcept
      : next_(first), longest_(longest) {}

  bool pause(deadline until) {
    if (until.has_passed()) return false;
    sleep_until(std::min(until, deadline(next_)));
    next_ = std::min(next_ * 2, longest_);
    return true;
  }

 private:
  std::chrono::nanoseconds next_;
  std::chrono::nanoseconds longest_;
};

}  // namespace

io_result<stream_socket> stream_socket::adopt(unique_fd fd, bool local) noexcept {
  const auto generation =
      adopt_socket(fd.get(), local ? socket_family::local : socket_family::inet);
  if (!generation) return failure(std::errc::too_many_files_open);
  return stream_socket(fd.release(), *generation);
}

io_result<std::size_t> stream_socket::read_some(std::span<std::byte> into, deadline until) {
  if (into.empty()) return 0;
  return attempt_or_wait(
      fd_, generation_, fd_direction::read, until, [into](const socket_hold& held) -> attempted {
        if (!held.entry().passes_descriptors) {
          const ssize_t size = receive(held.fd(), into);
          return {size, size > 0 && static_cast<std::size_t>(size) < into.size()};
        }
        bool cut_short = false;
        const ssize_t size = receive_local(held.fd(), into, cut_short);
        return {size, size > 0 && static_cast<std::size_t>(size) < into.size() && !cut_short};
      });
}

io_result<std::size_t> stream_socket::write_some(const_buffer from, deadline until) {
  if (from.empty()) return 0;
  return attempt_or_wait(
      fd_, generation_, fd_direction::write, until,
      [from](const socket_hold& held) -> attempted { return {send_bytes(held.fd(), from)}; });
}

io_result<std::size_t> stream_socket::write_some(std::span<const const_buffer> from,
                                                 deadline until) {
  std::array<iovec, parts_max> parts;
  const gathered all = gather(from, 0, parts);
  if (all.count == 0) return 0;
  return attempt_or_wait(fd_, generation_, fd_direction::write, until,
                         [&](const socket_hold& held) -> attempted {
                           return {send_vector(held.fd(), std::span(parts).first(all.count))};
                         });
}

io_result<void> stream_socket::write_all(const_buffer from, deadline until) {
  while (!from.empty()) {
    const auto written = write_some(from, until);
    if (!written) return std::unexpected(written.error());
    from = from.subspan(*written);
  }
  return {};
}

io_result<void> stream_socket::write_all(std::span<const const_buffer> from, deadline until) {
  std::size_t done = 0;  // bytes of `from`, counted from its present front
  for (;;) {
    while (!from.empty() && done >= from.front().size()) {
      done -= from.front().size();
      from = from.subspan(1);
    }
    if (from.empty()) return {};
    std::array<iovec, parts_max> parts;
    const gathered rest = gather(from, done, parts);
    const auto written = attempt_or_wait(
        fd_, generation_, fd_direction::write, until, [&](const socket_hold& held) -> attempted {
          return {send_vector(held.fd(), std::span(parts).first(rest.count))};
        });
    if (!written) return std::unexpected(written.error());
    SMARM_ASSERT(*written > 0 && *written <= rest.bytes, "a write takes some of what it was given",
                 *written, rest.bytes);
    done += *written;
  }
}

io_result<void> stream_socket::shutdown_write() noexcept {
  const socket_hold held(fd_, generation_);
  if (!held) return failure(std::errc::bad_file_descriptor);
  const int result = shutdown_socket(fd_, SHUT_WR);
  if (result < 0) return std::unexpected(error_of(result));
  return {};
}

io_result<void> stream_socket::set_option(int level, int name, int value) noexcept {
  const socket_hold held(fd_, generation_);
  if (!held) return failure(std::errc::bad_file_descriptor);
  const int result = set_socket_option(fd_, level, name, value);
  if (result < 0) return std::unexpected(error_of(result));
  return {};
}

io_result<void> stream_socket::name(bool peer, void* address) const noexcept {
  const socket_hold held(fd_, generation_);
  if (!held) return failure(std::errc::bad_file_descriptor);
  socklen_t size = 0;
  const int result = socket_name(fd_, peer, *static_cast<sockaddr_storage*>(address), size);
  if (result < 0) return std::unexpected(error_of(result));
  return {};
}

io_result<unique_fd> stream_socket::accept(deadline until) {
  back_off shortage(10ms, 200ms);
  runtime_core* const runtime = current_runtime();
  for (;;) {
    // The connections will wait for their peers, and the descriptors which that takes must be there
    // before the connections have taken the last one.
    epoll_set* own = nullptr;
    if (const auto error = runtime == nullptr ? std::error_code() : own_epoll_set(*runtime, own)) {
      if (!is_shortage(error)) return std::unexpected(error);
      if (!shortage.pause(until)) return failure(std::errc::timed_out);
      continue;
    }
    // One more than the descriptor, because 0 is one and says "nothing" to attempt_or_wait.
    const auto taken = attempt_or_wait(fd_, generation_, fd_direction::read, until,
                                       [](const socket_hold& held) -> attempted {
                                         const int fd = accept_on(held.fd());
                                         return {fd < 0 ? fd : fd + 1};
                                       });
    if (taken) return unique_fd(static_cast<int>(*taken) - 1);
    if (is_of_the_connection(taken.error())) continue;
    if (!is_shortage(taken.error())) return std::unexpected(taken.error());
    if (!shortage.pause(until)) return failure(std::errc::timed_out);
  }
}

io_result<void> stream_socket::connect(const void* address, std::size_t size, deadline until) {
  stop_point();
  const socket_hold held(fd_, generation_);
  if (!held) return failure(std::errc::bad_file_descriptor);
  fd_entry& entry = held.entry();
  back_off queue_full(1ms, 50ms);
  int started = connect_to(fd_, address, size);
  while (started == -EAGAIN && held.entry().passes_descriptors) {
    // A local listener whose queue is full: there is nothing to wait for but time.
    if (!queue_full.pause(until)) return failure(std::errc::timed_out);
    started = connect_to(fd_, address, size);
  }
  if (started == 0) return {};
  if (started != -EINPROGRESS) return std::unexpected(error_of(started));
  for (;;) {
    // The connection is under way, so the socket has only just been told to be not ready; what
    // is reported from here on makes the word differ from what is loaded here.
    // acquire pairs with mark in dispatch.cpp: the question below comes after the report.
    const std::uint32_t seen = entry.ready_word(fd_direction::write).load(acquire);
    sockaddr_storage peer;
    socklen_t peer_size = 0;
    if (const int error = take_socket_error(fd_); error < 0)
      return std::unexpected(error_of(error));
    if (socket_name(fd_, true, peer, peer_size) == 0) return {};
    clear_ready(entry, fd_direction::write, seen);
    if (const std::error_code error = wait_socket(held, fd_direction::write, until)) {
      return std::unexpected(error);
    }
  }
}

bool stream_socket::close() noexcept { return fd_ >= 0 && close_socket(fd_, generation_); }

bool stream_socket::is_open() const noexcept {
  const fd_entry* const entry = find_fd(fd_);
  return entry != nullptr && entry->is_open(generation_);
}

}  // namespace smarm::detail
