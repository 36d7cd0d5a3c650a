// The world of the models: what the production source calls and the checker has to answer itself.
//
//   clock           virtual time: who reads the clock within a run reads model::now()
//   futex           the checker's
//   assertions      a failed one is a failed execution, with its report
//   operator new    the memory of the run: leaks, double frees and uses after free are found
//   block pool      operator new, so that the checker sees each block by itself
//   raw_mutex       its slow path is a wait for the lock, without spins and system calls. The real
//   one
//                   is under raw_mutex_model.cpp; here it would multiply the executions of each
//                   model that has a lock in it by those of a futex.
//   parker          likewise: park waits for the permit; the real one is under parker_model.cpp
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "base/assert.hpp"
#include "base/futex.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/block_pool.hpp"
#include "model/adopt_new.hpp"
#include "model/runner.hpp"
#include "sched/parker.hpp"

namespace smarm::detail {

// ---- assertions ------------------------------------------------------------------------------

void assert_failed(const char* words, const char* condition, const char* file, int line,
                   std::initializer_list<assert_value> values) noexcept {
  if (model::engine* const engine = model::engine::current()) {
    const model::engine::system_scope scope{engine};
    std::string text = std::string(words) + " [" + condition + "] at " + model::short_file(file) +
                       ":" + std::to_string(line);
    for (const assert_value& value : values) {
      text += std::string(" ") + value.name_ + "=" +
              std::to_string(value.kind_ == assert_value::kind::signed_integer
                                 ? value.signed_
                                 : static_cast<std::int64_t>(value.unsigned_));
    }
    engine->fail("assertion", text);
  }
  std::fprintf(stderr, "smarm: broken invariant: %s at %s:%d\n", words, file, line);
  std::abort();
}

void fatal(const char* format, ...) noexcept {
  if (model::engine* const engine = model::engine::current()) {
    const model::engine::system_scope scope{engine};
    engine->fail("assertion", std::string("fatal: ") + format);
  }
  std::fprintf(stderr, "smarm: %s\n", format);
  std::abort();
}

void set_assert_context(void (*)(char* buffer, std::size_t size)) noexcept {}

// ---- futex -----------------------------------------------------------------------------------

futex_result futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::int64_t deadline_ns) noexcept {
  switch (model::futex_wait(word, expected, deadline_ns)) {
    case model::wait_result::woken:
      return futex_result::woken;
    case model::wait_result::value_changed:
      return futex_result::value_changed;
    case model::wait_result::timed_out:
      return futex_result::timed_out;
    case model::wait_result::spurious:
      break;
  }
  return futex_result::interrupted;
}

int futex_wake(atomic<std::uint32_t>& word, int count) noexcept {
  return static_cast<int>(model::futex_wake(word, static_cast<std::size_t>(count)));
}

// ---- locks and parkers as their own models prove them ------------------------------------------

void raw_mutex::lock_slowly() noexcept {
  state_.await_update([](std::uint32_t seen) { return seen == free; },
                      [](std::uint32_t) { return std::uint32_t{locked}; }, acquire);
}
void raw_mutex::wake_one() noexcept {}
void raw_mutex::count_acquisition() noexcept {}
void raw_mutex::count_release() noexcept {}

bool parker::park(std::int64_t deadline_ns) noexcept {
  static_assert(never_ns == model::never);
  const auto taken = state_.await_update_until(
      deadline_ns, [](std::uint32_t seen) { return seen == permit; },
      [](std::uint32_t) { return empty; }, acquire);
  // A permit that came with the deadline is taken all the same.
  return taken.has_value() || state_.exchange(empty, acquire) == permit;
}

void parker::unpark() noexcept { state_.exchange(permit, release); }

// ---- memory ----------------------------------------------------------------------------------

void* pool_allocate_slowly(std::size_t size) {
  const bool is_line = size % 128 == 0;
  return is_line ? ::operator new(size, std::align_val_t(64)) : ::operator new(size);
}

void pool_free_slowly(void* block, std::size_t size) noexcept {
  if (size % 128 == 0) {
    ::operator delete(block, std::align_val_t(64));
  } else {
    ::operator delete(block);
  }
}

}  // namespace smarm::detail

// ---- the C library -----------------------------------------------------------------------------

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (model::engine::is_user()) {
    const std::int64_t time = model::now();
    now->tv_sec = time / 1'000'000'000;
    now->tv_nsec = time % 1'000'000'000;
    return 0;
  }
  static const auto original =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return original(clock, now);
}

// One CPU: which one a thread runs on must not differ between two runs.
int sched_getcpu() noexcept { return 0; }

}  // extern "C"

MODEL_MAIN();
