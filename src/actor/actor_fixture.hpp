// What the tests of this layer share: bounded waits on events, and what is in the mailbox.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"

namespace smarm::test {

using namespace std::chrono_literals;

// Long enough to be a hang, short of the watchdog.
inline constexpr auto long_enough = 60s;

// take waits for a message of that type; a failure says that none came.
template <class T>
[[nodiscard]] std::optional<T> take() {
  auto message = receive_for<T>(long_enough);
  if (message) return std::move(*message);
  ADD_FAILURE() << "no such message came: " << typeid(T).name();
  return std::nullopt;
}

// has tells whether such a message is in the mailbox now, and takes it.
template <class T>
[[nodiscard]] bool has() {
  return receive_for<T>(0s).has_value();
}

// await_end waits until that actor has ended.
inline exit_reason await_end(pid who) {
  auto watch = monitor(who);
  auto gone = watch.recv_for(long_enough);
  EXPECT_TRUE(gone.has_value()) << "the actor does not end";
  return gone ? gone->reason : exit_reason();
}

// is_alive tells whether somebody lives under that pid.
[[nodiscard]] inline bool is_alive(pid who) {
  auto watch = monitor(who);
  return !watch.try_recv().has_value();
}

// spawn_detached starts an actor and keeps only its pid.
template <std::invocable F>
pid spawn_detached(F&& f) {
  auto handle = spawn(std::forward<F>(f));
  const pid who = handle.id();
  handle.detach();
  return who;
}
template <std::invocable F>
pid spawn_linked(F&& f) {
  auto handle = spawn_link(std::forward<F>(f));
  const pid who = handle.id();
  handle.detach();
  return who;
}

// Messages that only mean that something is so far.
struct go {};
struct ready {
  pid who;
};

inline void wait_for_ever() { sleep_until(deadline::never()); }

// reason_of runs f as an actor of its own and says how it ended.
template <std::invocable F>
exit_reason reason_of(F&& f) {
  auto [handle, watch] = spawn_monitor(std::forward<F>(f));
  const auto gone = receive_for<down>(long_enough);
  EXPECT_TRUE(gone.has_value()) << "it does not end";
  return gone ? gone->reason : exit_reason();
}

// exit_of takes the exit_signal of that actor.
inline std::optional<exit_reason> exit_of(pid who) {
  return receive(when([who](const exit_signal& s) { return s.from == who; },
                      [](exit_signal s) { return std::optional(std::move(s.reason)); }),
                 after(long_enough, [] { return std::optional<exit_reason>(); }));
}

// down_of takes the down of that monitor.
inline std::optional<exit_reason> down_of(const monitor_ref& watch) {
  return receive(when([id = watch.id()](const down& d) { return d.ref == id; },
                      [](down d) { return std::optional(std::move(d.reason)); }),
                 after(long_enough, [] { return std::optional<exit_reason>(); }));
}

}  // namespace smarm::test
