// fiber_self_test runs the lowest layers where no GoogleTest is to be had: under emulation of
// another processor. It checks what the hand-written switch must keep, and exits with 0 if it does.
//
// Each check says what it found; the program goes on after a failure, to show them all.
#include <unwind.h>

#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/futex.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/fiber.hpp"
#include "fiber/fiber_fixture.hpp"

namespace smarm::detail {
namespace {

using test::adopted_thread;
using test::test_fiber;

int failures = 0;

void check(bool holds, const char* what) {
  std::printf("%s: %s\n", holds ? "ok" : "FAILED", what);
  failures += holds ? 0 : 1;
}

[[maybe_unused]] void check_message_and_alignment(stack_pool& pool) {
  static void* main_sp;
  static void* other_sp;
  const stack_span stack = pool.acquire(stack_size_default).value();
  int cookie = 0;
  const auto entry = [](void* from, std::uintptr_t what) {
    alignas(16) volatile char local[16];
    local[0] = 1;
    const auto odd = reinterpret_cast<std::uintptr_t>(&local) % 16 +
                     reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16;
    const switch_message got = smarm_switch(&other_sp, main_sp, from, what + odd + 1);
    smarm_leave(main_sp, got.from, got.what * 3);
  };
  switch_message got = smarm_start(&main_sp, stack.top(), entry, &cookie, 41);
  check(got.from == &cookie && got.what == 42, "the message arrives and the entry is aligned");
  int other_cookie = 0;
  got = smarm_switch(&main_sp, other_sp, &other_cookie, 7);
  check(got.from == &other_cookie && got.what == 21, "a context that leaves passes its message on");
  pool.release(stack);
}

// Values in the callee-saved registers, of both kinds, live across a switch that scrambles them.
void check_registers(stack_pool& pool, adopted_thread& here) {
  test_fiber scrambler(pool, [](test_fiber& me) {
    for (int round = 0; round < 100; ++round) {
#if defined(__aarch64__)
      asm volatile(
          "movi v8.2d, #0\n movi v9.2d, #0\n movi v15.2d, #0\n mov x19, #-1\n mov x28, #-1" ::
              : "v8", "v9", "v15", "x19", "x28");
#endif
      me.park();
    }
  });
  volatile int seed = 3;
  long values[10];
  double fractions[10];
  for (int index = 0; index < 10; ++index) {
    values[index] = long{seed} * index;
    fractions[index] = seed * 0.5 * index;
  }
  long a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4;
  double u = seed, v = seed + 0.5, w = seed + 1.5, x = seed + 2.5;
  bool all = true;
  while (scrambler.resume(here)) {
    a += b;
    b += c;
    c += d;
    d += e;
    u += v;
    v += w;
    w += x;
  }
  long sums = 0;
  for (int index = 0; index < 10; ++index) {
    sums += values[index];
    all = all && fractions[index] == 1.5 * index;
  }
  check(all && sums == 135 && d == 6 + 100 * 7 && w == 4.5 + 100 * 5.5,
        "callee-saved registers survive");
  static_cast<void>(a + b + static_cast<long>(u + v));
}

void check_exceptions(stack_pool& pool, adopted_thread& here) {
  struct parks_when_destroyed {
    test_fiber& me;
    bool& right;
    ~parks_when_destroyed() {
      right = right && std::uncaught_exceptions() == 1;
      me.park();
      right = right && std::uncaught_exceptions() == 1;
    }
  };
  bool right = true;
  bool caught = false;
  test_fiber subject(pool, [&](test_fiber& me) {
    try {
      const parks_when_destroyed guard{me, right};
      throw std::runtime_error("far");
    } catch (const std::runtime_error& error) {
      me.park();
      caught = std::strcmp(error.what(), "far") == 0;
    }
    right = right && std::current_exception() == nullptr;
  });
  subject.resume(here);
  right = right && std::uncaught_exceptions() == 0;
  std::thread([&] {
    adopted_thread there;
    subject.resume(there);
    right = right && std::current_exception() == nullptr;
  }).join();
  try {
    throw 1;
  } catch (int) {
    right = right && !subject.resume(here);
  }
  check(right && caught, "exception state goes with the fiber, to another thread too");
}

void check_control_and_errno(stack_pool& pool, adopted_thread& here) {
  bool right = true;
  test_fiber subject(pool, [&](test_fiber& me) {
    right = right && std::fegetround() == FE_TONEAREST && *current_thread().errno_location == 0;
    std::fesetround(FE_UPWARD);
    *current_thread().errno_location = EAGAIN;
    me.park();
    right = right && std::fegetround() == FE_UPWARD && *current_thread().errno_location == EAGAIN;
  });
  std::fesetround(FE_DOWNWARD);
  errno = EDOM;
  subject.resume(here);
  right = right && std::fegetround() == FE_DOWNWARD && errno == EDOM;
  std::fesetround(FE_TONEAREST);
  subject.resume(here);
  right = right && std::fegetround() == FE_TONEAREST;
  check(right, "rounding mode and errno stay with the fiber");
}

_Unwind_Reason_Code count_frame(_Unwind_Context*, void* argument) {
  return ++*static_cast<int*>(argument) < 1000 ? _URC_NO_REASON : _URC_FATAL_PHASE1_ERROR;
}

void check_stack_walks(stack_pool& pool, adopted_thread& here) {
  bool ends = false;
  bool frames_end = false;
  test_fiber subject(pool, [&](test_fiber& me) {
    int frames = 0;
    ends = _Unwind_Backtrace(count_frame, &frames) == _URC_END_OF_STACK && frames < 30;
    auto* frame = static_cast<void**>(__builtin_frame_address(0));
    int steps = 0;
    while (frame != nullptr && steps < 1000 &&
           reinterpret_cast<std::byte*>(frame) >= me.stack().low &&
           reinterpret_cast<std::byte*>(frame) < me.stack().top()) {
      frame = static_cast<void**>(*frame);
      ++steps;
    }
    frames_end = frame == nullptr;
  });
  subject.resume(here);
  check(ends, "a walk by unwind tables ends at the entry");
  check(frames_end, "a walk by frame pointers ends at the entry");
}

void check_migration(stack_pool& pool, adopted_thread& here) {
  const thread_state* seen[2] = {};
  const thread_state* other = nullptr;
  test_fiber subject(pool, [&](test_fiber& me) {
    seen[0] = &current_thread();
    me.park();
    seen[1] = &current_thread();
  });
  subject.resume(here);
  std::thread([&] {
    adopted_thread there;
    other = &current_thread();
    subject.resume(there);
  }).join();
  check(seen[0] == &current_thread() && seen[1] == other && other != seen[0],
        "a migrated fiber sees its new thread's state");
}

void check_lock() {
  raw_mutex mutex;
  long counter = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        raw_guard guard(mutex);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  check(counter == 20'000, "raw_mutex excludes");
  atomic<std::uint32_t> word{0};
  check(futex_wait(word, 0, monotonic_ns() + 100'000) == futex_result::timed_out,
        "a futex wait times out");
}

int run_all() {
  stack_pool pool;
  adopted_thread here;
#if !defined(SMARM_ADDRESS_SANITIZER) && !defined(SMARM_THREAD_SANITIZER)
  check_message_and_alignment(pool);  // Moves by the bare switch, of which no sanitizer is told.
#endif
  check_registers(pool, here);
  check_exceptions(pool, here);
  check_control_and_errno(pool, here);
  check_stack_walks(pool, here);
  check_migration(pool, here);
  check_lock();
  std::printf("guards: %s\n",
              pool.guards() == guard_kind::guard_marker ? "guard markers" : "no access");
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace smarm::detail

int main() { return smarm::detail::run_all(); }
