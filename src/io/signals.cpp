// Signals as values: a handler that writes the number into the pipe of each subscription.
//
// Invariants
//   1. The handler calls nothing but write(2) and reads nothing but the table of subscriptions,
//      whose entries are atomics.
//   2. An entry's descriptor is closed only when its mask is empty and no handler runs that may
//      have read the mask before (handlers_running).
//   3. A number's handler is installed while somebody subscribes to it, and then what was there
//      before comes back.
// Threads: any; one lock for subscribing, none in the handler.
//
// Why a handler and no signalfd: signalfd sees only signals that are blocked in every thread, and
// the threads of the program around us are not ours to change. Why the catcher, a thread that
// sleeps with the subscribed signals open: so that they arrive even where every other thread,
// schedulers included, has them blocked.
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <smarm/errors.hpp>
#include <smarm/signals.hpp>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "io/fd_wait.hpp"
#include "io/io_thread.hpp"
#include "io/system_call.hpp"

namespace smarm {
namespace {

using detail::acquire;
using detail::atomic;
using detail::raw_guard;
using detail::relaxed;
using detail::release;
using detail::seq_cst;

constexpr int subscriptions_max = 64;
constexpr int signal_max = 64;

constexpr std::uint64_t bit_of(int number) noexcept { return std::uint64_t{1} << (number - 1); }

struct subscription {
  // Signals to be written to the pipe. Written under the lock, read by the handler; publishes pipe.
  atomic<std::uint64_t> mask{0};
  atomic<int> pipe{-1};  // the writing end
  bool taken = false;    // guarded by the lock
};

// catcher is the thread that has the subscribed signals open. It sleeps in poll(2), which runs a
// handler at once; ThreadSanitizer, which holds handlers back, knows that of poll and not of a
// futex.
struct catcher {
  catcher() : changed(detail::make_event()) {
    if (changed.get() < 0) {
      throw std::system_error(detail::error_of(changed.get()), "smarm::signals");
    }
  }

  detail::plain_fd changed;  // an event descriptor, readable when the masks have changed
  atomic<bool> stopping{false};
  std::thread thread;
};

struct signal_table {
  std::array<subscription, subscriptions_max> subscriptions;
  atomic<std::uint32_t> handlers_running{0};
  atomic<std::uint64_t> wanted{0};  // all masks together, for the catcher; written under the lock

  detail::raw_mutex lock;  // protects the following and every change of the above
  std::array<unsigned, signal_max + 1> users{};
  std::array<struct sigaction, signal_max + 1> previous{};
  std::unique_ptr<catcher> catching;
};

signal_table table;

extern "C" void smarm_signal_handler(int number) {
  // seq_cst, with unsubscribe: either this count is seen there, or the empty mask is seen here.
  table.handlers_running.fetch_add(1, seq_cst);
  const std::byte value{static_cast<unsigned char>(number)};
  for (subscription& entry : table.subscriptions) {
    // seq_cst: as above; also acquires the pipe.
    if ((entry.mask.load(seq_cst) & bit_of(number)) == 0) continue;
    // relaxed: published by the mask. A full pipe drops the signal, as the header says.
    (void)detail::write_bytes(entry.pipe.load(relaxed), std::span(&value, 1));
  }
  // release pairs with unsubscribe: the writes are over.
  table.handlers_running.fetch_sub(1, release);
}

void run_catcher(catcher& self) noexcept {
  for (;;) {
    std::uint64_t count = 0;
    (void)detail::read_bytes(self.changed.get(), std::as_writable_bytes(std::span(&count, 1)));
    if (self.stopping.load(acquire)) return;  // pairs with stop_catcher
    sigset_t open;
    sigemptyset(&open);
    const std::uint64_t wanted = table.wanted.load(acquire);  // pairs with update_wanted
    for (int number = 1; number <= signal_max; ++number) {
      if ((wanted & bit_of(number)) != 0) sigaddset(&open, number);
    }
    (void)detail::block_signals(&open);
    (void)detail::poll_fd(self.changed.get(), POLLIN, deadline::never());
  }
}

// notify_catcher makes the catcher look again.
void notify_catcher(catcher& self) noexcept {
  const std::uint64_t one = 1;
  (void)detail::write_bytes(self.changed.get(), std::as_bytes(std::span(&one, 1)));
}

// update_wanted tells the catcher which signals are subscribed to. Under the lock.
void update_wanted() noexcept {
  std::uint64_t wanted = 0;
  for (const subscription& entry : table.subscriptions) {
    wanted |= entry.mask.load(relaxed);  // relaxed: written under the lock only
  }
  table.wanted.store(wanted, release);  // pairs with run_catcher
  if (table.catching != nullptr) notify_catcher(*table.catching);
}

// start_catcher starts the thread if it does not run. Under the lock. Throws std::system_error.
void start_catcher() {
  if (table.catching != nullptr) return;
  auto made = std::make_unique<catcher>();
  made->thread =
      detail::start_io_thread("smarm-signals", [self = made.get()] { run_catcher(*self); });
  table.catching = std::move(made);
}

void stop_catcher(std::unique_ptr<catcher> ended) {
  if (ended == nullptr) return;
  ended->stopping.store(true, release);  // pairs with run_catcher
  notify_catcher(*ended);
  ended->thread.join();
}

void require_catchable(int number) {
  constexpr int refused[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  const bool in_range = number >= 1 && number <= signal_max;
  if (in_range && std::ranges::find(refused, number) == std::end(refused)) return;
  throw std::invalid_argument("smarm::signals: signal " + std::to_string(number) +
                              " cannot be received");
}

// install puts the handler in place for a number that nobody subscribed to. Under the lock.
int install(int number) noexcept {
  struct sigaction ours{};
  ours.sa_handler = smarm_signal_handler;
  // On the alternative stack where the thread has one: an actor's own may be small.
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  return ::sigaction(number, &ours, &table.previous[static_cast<std::size_t>(number)]) == 0
             ? 0
             : -errno;
}

// leave ends the entry's subscription to the signals in `mask`. Under the lock.
void leave(std::uint64_t mask) noexcept {
  for (int number = 1; number <= signal_max; ++number) {
    if ((mask & bit_of(number)) == 0) continue;
    const auto index = static_cast<std::size_t>(number);
    if (--table.users[index] == 0) (void)::sigaction(number, &table.previous[index], nullptr);
  }
}

// join_signals subscribes the free entry to the signals. Under the lock. 0 or a negative error.
int join_signals(std::uint64_t mask) noexcept {
  std::uint64_t joined = 0;
  for (int number = 1; number <= signal_max; ++number) {
    if ((mask & bit_of(number)) == 0) continue;
    unsigned& users = table.users[static_cast<std::size_t>(number)];
    if (users == 0) {
      if (const int installed = install(number); installed < 0) {
        leave(joined);
        return installed;
      }
    }
    ++users;
    joined |= bit_of(number);
  }
  return 0;
}

// wait_for_handlers returns when no handler runs that may have read a mask that is empty by now. A
// handler takes a few microseconds and needs no lock.
void wait_for_handlers() noexcept {
  // seq_cst: see the handler.
  while (table.handlers_running.load(seq_cst) != 0) std::this_thread::yield();
}

}  // namespace

signals::signals(std::initializer_list<int> numbers) {
  std::uint64_t mask = 0;
  for (const int number : numbers) {
    require_catchable(number);
    mask |= bit_of(number);
  }
  int ends[2];
  if (const int made = detail::make_pipe(ends); made < 0) {
    throw std::system_error(detail::error_of(made), "smarm::signals");
  }
  pipe_ = unique_fd(ends[0]);
  unique_fd writing(ends[1]);
  const raw_guard guard(table.lock);
  const auto entry = std::ranges::find(table.subscriptions, false, &subscription::taken);
  if (entry == table.subscriptions.end()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                            "smarm::signals: too many subscriptions");
  }
  start_catcher();
  entry->pipe.store(writing.get(), relaxed);  // relaxed: published by the mask
  // release pairs with the handler. Before the handler is there, so that it misses no signal.
  entry->mask.store(mask, release);
  if (const int joined = join_signals(mask); joined < 0) {
    entry->mask.store(0, seq_cst);  // with the handler's count; see there
    wait_for_handlers();
    throw std::system_error(detail::error_of(joined), "smarm::signals");
  }
  entry->taken = true;
  (void)writing.release();
  entry_ = static_cast<int>(entry - table.subscriptions.begin());
  update_wanted();
}

void signals::unsubscribe() noexcept {
  if (entry_ < 0) return;
  subscription& entry = table.subscriptions[static_cast<std::size_t>(std::exchange(entry_, -1))];
  {
    const raw_guard guard(table.lock);
    const std::uint64_t mask = entry.mask.load(relaxed);  // relaxed: written under the lock only
    leave(mask);
    entry.mask.store(0, seq_cst);  // with the handler's count; see there
    update_wanted();
  }
  wait_for_handlers();
  unique_fd writing(entry.pipe.load(relaxed));  // relaxed: ours alone by now
  std::unique_ptr<catcher> ended;
  {
    const raw_guard guard(table.lock);
    entry.taken = false;
    // relaxed: written under the lock only.
    if (table.wanted.load(relaxed) == 0) ended = std::move(table.catching);
  }
  stop_catcher(std::move(ended));
  pipe_.reset();
}

int signals::recv() {
  const auto number = recv_until(deadline::never());
  // Without a deadline a wait ends with a signal.
  return number.value();
}

std::optional<int> signals::recv_until(deadline until) {
  if (entry_ < 0) throw misuse("smarm::signals::recv on an object that was moved from");
  detail::stop_point();
  for (;;) {
    if (const auto number = try_recv()) return number;
    const auto waited = detail::wait_fd(pipe_.get(), detail::fd_direction::read, until,
                                        detail::wait_reason::signal);
    if (waited) continue;
    if (waited.error() == std::errc::timed_out) return try_recv();
    throw std::system_error(waited.error(), "smarm::signals::recv");
  }
}

std::optional<int> signals::try_recv() noexcept {
  std::byte value{};
  if (detail::read_bytes(pipe_.get(), std::span(&value, 1)) != 1) return std::nullopt;
  return std::to_integer<int>(value);
}

}  // namespace smarm
