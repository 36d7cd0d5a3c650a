// scope holds child actors that never outlive it: concurrency with a closing brace.
//
//   smarm::scope children;
//   children.spawn([&] { fetch(left); });     // may refer to what stands before the scope
//   children.spawn([&] { fetch(right); });
//   children.join();                           // both are done, or the first failure is thrown
//
// The first child that fails (ends otherwise than normal) stops all others. However the scope is
// left, its destructor first stops the children that still run and waits until they are gone, also
// while the owner is being stopped itself.
//
// Source: N. J. Smith, "Notes on structured concurrency", 2018.
#pragma once

#include <concepts>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/spawn.hpp>

namespace smarm {

namespace detail {

class scope_core;

// A child's membership, and its ties to who spawns it, made before the child is.
[[nodiscard]] std::unique_ptr<birth> scope_birth(scope_core& core, bonds ties);
// What a child does first: it ends here where the scope is stopping.
void scope_child_begins(scope_core& core);

}  // namespace detail

class scope {
 public:
  // Throws misuse on a thread that is no actor, and std::bad_alloc.
  scope();
  // Stops the children that run and waits for them. Parks, and is no stop point.
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  // spawn starts a child, by the owner or by a child. After a failure a new child is stopped before
  // it begins. The options' ties are to the caller, as elsewhere: a linked child that fails ends it
  // too, unless it traps exits. A stop point. Throws std::system_error as smarm::spawn.
  template <std::invocable F>
  void spawn(spawn_options options, F&& f) {
    const std::unique_ptr<detail::birth> member = detail::scope_birth(*core_, options.ties);
    auto child = [core = core_, f = std::decay_t<F>(std::forward<F>(f))]() mutable {
      detail::scope_child_begins(*core);
      static_cast<void>(std::invoke(f));
    };
    auto started = detail::spawn_on(nullptr, std::move(options), std::move(child), member.get());
    if (!started) throw std::system_error(started.error(), "smarm::scope::spawn");
    started->detach();
  }
  template <std::invocable F>
  void spawn(F&& f) {
    spawn(spawn_options{}, std::forward<F>(f));
  }

  // stop asks every child to stop; that is no failure. Never parks.
  void stop() noexcept;

  // wait waits until no child is left, and gives the first failure's reason, if there was one; at
  // the deadline, `still_running` as an empty optional. Parks; a stop point. By the owner.
  [[nodiscard]] std::optional<std::expected<void, exit_reason>> wait_until(deadline until);
  [[nodiscard]] std::expected<void, exit_reason> wait() { return *wait_until(deadline::never()); }

  // join waits as wait does and throws the first failure: the child's exception, or exit_request
  // with the reason it ended with.
  void join();

 private:
  detail::scope_core* core_;
};

}  // namespace smarm
