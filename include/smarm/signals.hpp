// signals receives the process's signals as values: SIGTERM, SIGINT, SIGHUP and the like.
//
// As long as a subscription lives, its signals no longer have the effect they had; when the last
// subscription to a signal goes, the effect it had before comes back. Every subscription gets every
// signal, in the order in which the kernel delivered them. It does not matter which threads have
// the signal blocked: smarm keeps one thread that has not.
//
// Schedulers' own threads block what is meant for the process, so that no handler runs on an
// actor's stack. raise() aims at the calling thread and may wait there for ever; use kill(getpid(),
// ...).
//
// LIMIT: a subscription that is not read holds 65,536 signals; later ones are dropped. A process
// may have 64 subscriptions at a time.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/fd.hpp>

namespace smarm {

class signals {
 public:
  // Throws std::invalid_argument for a number that is no signal, that cannot be caught (SIGKILL,
  // SIGSTOP) or that a fault raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL), and std::system_error where
  // there are too many subscriptions or no descriptors left. Any thread; never parks.
  explicit signals(std::initializer_list<int> numbers);
  // A moved-from object has no subscription; receiving from it throws misuse.
  signals(signals&& other) noexcept
      : pipe_(std::move(other.pipe_)), entry_(std::exchange(other.entry_, -1)) {}
  signals& operator=(signals&& other) noexcept {
    if (this != &other) {
      unsubscribe();
      pipe_ = std::move(other.pipe_);
      entry_ = std::exchange(other.entry_, -1);
    }
    return *this;
  }
  ~signals() { unsubscribe(); }

  // recv waits for the next signal and returns its number. One actor at a time. Parks; a stop
  // point. On a thread that is no actor it blocks that thread.
  [[nodiscard]] int recv();

  // recv_until and recv_for give up at the deadline: then nothing comes back.
  [[nodiscard]] std::optional<int> recv_until(deadline until);
  template <class Rep, class Period>
  [[nodiscard]] std::optional<int> recv_for(std::chrono::duration<Rep, Period> duration) {
    return recv_until(deadline(duration));
  }

  // try_recv returns the next signal if one has come. Any thread; never parks.
  [[nodiscard]] std::optional<int> try_recv() noexcept;

 private:
  void unsubscribe() noexcept;

  unique_fd pipe_;  // the reading end; the handler writes a byte a signal into the other one
  int entry_ = -1;  // which entry of the handler's table is ours
};

}  // namespace smarm
