// driver is what finishes operations from outside the schedulers: epoll, the blocking pool.
//
// The contract of a producer has two calls, both in waker::wake: make the actor runnable; wake one
// scheduler if one sleeps. A driver is made on first use, belongs to one runtime, and is shut down
// at the end of the run, after the last actor. It reaches actors by wakers only, so it holds
// nothing of the runtime that could be gone.
//
// Order: a driver's own lock is never held at wake. The runtime holds no lock a driver's thread
// may want while it joins that thread.
#pragma once

#include <cstdint>
#include <memory>

namespace smarm {
struct config;
}

namespace smarm::detail {

class runtime_core;

class driver {
 public:
  driver() = default;
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  // The destructor stops and joins the driver's threads. It runs on the thread that called run(),
  // when no actor lives and nothing is outstanding.
  virtual ~driver() = default;

  // look finishes, without waiting, what is ready by now; true: it made an actor runnable. Called
  // by each scheduler that has run out of work, before it sleeps, also several at a time.
  [[nodiscard]] virtual bool look() noexcept { return false; }
};

enum class driver_kind : std::uint8_t { fd, blocking, signals };
inline constexpr int driver_kinds = 3;

// current_runtime is the runtime whose scheduler the caller runs on; null on a foreign thread.
[[nodiscard]] runtime_core* current_runtime() noexcept;

// runtime_config: the configuration the runtime was made with, defaults filled in.
[[nodiscard]] const config& runtime_config(const runtime_core& of) noexcept;

// runtime_driver returns the runtime's driver of that kind, made by `make` on the first call (two
// callers at once make one). What make throws goes to the caller and the next call tries again.
// Called by actors of that runtime; never parks.
driver& runtime_driver(runtime_core& of, driver_kind kind,
                       std::unique_ptr<driver> (*make)(runtime_core&));

// operation_started / operation_finished count what a driver has in hand and must finish before
// the runtime may end (a job that runs on a thread of the pool). finished comes after the wake.
void operation_started(runtime_core& of) noexcept;
void operation_finished(runtime_core& of) noexcept;

// fd_wait_started / fd_wait_finished count the actors that wait for a file descriptor.
void fd_wait_started(runtime_core& of) noexcept;
void fd_wait_finished(runtime_core& of) noexcept;

}  // namespace smarm::detail
