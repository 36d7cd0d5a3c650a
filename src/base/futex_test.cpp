// Goal: a futex wait ends for each of its reasons and says which; deadlines are exact and absolute;
// errno survives.
// Method: real threads; where one must be asleep first, the wake is repeated until it reports one.
#include "base/futex.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <thread>

namespace smarm::detail {
namespace {

TEST(futex_wait, returns_at_once_when_the_word_differs) {
  atomic<std::uint32_t> word{1};
  EXPECT_EQ(futex_wait(word, 2), futex_result::value_changed);
}

TEST(futex_wait, times_out_at_its_deadline_and_not_before) {
  atomic<std::uint32_t> word{0};
  const std::int64_t deadline_ns = monotonic_ns() + 200'000;
  errno = 7;
  EXPECT_EQ(futex_wait(word, 0, deadline_ns), futex_result::timed_out);
  EXPECT_GE(monotonic_ns(), deadline_ns);
  EXPECT_EQ(errno, 7);
}

TEST(futex_wait, times_out_at_once_when_the_deadline_has_passed) {
  atomic<std::uint32_t> word{0};
  EXPECT_EQ(futex_wait(word, 0, monotonic_ns() - 1), futex_result::timed_out);
  EXPECT_EQ(futex_wait(word, 0, 0), futex_result::timed_out);
  EXPECT_EQ(futex_wait(word, 0, -5), futex_result::timed_out);
}

TEST(futex_wake, wakes_a_sleeper_and_counts_it) {
  atomic<std::uint32_t> word{0};
  futex_result result{};
  std::thread sleeper([&] { result = futex_wait(word, 0); });
  while (futex_wake(word, 1) == 0) {
    std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_EQ(result, futex_result::woken);
}

TEST(futex_wake, counts_nobody_when_nobody_sleeps) {
  atomic<std::uint32_t> word{0};
  EXPECT_EQ(futex_wake(word, 8), 0);
}

TEST(futex_wait, says_when_a_signal_ended_it) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  struct sigaction previous;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  atomic<std::uint32_t> word{0};
  atomic<bool> done{false};
  futex_result result{};
  std::thread sleeper([&] {
    result = futex_wait(word, 0);
    done.store(true, release);  // pairs with the loop below
  });
  while (!done.load(acquire)) {  // pairs with the sleeper's store
    pthread_kill(sleeper.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_EQ(result, futex_result::interrupted);
  sigaction(SIGUSR1, &previous, nullptr);
}

}  // namespace
}  // namespace smarm::detail
