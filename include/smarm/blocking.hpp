// blocking(f) runs a function that blocks its thread (a file, a name lookup, a foreign library) on
// a thread kept for that, while the calling actor is parked and its scheduler runs others.
//
// The threads belong to the runtime: they are started as jobs come, up to
// config::blocking_threads_max, and end when idle for config::blocking_idle. Jobs beyond wait their
// turn, first come, first served. The function runs on a thread that is no actor: calls that park
// block the thread, and all signals but the fatal ones are blocked there.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <smarm/detail/blocking_call.hpp>

namespace smarm {

// blocking runs f and returns its result or rethrows its exception. f may refer to the caller's
// stack: the call never returns before f has ended. A stop that comes while the job is still queued
// withdraws it; one that comes while it runs takes effect when f has ended. Throws
// std::system_error or std::bad_alloc where the first thread of the pool cannot be started. Parks;
// a stop point. On a thread that is no actor it runs f in place.
template <std::invocable F>
std::invoke_result_t<F> blocking(F&& f) {
  detail::blocking_call<F, std::invoke_result_t<F>> call(f);
  detail::run_blocking(call);
  return call.take();
}

}  // namespace smarm
