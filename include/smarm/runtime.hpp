// runtime owns the schedulers; run starts them with a root actor and returns when all is done.
//
// Any number of runtimes may live in a process, one after the other or at the same time on
// different threads. A runtime may be run again after a run has returned.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <smarm/config.hpp>
#include <smarm/errors.hpp>
#include <smarm/spawn.hpp>

namespace smarm {

// runtime_counts is a snapshot; each number is exact, their relation is not.
struct runtime_counts {
  std::size_t actors = 0;         // spawned and not yet ended
  std::size_t stacks_in_use = 0;  // held by actors that have run
  std::size_t stacks_cached = 0;  // kept for the next actors
  // Armed deadlines: timers, and one an actor whose latest wait had a deadline that is to come.
  std::size_t timers = 0;
  std::size_t fd_waiters = 0;         // actors that wait for a file descriptor
  std::size_t io_outstanding = 0;     // operations handed to a driver and not yet finished
  std::uint64_t scheduler_wakes = 0;  // times a parked scheduler was woken
  std::uint64_t migrations = 0;       // times an actor resumed on another scheduler
};

class runtime {
 public:
  // Throws config_error, which names the field and its range, or std::system_error.
  explicit runtime(const config& how = {});
  // Terminates the program where run() is still going on: that is a use after destruction.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // run starts the schedulers, the calling thread being one, spawns root as the first actor, and
  // returns when no actor lives and nothing is outstanding: what root returned, or the exception
  // that ended it. A root that was stopped, or ended in good order without a result (shutdown),
  // makes a void run return and any other throw misuse; one that a signal or its own exit ended
  // with another reason throws exit_request with that. Throws misuse inside an actor and where this
  // runtime already runs; std::system_error where threads or memory cannot be had.
  template <std::invocable F>
  decltype(auto) run(F&& root) {
    return run({.name = "root", .stack_size = 0}, std::forward<F>(root));
  }
  template <std::invocable F>
  decltype(auto) run(spawn_options options, F&& root) {
    using result = std::invoke_result_t<std::decay_t<F>&>;
    run_claim claim(*this);
    auto handle = checked(detail::spawn_on(core(), std::move(options), std::forward<F>(root)));
    claim.run_schedulers();
    auto outcome = handle.take();
    if constexpr (std::is_void_v<result>) {
      if (!outcome && !outcome.error().is_stopped() && !outcome.error().is_orderly()) {
        rethrow(outcome.error());
      }
    } else {
      if (!outcome) rethrow(outcome.error());
      return static_cast<result>(std::move(*outcome));
    }
  }

  // spawn starts an actor of this runtime from any thread, actor or not. Before run() the actor
  // waits for it; while run() ends it either still runs or the call fails. try_spawn gives the
  // error as smarm::try_spawn does; operation_canceled says that the runtime has ended.
  template <std::invocable F>
  [[nodiscard]] auto try_spawn(spawn_options options, F&& f) {
    return detail::spawn_on(core(), std::move(options), std::forward<F>(f));
  }
  template <std::invocable F>
  auto spawn(spawn_options options, F&& f) {
    return checked(try_spawn(std::move(options), std::forward<F>(f)));
  }
  template <std::invocable F>
  auto spawn(F&& f) {
    return spawn(spawn_options{}, std::forward<F>(f));
  }

  // request_stop reaches the actors of this runtime only. Any thread; never parks.
  std::expected<void, no_such_actor> request_stop(pid who) noexcept;

  // stop_all asks every actor of this runtime to stop. Any thread; never parks.
  void stop_all() noexcept;

  [[nodiscard]] unsigned schedulers() const noexcept;
  // counts: any thread; never parks.
  [[nodiscard]] runtime_counts counts() const noexcept;

 private:
  template <class Handle>
  static Handle checked(std::expected<Handle, std::error_code> started) {
    if (!started) throw std::system_error(started.error(), "smarm::runtime::spawn");
    return std::move(*started);
  }
  [[noreturn]] static void rethrow(const exit_reason& why);

  // run_claim marks this runtime as running, so that a second run() is refused before its root is
  // spawned; the mark goes with it, however run() is left.
  class run_claim {
   public:
    explicit run_claim(runtime& claimed);
    ~run_claim();
    run_claim(const run_claim&) = delete;
    run_claim& operator=(const run_claim&) = delete;
    void run_schedulers();

   private:
    runtime& claimed_;
  };

  detail::runtime_core* core() noexcept { return core_; }

  detail::runtime_core* core_;
};

// run makes a runtime for the duration of one run; see runtime::run.
template <std::invocable F>
decltype(auto) run(const config& how, F&& root) {
  return runtime(how).run(std::forward<F>(root));
}
template <std::invocable F>
decltype(auto) run(F&& root) {
  return run(config{}, std::forward<F>(root));
}

}  // namespace smarm
