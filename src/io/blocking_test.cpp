// Goal: blocking work runs aside, its results and exceptions come back, and its threads stay within
// their limits.
// Method: jobs that wait for a condition of the test, so that how many run at once is known;
// threads are counted by their name in /proc.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/blocking.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "fiber/sanitizer.hpp"
#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::threads_named;

using blocking_test = test::actors_test;
SMARM_TEST_AT_1_2_8(blocking_test);

// A gate at which jobs wait on their threads until the test opens it.
struct gate {
  std::atomic<bool> is_open{false};
  std::atomic<int> waiting{0};

  void pass() {
    ++waiting;
    is_open.wait(false);
    --waiting;
  }
  void open() {
    is_open = true;
    is_open.notify_all();
  }
};

TEST_P(blocking_test, results_of_every_kind_come_back) {
  run([] {
    EXPECT_EQ(blocking([] { return 42; }), 42);
    EXPECT_EQ(*blocking([] { return std::make_unique<int>(7); }), 7);
    int number = 1;
    int& same = blocking([&]() -> int& { return number; });
    EXPECT_EQ(&same, &number);
    blocking([&] { number = 5; });
    EXPECT_EQ(number, 5);
    auto owned = std::make_unique<int>(9);
    EXPECT_EQ(blocking([owned = std::move(owned)] { return *owned; }), 9);
    EXPECT_FALSE(blocking([] { return is_actor(); }));
    EXPECT_TRUE(is_actor());
  });
}

TEST_P(blocking_test, an_exception_of_the_job_is_thrown_to_the_actor) {
  run([] {
    try {
      blocking([] { throw std::out_of_range("far away"); });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "far away");
    }
    EXPECT_EQ(blocking([] { return 1; }), 1);
  });
}

TEST_P(blocking_test, a_thread_that_is_no_actor_runs_the_job_itself) {
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
  run([] {
    EXPECT_EQ(blocking([] { return blocking([] { return std::this_thread::get_id(); }); }),
              blocking([] { return std::this_thread::get_id(); }));
  });
}

TEST_P(blocking_test, other_actors_run_while_a_job_blocks) {
  run([] {
    gate held;
    auto job = spawn([&] { blocking([&] { held.pass(); }); });
    eventually([&] { return held.waiting == 1; });
    EXPECT_FALSE(job.has_ended());
    held.open();
    EXPECT_TRUE(job.join().has_value());
  });
}

TEST_P(blocking_test, threads_are_started_as_jobs_come_and_end_when_idle) {
  config how = make_config();
  how.blocking_idle = 20ms;
  run(how, [] {
    EXPECT_EQ(threads_named("smarm-blocking"), 0U);
    gate held;
    std::vector<join_handle<void>> jobs;
    for (int i = 0; i < 8; ++i) jobs.push_back(spawn([&] { blocking([&] { held.pass(); }); }));
    eventually([&] { return held.waiting == 8; });
    EXPECT_EQ(threads_named("smarm-blocking"), 8U);
    held.open();
    for (auto& job : jobs) EXPECT_TRUE(job.join().has_value());
    eventually([] {
      sleep_for(1ms);
      return threads_named("smarm-blocking") == 0;
    });
    EXPECT_EQ(blocking([] { return 3; }), 3);
  });
  EXPECT_EQ(threads_named("smarm-blocking"), 0U);
}

// The thread that was idle last is called first, so that the others come to the end of their time.
TEST_P(blocking_test, a_pool_with_little_to_do_shrinks_while_it_works) {
  config how = make_config();
  how.blocking_idle = 50ms;
  run(how, [] {
    gate held;
    std::vector<join_handle<void>> jobs;
    for (int i = 0; i < 8; ++i) jobs.push_back(spawn([&] { blocking([&] { held.pass(); }); }));
    eventually([&] { return held.waiting == 8; });
    held.open();
    for (auto& job : jobs) EXPECT_TRUE(job.join().has_value());
    eventually([] {
      for (int i = 0; i < 50; ++i) blocking([] {});
      return threads_named("smarm-blocking") == 1;
    });
  });
}

TEST_P(blocking_test, an_idle_thread_is_used_again) {
  run([] {
    for (int i = 0; i < 200; ++i) blocking([] {});
    EXPECT_EQ(threads_named("smarm-blocking"), 1U);
  });
}

TEST_P(blocking_test, jobs_beyond_the_limit_wait_their_turn) {
  config how = make_config();
  how.blocking_threads_max = 2;
  run(how, [] {
    gate held;
    std::mutex order_lock;
    std::vector<int> order;
    std::vector<join_handle<void>> jobs;
    for (int i = 0; i < 2; ++i) jobs.push_back(spawn([&] { blocking([&] { held.pass(); }); }));
    eventually([&] { return held.waiting == 2; });
    std::atomic<int> queued{0};
    for (int i = 0; i < 20; ++i) {
      jobs.push_back(spawn([&, i] {
        ++queued;
        blocking([&] {
          const std::scoped_lock guard(order_lock);
          order.push_back(i);
        });
      }));
      // One after the other, so that their order in the queue is known.
      eventually([&] { return queued == i + 1; });
      for (int turn = 0; turn < 20; ++turn) yield();
    }
    EXPECT_EQ(threads_named("smarm-blocking"), 2U);
    EXPECT_TRUE(order.empty());
    held.open();
    for (auto& job : jobs) EXPECT_TRUE(job.join().has_value());
    EXPECT_EQ(order.size(), 20U);
    EXPECT_EQ(order.front(), 0);
  });
}

TEST_P(blocking_test, a_stop_withdraws_a_job_that_is_queued) {
  config how = make_config();
  how.blocking_threads_max = 1;
  run(how, [] {
    gate held;
    std::atomic<bool> ran{false};
    auto first = spawn([&] { blocking([&] { held.pass(); }); });
    eventually([&] { return held.waiting == 1; });
    auto second = spawn([&] { blocking([&] { ran = true; }); });
    for (int i = 0; i < 20; ++i) yield();
    second.request_stop();
    EXPECT_TRUE(second.join().error().is_stopped());
    held.open();
    EXPECT_TRUE(first.join().has_value());
    EXPECT_FALSE(ran);
  });
}

TEST_P(blocking_test, a_stop_waits_for_a_job_that_runs_to_its_end) {
  run([] {
    gate held;
    std::atomic<bool> unwound{false};
    auto actor = spawn([&] {
      const struct tells {
        std::atomic<bool>& flag;
        ~tells() { flag = true; }
      } at_end{unwound};
      std::string on_stack = "before";
      blocking([&] {
        held.pass();
        on_stack = "after, and long enough to be allocated anew";
      });
      ADD_FAILURE() << "the stop took no effect";
    });
    eventually([&] { return held.waiting == 1; });
    actor.request_stop();
    for (int i = 0; i < 20; ++i) yield();
    EXPECT_FALSE(unwound);
    held.open();
    EXPECT_TRUE(actor.join().error().is_stopped());
    EXPECT_TRUE(unwound);
  });
}

TEST_P(blocking_test, stops_race_jobs_and_nothing_is_lost) {
  config how = make_config();
  how.blocking_threads_max = 3;
  how.blocking_idle = 0ms;
  run(how, [] {
    auto random = test::make_rng(4);
    std::atomic<std::int64_t> ran{0};
    std::int64_t returned = 0;
    for (std::int64_t round = 0; round < test::rounds(400, 50'000); ++round) {
      std::vector<join_handle<int>> actors;
      for (int i = 0; i < 6; ++i) {
        actors.push_back(spawn([&, i] {
          return blocking([&, i] {
            ++ran;
            return i;
          });
        }));
      }
      for (auto turns = random() % 8; turns > 0; --turns) yield();
      for (auto& actor : actors) {
        if (random() % 2 == 0) actor.request_stop();
      }
      for (int i = 0; i < 6; ++i) {
        const auto outcome = actors[static_cast<std::size_t>(i)].join();
        EXPECT_EQ(outcome.value_or(i), i);
        returned += outcome ? 1 : 0;
      }
    }
    EXPECT_GE(ran, returned);
  });
}

TEST_P(blocking_test, the_run_ends_only_after_the_last_job) {
  gate held;
  std::atomic<bool> job_ended{false};
  std::thread opener;
  run([&] {
    auto actor = spawn([&] {
      blocking([&] {
        held.pass();
        job_ended = true;
      });
    });
    eventually([&] { return held.waiting == 1; });
    actor.request_stop();
    opener = std::thread([&] { held.open(); });
  });
  EXPECT_TRUE(job_ended);
  opener.join();
}

TEST_P(blocking_test, signals_are_blocked_on_the_threads_of_the_pool) {
  run([] {
    const bool blocked = blocking([] {
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1 &&
             sigismember(&mask, SIGSEGV) == 0;
    });
    EXPECT_TRUE(blocked);
  });
}

#if !defined(SMARM_ADDRESS_SANITIZER) && !defined(SMARM_THREAD_SANITIZER)
// Runs in a process of its own: with no address space left there is no stack for a thread.
[[noreturn]] void ask_for_a_thread_where_none_can_be_had(unsigned schedulers) {
  config how;
  how.schedulers = schedulers;
  int result = 1;
  run(how, [&] {
    sleep_for(1ms);
    gate held;
    std::vector<std::thread> others;
    others.reserve(100);
    const rlimit none_left{1, RLIM_INFINITY};
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    ::setrlimit(RLIMIT_AS, &none_left);
    // The C library keeps stacks of threads that have ended: use them up.
    try {
      for (int i = 0; i < 100; ++i) others.emplace_back([&] { held.pass(); });
    } catch (const std::exception&) {
      result = 3;
    }
    try {
      blocking([] {});
    } catch (const std::exception&) {  // no thread, or no memory for what belongs to one
      result = result == 3 ? 0 : 4;
    }
    ::setrlimit(RLIMIT_AS, &before);
    held.open();
    for (std::thread& other : others) other.join();
    if (blocking([] { return 5; }) != 5) result = 2;
  });
  std::_Exit(result);
}

TEST_P(blocking_test, without_any_thread_the_call_throws_and_the_next_one_tries_again) {
  EXPECT_EXIT(ask_for_a_thread_where_none_can_be_had(schedulers()), ::testing::ExitedWithCode(0),
              "");
}
#endif

}  // namespace
}  // namespace smarm
