// real_world keeps models from touching the world outside of their run: reading a clock, sleeping
// and starting a real thread are answered with a message instead of an execution that cannot be
// repeated.
//
// It defines functions of the C library, which pass on every call that does not come from a model
// thread. Include it in exactly one source file of a program of models.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <string>

#include "model/engine_judge.hpp"
#include "model/engine_threads.hpp"

namespace model::detail {

// forbid ends the exploration if a model thread makes the call.
inline void forbid(const char* what, const char* instead) {
  if (!engine::is_user()) return;
  engine& e = *engine::current();
  const engine::system_scope scope{&e};
  e.misuse("thread " + std::to_string(e.thread()) + " " + what + " after " + e.last_place() + ": " +
           instead);
}

// real finds the C library's own function of a name.
template <class Function>
[[nodiscard]] Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace model::detail

// NOLINTBEGIN(misc-definitions-in-headers): one file of a program includes this, see above.
extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  model::detail::forbid("reads the clock", "use model::now()");
  static const auto original = model::detail::real<int(clockid_t, timespec*)>("clock_gettime");
  return original(clock, now);
}

int nanosleep(const timespec* wanted, timespec* left) {
  model::detail::forbid("sleeps", "use model::sleep_until()");
  static const auto original = model::detail::real<int(const timespec*, timespec*)>("nanosleep");
  return original(wanted, left);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* left) {
  model::detail::forbid("sleeps", "use model::sleep_until()");
  static const auto original =
      model::detail::real<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  return original(clock, flags, wanted, left);
}

#if !defined(MODEL_ASAN)
int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*body)(void*),
                   void* argument) noexcept {
  model::detail::forbid("starts a real thread", "use model::thread");
  static const auto original =
      model::detail::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return original(made, how, body, argument);
}
#endif

}  // extern "C"
// NOLINTEND(misc-definitions-in-headers)
