// Goal: a stack overflow, under either kind of guard, names its actor and its size, shows the
// calls, and aborts; any other fault goes where it went before. Method: death tests, each with a
// fiber that recurses without end.
#include "fiber/overflow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "fiber/fiber.hpp"
#include "fiber/fiber_fixture.hpp"

namespace smarm::detail {

// Outside the unnamed namespace: the report is to show its name.
// It has an end that no stack here reaches, for the compilers' sake.
[[gnu::noinline]] int recurse_without_end(int depth) {
  volatile char frame[128];
  frame[0] = static_cast<char>(depth);
  if (depth == 100'000'000) {
    return 0;
  }
  return recurse_without_end(depth + 1) + frame[0];
}

[[gnu::noinline]] int use_one_large_frame() {
  volatile char frame[100'000];
  for (std::size_t index = 0; index < sizeof frame; index += 512) {
    frame[sizeof frame - 1 - index] = 1;
  }
  return frame[7];
}

namespace {

using test::adopted_thread;
using test::test_fiber;

test_fiber* running;

bool describe_running(stack_span& stack, char* buffer, std::size_t size) noexcept {
  if (running == nullptr) {
    return false;
  }
  stack = running->stack();
  std::snprintf(buffer, size, "actor 12.3 \"digger\"");
  return true;
}

void run_on_a_fiber(guard_kind guards, void (*work)()) {
  install_overflow_handler(&describe_running);
  install_overflow_handler(&describe_running);  // A second runtime does no harm.
  std::thread([&] {
    const signal_stack for_handlers;
    adopted_thread here;
    stack_pool pool(guards);
    test_fiber subject(pool, [work](test_fiber&) { work(); });
    running = &subject;
    subject.resume(here);
    running = nullptr;
  }).join();
}

class overflow : public testing::TestWithParam<guard_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == guard_kind::guard_marker && probe_guard_kind() != guard_kind::guard_marker) {
      GTEST_SKIP() << "this kernel has no guard markers";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(with, overflow,
                         testing::Values(guard_kind::guard_marker, guard_kind::no_access),
                         [](const auto& info) {
                           return info.param == guard_kind::guard_marker ? "guard_marker"
                                                                         : "no_access";
                         });

TEST_P(overflow, by_recursion_names_the_actor_its_stack_and_the_calls) {
  EXPECT_DEATH(run_on_a_fiber(GetParam(), [] { recurse_without_end(0); }),
               "smarm: stack overflow in actor 12\\.3 \"digger\", stack of 64 KiB[^\n]*\n"
               "(.*\n)*.*frames not shown\n(.*\n)+");
}

TEST_P(overflow, ends_by_abort) {
  EXPECT_EXIT(run_on_a_fiber(GetParam(), [] { recurse_without_end(0); }),
              testing::KilledBySignal(SIGABRT), "stack overflow");
}

TEST_P(overflow, by_one_frame_larger_than_the_guard_is_caught_too) {
  EXPECT_DEATH(run_on_a_fiber(GetParam(), [] { use_one_large_frame(); }),
               "smarm: stack overflow in actor 12\\.3");
}

// Read through a volatile, or the compiler sees what is coming.
volatile std::uintptr_t bad_address = 16;

void access_a_bad_address() { *reinterpret_cast<volatile char*>(bad_address) = 1; }

TEST_P(overflow, is_not_what_another_bad_access_is_called) {
  EXPECT_EXIT(
      run_on_a_fiber(GetParam(), access_a_bad_address),
      [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; },
      testing::Not(testing::HasSubstr("stack overflow")));
}

TEST(fault_chain, a_fault_outside_a_guard_reaches_the_handler_that_was_there_first) {
  EXPECT_EXIT(
      {
        struct sigaction action = {};
        action.sa_sigaction = [](int, siginfo_t* info, void*) {
          _exit(info->si_addr == reinterpret_cast<void*>(16) ? 42 : 43);
        };
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, nullptr);
        run_on_a_fiber(probe_guard_kind(), access_a_bad_address);
      },
      testing::ExitedWithCode(42), "");
}

TEST(fault_chain, a_fault_that_nobody_handled_still_kills_by_its_own_signal) {
#if defined(SMARM_ADDRESS_SANITIZER) || defined(SMARM_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer handles it";
#endif
  EXPECT_EXIT(run_on_a_fiber(probe_guard_kind(), access_a_bad_address),
              testing::KilledBySignal(SIGSEGV), "");
}

TEST(signal_stack, puts_back_the_one_that_was_there) {
  stack_t before = {};
  sigaltstack(nullptr, &before);
  {
    const signal_stack mine;
    stack_t during = {};
    sigaltstack(nullptr, &during);
    EXPECT_NE(during.ss_sp, before.ss_sp);
    EXPECT_GE(during.ss_size, 65536u);
  }
  stack_t after = {};
  sigaltstack(nullptr, &after);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_flags & SS_DISABLE, before.ss_flags & SS_DISABLE);
}

}  // namespace
}  // namespace smarm::detail
