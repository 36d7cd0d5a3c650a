// What a semaphore promises: as many inside as there are permits, turns in the order of coming, and
// the number of permits conserved through deadlines and stops.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <smarm/semaphore.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;

using semaphore_test = test::actors_test;
SMARM_TEST_AT_1_2_8(semaphore_test);

TEST_P(semaphore_test, admits_as_many_as_it_has_permits) {
  run([] {
    semaphore permits(3);
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 12; ++i) {
      actors.push_back(spawn([&] {
        for (int n = 0; n < 100; ++n) {
          permits.acquire();
          const int now = ++inside;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          // The first holders wait for each other: that three get in is not left to luck.
          do yield();
          while (most < 3);
          --inside;
          permits.release();
        }
      }));
    }
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    EXPECT_EQ(most, 3);
    EXPECT_EQ(permits.available(), 3U);
  });
}

TEST_P(semaphore_test, waiters_are_served_in_the_order_they_came) {
  run([] {
    semaphore permits(0);
    std::vector<int> order;
    std::vector<join_handle<void>> actors;
    std::atomic<int> begun{0};
    for (int i = 0; i < 10; ++i) {
      actors.push_back(spawn([&, i] {
        ++begun;
        permits.acquire();
        order.push_back(i);
        permits.release();  // the next
      }));
      while (begun != i + 1) yield();
      sleep_for(200us);  // it parks meanwhile
    }
    permits.release();
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    for (int i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(permits.available(), 1U);
  });
}

TEST_P(semaphore_test, releases_many_at_once) {
  run([] {
    semaphore permits(0);
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 5; ++i) actors.push_back(spawn([&] { permits.acquire(); }));
    for (int i = 0; i < 20; ++i) yield();
    permits.release(8);
    for (auto& actor : actors) ASSERT_TRUE(actor.join());
    EXPECT_EQ(permits.available(), 3U);
    permits.release(0);
    EXPECT_EQ(permits.available(), 3U);
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_EQ(permits.available(), 2U);
  });
}

TEST_P(semaphore_test, deadlines_give_up) {
  run([] {
    semaphore permits(1);
    EXPECT_TRUE(permits.try_acquire_for(-1s)) << "a free permit is taken, deadline or not";
    EXPECT_FALSE(permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire_for(1ms));
    EXPECT_FALSE(permits.try_acquire_until(std::chrono::steady_clock::now()));
    permits.release();
    EXPECT_TRUE(permits.try_acquire_for(1h));
  });
}

TEST_P(semaphore_test, a_stopped_waiter_takes_nothing) {
  run([] {
    semaphore permits(0);
    auto waiting = spawn([&] { permits.acquire(); });
    for (int i = 0; i < 10; ++i) yield();
    waiting.request_stop();
    EXPECT_TRUE(waiting.join().error().is_stopped());
    permits.release();
    EXPECT_EQ(permits.available(), 1U);
  });
}

TEST_P(semaphore_test, permits_are_conserved_through_deadlines_and_stops) {
  const std::int64_t count = test::rounds(2'000, 100'000);
  run([count] {
    constexpr int total = 2;
    semaphore permits(total);
    std::atomic<int> inside{0};
    std::atomic<bool> done{false};
    const auto work = [&](std::uint64_t salt) {
      auto rng = make_rng(salt);
      while (!done) {
        if (rng() % 2 == 0) {
          if (!permits.try_acquire_for(std::chrono::microseconds(rng() % 30))) {
            yield();
            continue;
          }
        } else {
          permits.acquire();
        }
        // Given back also when a stop unwinds this.
        const std::unique_ptr<semaphore, void (*)(semaphore*)> held(
            &permits, [](semaphore* s) { s->release(); });
        ASSERT_LE(++inside, total);
        const std::unique_ptr<std::atomic<int>, void (*)(std::atomic<int>*)> leaving(
            &inside, [](std::atomic<int>* in) { --*in; });
        if (rng() % 3 == 0) yield();
      }
    };
    std::vector<join_handle<void>> actors;
    for (std::uint64_t i = 0; i < 6; ++i) actors.push_back(spawn([&work, i] { work(i); }));
    auto rng = make_rng(77);
    for (std::int64_t i = 0; i < count; ++i) {
      auto& victim = actors[rng() % actors.size()];
      victim.request_stop();
      ASSERT_TRUE(victim.join().error().is_stopped());
      victim = spawn([&work, i] { work(static_cast<std::uint64_t>(i) + 1'000); });
      if (rng() % 4 == 0) yield();
    }
    done = true;
    for (auto& actor : actors) (void)actor.join();
    EXPECT_EQ(permits.available(), static_cast<std::size_t>(total));
  });
}

TEST_P(semaphore_test, whoever_acquires_last_may_destroy_it) {
  const std::int64_t count = test::rounds(5'000, 500'000);
  run([count] {
    for (std::int64_t i = 0; i < count; ++i) {
      auto done = std::make_unique<semaphore>(0);
      auto worker = spawn([&done = *done] { done.release(); });
      if (i % 3 == 0) {
        while (!done->try_acquire_for(1us)) {
        }
      } else {
        done->acquire();
      }
      done.reset();
      (void)worker.join();
    }
  });
}

TEST_P(semaphore_test, too_many_permits_are_misuse) {
  EXPECT_THROW(semaphore(semaphore::max() + 1), misuse);
  semaphore full(semaphore::max());
  EXPECT_THROW(full.release(), misuse);
  EXPECT_EQ(full.available(), semaphore::max());
}

TEST_P(semaphore_test, a_thread_that_is_no_actor_waits) {
  semaphore permits(0);
  std::thread waiting([&] {
    for (int i = 0; i < 100; ++i) permits.acquire();
  });
  run([&] {
    for (int i = 0; i < 100; ++i) {
      permits.release();
      yield();
    }
  });
  waiting.join();
  EXPECT_EQ(permits.available(), 0U);
}

}  // namespace
}  // namespace smarm
