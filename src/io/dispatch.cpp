// Registrations with the kernel, and what becomes of its reports; see dispatch.hpp.
#include "io/dispatch.hpp"

#include <errno.h>

#include <array>

#include "base/assert.hpp"

namespace smarm::detail {
namespace {

constexpr std::uint32_t read_events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t write_events = EPOLLOUT | EPOLLHUP | EPOLLERR;
// After these a short read proves nothing: the end has been reported already and will not be again,
// or the read stopped at urgent data.
constexpr std::uint32_t inexact_events = EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// mark notes a report in the direction's word. Under the entry's lock.
void mark(fd_entry& entry, fd_direction direction, std::uint32_t bits) noexcept {
  atomic<std::uint32_t>& word = entry.ready_word(direction);
  std::uint32_t before = word.load(relaxed);  // relaxed: the exchange below decides
  // release pairs with the acquire load that precedes an operation's attempt. The count makes the
  // clear_ready of an operation fail that began before this report.
  while (!word.compare_exchange_weak(
      before, (before + ready_bits::report) | ready_bits::ready | bits, release, relaxed)) {
  }
}

// waker_batch collects the wakes of one batch: at most two for each report.
class waker_batch {
 public:
  void add(const waker& wake) noexcept {
    if (wake) wakers_[count_++] = wake;
  }
  // wake_all: true: there was somebody to wake.
  bool wake_all() noexcept {
    for (std::size_t i = 0; i < count_; ++i) wakers_[i].wake();
    return count_ != 0;
  }

 private:
  std::array<waker, 2 * dispatch_max> wakers_;
  std::size_t count_ = 0;
};

void report(fd_entry& entry, int fd, std::uint32_t events, waker_batch& batch) noexcept {
  using enum fd_waiter::outcome;
  if ((events & read_events) != 0) {
    const bool inexact = (events & inexact_events) != 0;
    if (entry.owned) mark(entry, fd_direction::read, inexact ? ready_bits::inexact : 0);
    batch.add(take_waiter(entry, fd_direction::read, ready));
  }
  if ((events & write_events) != 0) {
    if (entry.owned) mark(entry, fd_direction::write, 0);
    batch.add(take_waiter(entry, fd_direction::write, ready));
  }
  // The report has used up the one shot. It cannot fail for who is left waiting: the descriptor was
  // open and registered a moment ago; and if somebody closed it since, nobody can help them.
  if (!entry.owned) (void)arm_for_waiters(entry, fd, nullptr);
}

}  // namespace

waker take_waiter(fd_entry& entry, fd_direction direction, fd_waiter::outcome why) noexcept {
  fd_waiter* const waiting = entry.waiter(direction);
  if (waiting == nullptr) return {};
  entry.waiter(direction) = nullptr;
  waiting->why = why;
  return waiting->wake;
}

int arm_for_waiters(fd_entry& entry, int fd, epoll_set* own) noexcept {
  std::uint32_t events = 0;
  if (entry.waiter(fd_direction::read) != nullptr) events |= EPOLLIN | EPOLLRDHUP;
  if (entry.waiter(fd_direction::write) != nullptr) events |= EPOLLOUT;
  if (events == 0) {
    unregister(entry, fd);
    return 0;
  }
  events |= EPOLLONESHOT;
  // A new number: what the kernel has reported until now and nobody has seen yet is void; it
  // reports again what is so at this moment.
  ++entry.registration;
  entry.armed = events;
  if (entry.set != nullptr) {
    const int modified = entry.set->modify(fd, entry.registration, events);
    if (modified != -ENOENT) return modified;
    // The number was closed and opened again behind our back: the kernel has dropped us.
  } else {
    SMARM_ASSERT(own != nullptr, "whoever waits first brings a set to register with", fd);
    entry.set = own;
  }
  int added = entry.set->add(fd, entry.registration, events);
  if (added == -EEXIST) added = entry.set->modify(fd, entry.registration, events);
  if (added < 0) {
    // What is registered nowhere is armed for nothing: the number's next socket adds to `armed`.
    entry.set = nullptr;
    entry.armed = 0;
  }
  return added;
}

void unregister(fd_entry& entry, int fd) noexcept {
  if (entry.set == nullptr) return;
  // It may be gone already, with the descriptor that somebody closed behind our back.
  (void)entry.set->remove(fd);
  entry.set = nullptr;
  entry.armed = 0;
  ++entry.registration;
}

bool dispatch(std::span<const epoll_event> events) noexcept {
  SMARM_ASSERT(events.size() <= dispatch_max, "a batch has a bounded size", events.size());
  waker_batch batch;
  for (const epoll_event& event : events) {
    const int fd = epoll_set::fd_of(event.data.u64);
    fd_entry* const entry = find_fd(fd);
    SMARM_ASSERT(entry != nullptr, "a report is of a descriptor that was registered", fd);
    const raw_guard guard(entry->lock);
    if (entry->registration != epoll_set::registration_of(event.data.u64)) continue;
    report(*entry, fd, event.events, batch);
  }
  return batch.wake_all();
}

void abandon(epoll_set& set) noexcept {
  for_each_fd([&](int, fd_entry& entry) {
    waker_batch batch;
    {
      const raw_guard guard(entry.lock);
      if (entry.set != &set) return;
      entry.set = nullptr;
      entry.armed = 0;
      ++entry.registration;
      for (const auto direction : {fd_direction::read, fd_direction::write}) {
        if (entry.owned) mark(entry, direction, 0);
        batch.add(take_waiter(entry, direction, fd_waiter::outcome::moved));
      }
    }
    (void)batch.wake_all();
  });
}

}  // namespace smarm::detail
