// What the running actor may ask and do about itself, and how anybody stops an actor.
//
// Stopping. request_stop(pid) is sticky: the actor sees it at its next stop point and unwinds its
// stack, running every destructor, by an exception that no handler can end for good: swallowed by a
// catch (...), it comes back at the next stop point. Every call of the library that may park is a
// stop point, on entry and on return, as are yield and check; an actor that is stopped before it
// first runs never begins. An unwind never starts while the
// actor already unwinds (std::uncaught_exceptions() > 0) nor inside a stop_shield.
#pragma once

#include <expected>
#include <string_view>

#include <smarm/deadline.hpp>
#include <smarm/errors.hpp>
#include <smarm/pid.hpp>

namespace smarm {

// is_actor tells whether the caller runs as an actor. Any thread; never parks.
[[nodiscard]] bool is_actor() noexcept;

// self is the running actor's pid. Throws misuse on a thread that is no actor. Never parks.
[[nodiscard]] pid self();

// self_name is the name given at spawn, empty without one; valid until the actor ends.
// Throws misuse on a thread that is no actor. Never parks.
[[nodiscard]] std::string_view self_name();

// yield lets every other runnable actor go first. A stop point. On a thread that is no actor it is
// std::this_thread::yield().
void yield();

// check is a stop point that neither parks nor gives way: a long computation calls it so that it
// can be stopped. Does nothing on a thread that is no actor.
void check();

// sleep_until parks until the deadline, to the nanosecond as far as the kernel wakes that
// promptly; a deadline that has passed yields once. A stop point. deadline::never() sleeps until
// the actor is stopped. On a thread that is no actor it blocks that thread.
void sleep_until(deadline when);

// sleep_for parks for the duration; otherwise as sleep_until.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) {
  sleep_until(deadline(duration));
}

// request_stop asks an actor to stop and returns at once; it never parks. Any thread may call it.
// Called by an actor it reaches actors of the same runtime only; by any other thread, those of
// every runtime. An actor may stop itself: it unwinds at its next stop point.
std::expected<void, no_such_actor> request_stop(pid who) noexcept;

// stop_requested tells whether somebody asked the running actor to stop; a shield does not hide
// it. False on a thread that is no actor.
[[nodiscard]] bool stop_requested() noexcept;

// stop_shield holds off a stop as long as it lives: inside it, waits are neither refused nor cut
// short by request_stop. The stop is acted upon at the first stop point after the outermost shield
// has gone; the shield's own destructor is none. Shields nest. No effect on a foreign thread.
class stop_shield {
 public:
  stop_shield() noexcept;
  ~stop_shield();
  stop_shield(const stop_shield&) = delete;
  stop_shield& operator=(const stop_shield&) = delete;
};

}  // namespace smarm
