// The system calls of src/io on the models' kernel, its epoll thread and its other threads.
#include "tests/model/kernel.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "io/dispatch.hpp"
#include "io/epoll_driver.hpp"
#include "io/io_thread.hpp"
#include "io/system_call.hpp"
#include "model/model.hpp"
#include "sched/driver.hpp"

namespace smarm::under_model {

namespace {
kernel* the_kernel = nullptr;

// The threads that the source has started in this run, each written by the one that starts it.
struct started_threads {
  std::array<model::thread, 4> started;
  std::size_t count = 0;
};
started_threads the_threads;

}  // namespace

kernel::kernel() {
  the_kernel = this;
  the_threads = {};
  model::name(word_, "kernel");
  model::name(entry.readiness[0], "readable");
}
kernel::~kernel() { the_kernel = nullptr; }

kernel& kernel::current() noexcept { return *the_kernel; }

kernel::state kernel::fields(std::uint64_t word) noexcept {
  state of;
  of.registration = static_cast<std::uint32_t>(word >> 32);
  of.bytes = static_cast<std::uint8_t>(word >> 16);
  const auto bit = [word](int n) { return (word >> n & 1) != 0; };
  of.room = bit(0);
  of.closed = bit(1);
  of.stopped = bit(2);
  of.registered = bit(3);
  of.one_shot = bit(4);
  of.wants_in = bit(5);
  of.wants_out = bit(6);
  of.pending_in = bit(7);
  of.pending_out = bit(8);
  return of;
}

std::uint64_t kernel::word(const state& of) noexcept {
  std::uint64_t word = (std::uint64_t{of.registration} << 32) | (std::uint64_t{of.bytes} << 16);
  int bit = 0;
  for (const bool flag : {of.room, of.closed, of.stopped, of.registered, of.one_shot, of.wants_in,
                          of.wants_out, of.pending_in, of.pending_out}) {
    word |= std::uint64_t{flag} << bit++;
  }
  return word;
}

template <class Change>
kernel::state kernel::update(Change change, std::memory_order order) noexcept {
  return fields(word_.await_update([](std::uint64_t) { return true; },
                                   [&change](std::uint64_t now) {
                                     state next = fields(now);
                                     change(next);
                                     return word(next);
                                   },
                                   order));
}

void kernel::send(std::uint64_t bytes) noexcept {
  update([bytes](state& now) {
    now.bytes = static_cast<std::uint8_t>(now.bytes + bytes);
    now.pending_in = now.pending_in || (now.registered && now.wants_in);
  });
}

void kernel::make_room() noexcept {
  update([](state& now) {
    now.room = true;
    now.pending_out = now.pending_out || (now.registered && now.wants_out);
  });
}

void kernel::watch() noexcept {
  for (;;) {
    const auto wakes = [](std::uint64_t now) {
      const state at = fields(now);
      return at.pending_in || at.pending_out || at.stopped;
    };
    const state got = fields(word_.await_update(
        wakes,
        [](std::uint64_t now) {
          state next = fields(now);
          if (!next.pending_in && !next.pending_out) return now;
          next.pending_in = next.pending_out = false;
          if (next.one_shot) next.wants_in = next.wants_out = false;
          return word(next);
        },
        detail::relaxed));
    if (!got.pending_in && !got.pending_out) return;
    epoll_event report{};
    report.events = (got.pending_in ? std::uint32_t{EPOLLIN} : 0U) |
                    (got.pending_out ? std::uint32_t{EPOLLOUT} : 0U);
    report.data.u64 = detail::epoll_set::data_of(the_fd, got.registration);
    static_cast<void>(detail::dispatch({&report, 1}));
  }
}

void kernel::await_registration() noexcept {
  word_.await([](std::uint64_t now) { return fields(now).registered; }, detail::relaxed);
}

void kernel::end_watch() noexcept {
  update([](state& now) { now.stopped = true; });
}

void kernel::reopen() noexcept {
  update(
      [](state& now) {
        const bool stopped = now.stopped;
        now = {};
        now.stopped = stopped;
      },
      detail::acquire);
}

bool kernel::is_closed() noexcept {
  return update([](state&) {}).closed;
}

int kernel::control(int operation, std::uint32_t events, std::uint64_t data) noexcept {
  // By the state that the call has met: a run that is repeated changes nothing again.
  const auto refusal = [operation](const state& met) {
    if (met.closed) return -EBADF;
    if (operation == EPOLL_CTL_ADD) return met.registered ? -EEXIST : 0;
    return met.registered ? 0 : -ENOENT;
  };
  return refusal(update([&](state& now) {
    if (refusal(now) != 0) return;
    now.registered = operation != EPOLL_CTL_DEL;
    now.registration = detail::epoll_set::registration_of(data);
    now.one_shot = (events & EPOLLONESHOT) != 0;
    now.wants_in = (events & EPOLLIN) != 0;
    now.wants_out = (events & EPOLLOUT) != 0;
    now.pending_in = now.wants_in && now.bytes != 0;
    now.pending_out = now.wants_out && now.room;
  }));
}

long kernel::receive() noexcept {
  static_cast<void>(file_.read());
  const state before = update([](state& now) { now.bytes = 0; });
  model::expect(!before.closed, "a system call meets an open descriptor");
  return before.bytes == 0 ? -EAGAIN : before.bytes;
}

int kernel::poll(short events) noexcept {
  const state now = update([](state&) {});
  if (now.closed) return POLLNVAL;
  return ((events & POLLIN) != 0 && now.bytes != 0 ? POLLIN : 0) |
         ((events & POLLOUT) != 0 && now.room ? POLLOUT : 0);
}

void kernel::close() noexcept {
  file_.write(1);
  const state before = update(
      [](state& now) {
        const bool stopped = now.stopped;
        now = {};
        now.stopped = stopped;
        now.closed = true;
      },
      detail::release);
  model::expect(!before.closed, "a descriptor is closed once");
}

}  // namespace smarm::under_model

namespace smarm::detail {

using under_model::kernel;
using under_model::the_fd;

// ---- the table -------------------------------------------------------------------------------

fd_entry* find_fd(int fd) noexcept { return fd == the_fd ? &kernel::current().entry : nullptr; }
fd_entry* fd_entry_for(int fd) noexcept { return find_fd(fd); }

// ---- system calls ----------------------------------------------------------------------------

int control(int, int operation, int fd, std::uint32_t events, std::uint64_t data) noexcept {
  SMARM_ASSERT(fd == the_fd, "the models have one descriptor", fd);
  return kernel::current().control(operation, events, data);
}
ssize_t receive(int, std::span<std::byte>) noexcept { return kernel::current().receive(); }
ssize_t receive_local(int, std::span<std::byte>, bool&) noexcept {
  return kernel::current().receive();
}
int poll_fd(int, short events, deadline) noexcept { return kernel::current().poll(events); }
int shutdown_socket(int, int) noexcept { return 0; }
void close_fd(int fd) noexcept {
  if (fd == the_fd) kernel::current().close();
}

// ---- the runtime's side ------------------------------------------------------------------------

epoll_set& epoll_set_of(runtime_core&) { return kernel::current().set; }
void fd_wait_started(runtime_core&) noexcept {}
void fd_wait_finished(runtime_core&) noexcept {}
void operation_started(runtime_core&) noexcept {
  kernel::current().outstanding.fetch_add(1, relaxed);
}
void operation_finished(runtime_core&) noexcept {
  kernel::current().outstanding.fetch_sub(1, relaxed);
}

// start_io_thread starts a thread of the model. The std::thread that it returns holds the thread's
// place in the table, counted from 1, where it would hold the system's name for it.
std::thread start_io_thread(const char*, std::function<void()> body) {
  auto& threads = under_model::the_threads;
  SMARM_ASSERT(threads.count < threads.started.size(), "a model has few threads", threads.count);
  threads.started[threads.count] = model::spawn([run = std::move(body)] { run(); });
  const std::uintptr_t place = ++threads.count;
  std::thread made;
  static_assert(sizeof made == sizeof place);
  std::memcpy(static_cast<void*>(&made), &place, sizeof place);
  return made;
}

}  // namespace smarm::detail

namespace std {
// The library's own would ask the system; see start_io_thread.
// NOLINTNEXTLINE(cert-dcl58-cpp)
void thread::join() {
  uintptr_t place = 0;
  memcpy(&place, static_cast<void*>(this), sizeof place);
  smarm::under_model::the_threads.started[place - 1].join();
  place = 0;
  memcpy(static_cast<void*>(this), &place, sizeof place);
}
}  // namespace std
