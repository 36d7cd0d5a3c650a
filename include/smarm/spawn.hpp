// spawn starts an actor; join_handle is its owner's hold on it: wait for its result, or stop it.
//
// The function runs on a stack of its own, on whichever scheduler is free. What it returns, or the
// reason why it ended otherwise, waits in the handle. Dropping the handle detaches: the actor goes
// on alone. A failure that nobody can learn of is reported (config::on_unobserved_failure).
#pragma once

#include <concepts>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/actor_body.hpp>
#include <smarm/errors.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm {

// bonds tie a new actor to its spawner from its first moment, so that not even an immediate end is
// missed: `linked`, `monitored` and `linked | monitored` of link.hpp.
struct bonds {
  std::unique_ptr<detail::birth> (*make)(bonds which) = nullptr;
  bool linked = false;
  bool monitored = false;

  friend constexpr bonds operator|(const bonds& left, const bonds& right) noexcept {
    return {left.make != nullptr ? left.make : right.make, left.linked || right.linked,
            left.monitored || right.monitored};
  }
};

struct spawn_options {
  std::string name = {};       // shown in dumps, crash lines and exit reports
  std::size_t stack_size = 0;  // bytes; 0 takes the runtime's config::stack_size
  bonds ties = {};             // to the spawner, which must be an actor then
};

template <class Result>
class join_handle {
 public:
  // What join gives: the result, or why there is none. A reference comes as a reference_wrapper,
  // since std::expected holds none.
  using value_type =
      std::conditional_t<std::is_lvalue_reference_v<Result>,
                         std::reference_wrapper<std::remove_reference_t<Result>>, Result>;
  using outcome = std::expected<value_type, exit_reason>;

  // An empty handle; every call but joinable and assignment throws misuse on it.
  join_handle() noexcept = default;

  // pid of the actor, also after it has ended. Never parks.
  [[nodiscard]] pid id() const { return detail::body_pid(body_.require()); }
  [[nodiscard]] bool joinable() const noexcept { return static_cast<bool>(body_); }

  // join waits until the actor has ended, moves its result out and empties the handle. Parks; a
  // stop point. On a thread that is no actor it blocks that thread. An actor that joins itself
  // gets misuse.
  outcome join() {
    detail::body_wait(body_.require(), deadline::never());
    return take();
  }

  // join_until gives up at the deadline: then nothing comes back and the handle stays as it was.
  std::optional<outcome> join_until(deadline when) {
    if (!detail::body_wait(body_.require(), when)) return std::nullopt;
    return take();
  }
  template <class Rep, class Period>
  std::optional<outcome> join_for(std::chrono::duration<Rep, Period> duration) {
    return join_until(deadline(duration));
  }

  // has_ended tells whether join would return at once. Any thread; never parks.
  [[nodiscard]] bool has_ended() const { return detail::body_has_ended(body_.require()); }

  // request_stop as the free function; an actor that has ended is left in peace. Never parks.
  void request_stop() const { (void)detail::body_request_stop(body_.require()); }

  // detach lets the actor go on alone and empties the handle.
  void detach() { body_ = {}; }

 private:
  template <class F, class R>
  friend std::expected<join_handle<R>, std::error_code> detail::spawn_on(detail::runtime_core*,
                                                                         spawn_options&&, F&&,
                                                                         detail::birth*);
  friend class runtime;
  explicit join_handle(detail::body_ref body) noexcept : body_(std::move(body)) {}

  outcome take() {
    detail::body_ref body = std::move(body_);
    // Copied: who else hears of the end may still be reading it.
    if (const exit_reason& why = detail::body_exit_reason(*body); !why.is_normal()) {
      return std::unexpected(why);
    }
    return static_cast<detail::result_body<Result>&>(*body).take();
  }

  detail::body_ref body_;
};

namespace detail {

// spawn_on makes the actor in the given runtime, or in the caller's own where that is null.
// `attendant` takes the place of what the options' ties would make.
template <class F, class R = std::invoke_result_t<std::decay_t<F>&>>
std::expected<join_handle<R>, std::error_code> spawn_on(runtime_core* where,
                                                        spawn_options&& options, F&& f,
                                                        birth* attendant) {
  using body_type = closure_body<std::decay_t<F>, R>;
  body_ref body = make_body<body_type>(std::forward<F>(f));
  if (!body) return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
  std::unique_ptr<birth> made;
  if (attendant == nullptr && options.ties.make != nullptr) {
    made = options.ties.make(options.ties);
    attendant = made.get();
  }
  const start_options start{options.name, options.stack_size, attendant};
  if (const std::errc error = body_start(*body, where, start); error != std::errc()) {
    return std::unexpected(std::make_error_code(error));
  }
  return join_handle<R>(std::move(body));
}

}  // namespace detail

// try_spawn starts an actor of the caller's runtime, or says why it could not: more actors than
// config::max_actors (resource_unavailable_try_again), no memory (not_enough_memory), a stack size
// out of range (invalid_argument). Never parks; a stop point. Throws misuse on a thread that is no
// actor (use runtime::spawn there), and whatever copying the function throws; nothing leaks.
// The stack itself is taken when the actor first runs; where none can be had then, the actor ends
// at once with a std::system_error as its exit reason.
template <std::invocable F>
[[nodiscard]] auto try_spawn(spawn_options options, F&& f) {
  return detail::spawn_on(nullptr, std::move(options), std::forward<F>(f));
}

// spawn is try_spawn that throws std::system_error where try_spawn returns an error.
template <std::invocable F>
auto spawn(spawn_options options, F&& f) {
  auto started = detail::spawn_on(nullptr, std::move(options), std::forward<F>(f));
  if (!started) throw std::system_error(started.error(), "smarm::spawn");
  return std::move(*started);
}
template <std::invocable F>
auto spawn(F&& f) {
  return smarm::spawn(spawn_options{}, std::forward<F>(f));
}

}  // namespace smarm
