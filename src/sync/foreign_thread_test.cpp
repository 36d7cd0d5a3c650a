// Threads that are no actors against a runtime that is ending: they send, spawn, stop, watch and
// join. Goal: each call either reaches the actor or says that there is none; nobody hangs, nothing
// leaks. Method: the runtime's root returns at a random moment while the threads are at it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/monitor.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;
using test::rounds;

using foreign_thread_test = test::actors_test;
SMARM_TEST_AT_1_2_8(foreign_thread_test);

TEST_P(foreign_thread_test, spawning_and_joining_while_the_runtime_ends) {
  const std::int64_t count = rounds(15, 2'000);
  for (std::int64_t i = 0; i < count; ++i) {
    runtime ours(make_config());
    std::atomic<bool> enough{false};
    std::atomic<bool> done{false};
    std::atomic<std::int64_t> joined{0};
    std::thread outside([&] {
      // What is spawned between two runs waits for the next, so a join always comes back.
      for (int n = 0; !enough; ++n) {
        auto started = ours.try_spawn({}, [n] {
          yield();
          return n;
        });
        if (!started) continue;
        EXPECT_EQ(started->join().value(), n);
        ++joined;
      }
      done = true;
    });
    for (std::int64_t n = 0; n < 20 || joined < 3; ++n) {
      ours.run([turns = n % 7] {
        for (auto left = turns; left > 0; --left) yield();
      });
    }
    enough = true;
    while (!done) ours.run([] {});
    outside.join();
    test::expect_nothing_left(ours);
  }
}

TEST_P(foreign_thread_test, sending_and_stopping_while_the_runtime_ends) {
  const std::int64_t count = rounds(100, 5'000);
  for (std::int64_t i = 0; i < count; ++i) {
    auto [pid_tx, pid_rx] = oneshot<pid>();
    auto [tx, rx] = channel<int>();
    std::thread outside([tx = std::move(tx), pid_rx = std::move(pid_rx), i]() mutable {
      const pid who = pid_rx.recv().value();
      for (int n = 0; n < i % 20; ++n) (void)tx.send(n);
      const auto stopped = request_stop(who);
      EXPECT_TRUE(stopped || stopped.error().who == who);
      // Whoever it was, it ends now, and then there is nobody under that name.
      auto watch = monitor(who);
      const auto kind = watch.recv().reason.kind();
      EXPECT_TRUE(kind == exit_kind::stopped || kind == exit_kind::normal ||
                  kind == exit_kind::noproc);
      EXPECT_FALSE(request_stop(who));
      while (tx.send(0)) std::this_thread::yield();
    });
    run([pid_tx = std::move(pid_tx), rx = std::move(rx), i]() mutable {
      auto worker = spawn([rx = std::move(rx), limit = i % 10]() mutable {
        int seen = 0;
        for (int value : rx) {
          (void)value;
          if (++seen > limit) return;
        }
      });
      EXPECT_TRUE(pid_tx.send(worker.id()));
      if (i % 2 == 0) {
        (void)worker.join();
      } else {
        worker.detach();
      }
    });
    outside.join();
  }
}

TEST_P(foreign_thread_test, joining_from_outside_sees_every_end) {
  const std::int64_t count = rounds(200, 10'000);
  for (std::int64_t i = 0; i < count; ++i) {
    runtime ours(make_config());
    std::vector<join_handle<int>> handles;
    for (int n = 0; n < 4; ++n) {
      handles.push_back(ours.spawn([n] {
        if (n == 1) throw std::runtime_error("one fails");
        if (n == 2) sleep_until(deadline::never());
        yield();
        return n;
      }));
    }
    std::thread joining([&handles] {
      EXPECT_EQ(handles[0].join().value(), 0);
      EXPECT_TRUE(handles[1].join().error().is_error());
      EXPECT_FALSE(handles[2].join_for(100us));
      handles[2].request_stop();
      EXPECT_TRUE(handles[2].join().error().is_stopped());
      EXPECT_EQ(handles[3].join().value(), 3);
    });
    ours.run([] {});
    joining.join();
    test::expect_nothing_left(ours);
  }
}

TEST_P(foreign_thread_test, two_runtimes_talk_through_one_channel) {
  const int count = 2'000;
  auto [there_tx, there_rx] = channel<int>();
  auto [back_tx, back_rx] = channel<int>();
  std::thread other([rx = std::move(there_rx), tx = std::move(back_tx)]() mutable {
    run([rx = std::move(rx), tx = std::move(tx)]() mutable {
      for (int value : rx) tx.send(value + 1);
    });
  });
  run([tx = std::move(there_tx), rx = std::move(back_rx)]() mutable {
    for (int i = 0; i < count; ++i) {
      tx.send(i);
      ASSERT_EQ(rx.recv().value(), i + 1);
    }
  });
  other.join();
}

}  // namespace
}  // namespace smarm
