// epoll_driver is the runtime's watcher of file descriptors, made when an actor first has to wait
// for one: a thread in epoll_wait, for the time when nobody else looks.
//
// Schedulers look themselves when they have run out of work. As long as they do, what has become
// ready meanwhile is one batch for one system call, and no thread is woken for it; that is most of
// what a busy server does. So the thread stands back after each batch that it has delivered:
// whoever was woken by it will look before it sleeps. It watches again when a scheduler has looked
// in vain and is about to sleep, or else after stand_back_max (every scheduler computes, or the
// woken are another runtime's).
//
// Invariants
//   1. Reports are only turned into wakes (dispatch). Nobody holds a lock but one entry's at a
//   time,
//      and none while it wakes.
//   2. While nothing is ready the thread does not run: it watches without a timeout.
//   3. After it has been joined, no entry of the table names its set any more (abandon).
//   4. A report that comes while the thread stands back waits for a look or for at most
//      stand_back_max; it is not lost, since the kernel keeps it until somebody takes it.
// Threads: look by schedulers, several at a time; each report goes to one of those that ask.
//
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "base/atomic.hpp"
#include "io/epoll_set.hpp"
#include "io/system_call.hpp"
#include "sched/driver.hpp"

namespace smarm::detail {

class epoll_driver final : public driver {
 public:
  // Throws std::system_error where descriptors or threads run out.
  epoll_driver();
  ~epoll_driver() override;

  [[nodiscard]] bool look() noexcept override;

  [[nodiscard]] epoll_set& set() noexcept { return set_; }

 private:
  static constexpr std::int64_t stand_back_max_ns = 1'000'000;

  void watch() noexcept;
  void stand_back() noexcept;
  void call_back() noexcept;

  epoll_set set_;
  plain_fd stop_;  // an eventfd in the set; written to once, to end the thread
  std::thread thread_;

  // 1: the thread watches or is told to; 0: it stands back. Written by the thread (0 and 1) and by
  // call_back (1). It publishes nothing: what is ready lies in the kernel.
  atomic<std::uint32_t> watching_{1};
};

// epoll_set_of returns the set of the caller's runtime, made on first use. Throws as the
// constructor. Called by actors.
[[nodiscard]] epoll_set& epoll_set_of(runtime_core& runtime);

}  // namespace smarm::detail
