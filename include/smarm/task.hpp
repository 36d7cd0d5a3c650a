// Tasks: work done by an actor of its own, whose result its owner awaits.
//
//   auto sum = smarm::async([] { return add_up(); });    // linked to the owner
//   ...
//   int total = sum.await(5s);
//
// A task fails with its owner and its owner with it: they are linked. An owner that traps exits
// survives, and its await ends it then with the reason {Reason,{task,await}}; async_nolink makes a
// task whose failure is only told. A task belongs to the actor that made it: nobody else may await.
//
// Source: Elixir 1.14, Task: async/1, await/2, yield/2, shutdown/2.
#pragma once

#include <chrono>
#include <concepts>
#include <expected>
#include <optional>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/errors.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/link.hpp>
#include <smarm/pid.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

namespace smarm {

namespace detail {

void require_owner(pid owner);
[[noreturn]] void exit_from_await(const exit_reason& why);
[[noreturn]] void exit_from_timeout(pid task);
// end_task ends a task that is still running: unlinks, stops by `how`, and takes its exit_signal
// out of the mailbox.
void end_task(pid task, bool brutally);
void forget_task(pid task);

}  // namespace detail

template <class Result>
class task {
 public:
  using outcome = typename join_handle<Result>::outcome;

  // An empty task; every call but the test and id throws misuse.
  task() noexcept = default;

  [[nodiscard]] pid id() const { return handle_.id(); }
  [[nodiscard]] explicit operator bool() const noexcept { return handle_.joinable(); }

  // await waits for the result and empties the task. At the deadline the caller ends with the
  // reason {timeout,{task,await,Pid}} and the task goes on; where the task failed, and the caller
  // lives because it traps exits or the task is not linked, with {Reason,{task,await}}. Parks; a
  // stop point. By its owner, else misuse.
  auto await(deadline until = std::chrono::seconds(5)) {
    detail::require_owner(owner_);
    std::optional<outcome> ended = handle_.join_until(until);
    if (!ended) detail::exit_from_timeout(id());
    if (!*ended) detail::exit_from_await(ended->error());
    if constexpr (!std::is_void_v<Result>) return std::move(**ended);
  }

  // yield waits until the deadline for what became of the task; nothing: it goes on, and yield may
  // be called again. Parks; a stop point. By its owner, else misuse.
  [[nodiscard]] std::optional<outcome> yield(deadline until = std::chrono::seconds(5)) {
    detail::require_owner(owner_);
    return handle_.join_until(until);
  }

  // shutdown ends the task and empties it: it is told to shut down, and killed where it has not by
  // the deadline. What comes back is its result where it had one; nothing: it was ended. When it
  // returns no exit_signal of the task is in the mailbox or will come. Parks, not beyond the
  // deadline but for the kill's unwinding; a stop point. By its owner, else misuse.
  [[nodiscard]] std::optional<outcome> shutdown(deadline until = std::chrono::seconds(5)) {
    detail::require_owner(owner_);
    const pid who = id();
    std::optional<outcome> ended = handle_.join_until(deadline::from_ns(0));
    if (!ended) {
      detail::end_task(who, false);
      ended = handle_.join_until(until);
    }
    if (!ended) {
      detail::end_task(who, true);
      ended = handle_.join();
    }
    detail::forget_task(who);
    if (!*ended && (ended->error().is_shutdown() || ended->error().is_killed())) {
      return std::nullopt;
    }
    return ended;
  }

 private:
  template <class F>
  friend auto start_task(spawn_options options, F&& f);
  task(pid owner, join_handle<Result> handle) noexcept
      : owner_(owner), handle_(std::move(handle)) {}

  pid owner_;
  join_handle<Result> handle_;
};

template <class F>
auto start_task(spawn_options options, F&& f) {
  using result = std::invoke_result_t<std::decay_t<F>&>;
  return task<result>(self(), smarm::spawn(std::move(options), std::forward<F>(f)));
}

// async runs the function as a task linked to the caller, an actor.
template <std::invocable F>
[[nodiscard]] auto async(F&& f) {
  return start_task({.name = "task", .stack_size = 0, .ties = linked}, std::forward<F>(f));
}

// async_nolink runs it as a task that fails alone.
template <std::invocable F>
[[nodiscard]] auto async_nolink(F&& f) {
  return start_task({.name = "task"}, std::forward<F>(f));
}

}  // namespace smarm
