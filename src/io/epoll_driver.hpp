// epoll_driver is the runtime's watcher of file descriptors: one thread in epoll_wait, made when an
// actor first has to wait for one.
//
// Invariants
//   1. The thread only turns kernel reports into wakes (dispatch). It holds no lock but one entry's
//      at a time, and none while it wakes.
//   2. It has no timeout: while nothing is ready it does not run.
//   3. After it has been joined, no entry of the table names its set any more (abandon).
//
// Why a thread of its own: it is the simple form, and right when every scheduler is busy. All it
// does with a batch is one call of dispatch, so a scheduler that is idle can take its place later.
#pragma once

#include <memory>
#include <thread>

#include "io/epoll_set.hpp"
#include "io/system_call.hpp"
#include "sched/driver.hpp"

namespace smarm::detail {

class epoll_driver final : public driver {
 public:
  // Throws std::system_error where descriptors or threads run out.
  epoll_driver();
  ~epoll_driver() override;

  [[nodiscard]] epoll_set& set() noexcept { return set_; }

 private:
  void watch() noexcept;

  epoll_set set_;
  plain_fd stop_;  // an eventfd in the set; written to once, to end the thread
  std::thread thread_;
};

// epoll_set_of returns the set of the caller's runtime, made on first use. Throws as the
// constructor. Called by actors.
[[nodiscard]] epoll_set& epoll_set_of(runtime_core& runtime);

}  // namespace smarm::detail
