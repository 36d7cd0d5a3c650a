// Goal: runtimes come and go in any number: one after the other, two at a time, never run, built
// wrong, used from foreign threads before, during and while the run ends; and a broken rule ends
// the process with one line. Method: each life by a small program at 1, 2 and 8 schedulers; death
// tests for what must not be survived.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::expect_nothing_left;
using test::ledger;
using test::rounds;
using test::scaled;

using runtime_life_test = test::actors_test;
SMARM_TEST_AT_1_2_8(runtime_life_test);

TEST_P(runtime_life_test, one_runtime_runs_again_and_again) {
  runtime ours(make_config());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ours.run([i] { return spawn([i] { return i; }).join().value(); }), i);
    expect_nothing_left(ours);
  }
}

TEST_P(runtime_life_test, runtimes_start_and_stop_by_the_hundred_empty_and_with_parked_actors) {
  const auto count = rounds(scaled(300), 10'000);
  for (std::int64_t i = 0; i < count; ++i) {
    run([i] {
      if (i % 2 == 0) return;
      std::vector<join_handle<void>> parked;
      for (int j = 0; j < 5; ++j) parked.push_back(spawn([] { sleep_until(deadline::never()); }));
      if (i % 4 == 1) yield();
      for (auto& each : parked) each.request_stop();
    });
  }
}

TEST_P(runtime_life_test, two_runtimes_run_side_by_side) {
  std::atomic<bool> both{false};
  std::atomic<int> arrived{0};
  const auto life = [&] {
    return run([&] {
      ++arrived;
      while (arrived.load() < 2) yield();
      both.store(true);
      int sum = 0;
      for (int i = 0; i < scaled(200); ++i) sum += spawn([i] { return i; }).join().value();
      return sum;
    });
  };
  int second_sum = 0;
  std::thread second([&] { second_sum = life(); });
  const int first_sum = life();
  second.join();
  EXPECT_TRUE(both.load());
  EXPECT_EQ(first_sum, second_sum);
}

TEST_P(runtime_life_test, an_actor_joins_an_actor_of_another_runtime) {
  runtime other(make_config());
  std::atomic<bool> go{false};
  auto far = other.spawn([&] {
    while (!go.load()) sleep_for(50us);
    return 11;
  });
  std::thread host([&] { other.run([] {}); });
  run([&] {
    auto near = spawn([&] { return far.join().value(); });
    yield();
    go.store(true);
    EXPECT_EQ(near.join().value(), 11);
  });
  host.join();
}

TEST_P(runtime_life_test, actors_spawned_before_the_run_wait_for_it) {
  runtime ours(make_config());
  std::atomic<int> ran{0};
  std::vector<join_handle<int>> early;
  for (int i = 0; i < 20; ++i) {
    early.push_back(ours.spawn([&, i] {
      ++ran;
      return i;
    }));
  }
  EXPECT_EQ(ours.counts().actors, 20U);
  EXPECT_EQ(ran.load(), 0);
  EXPECT_FALSE(early[0].join_for(1ms).has_value());
  ours.run([] {});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(early[static_cast<std::size_t>(i)].join().value(), i);
  }
}

TEST_P(runtime_life_test, actors_of_a_runtime_that_never_ran_end_as_stopped_and_leak_nothing) {
  ledger book;
  std::optional<join_handle<void>> held;
  std::thread waiter;
  std::atomic<bool> saw_the_end{false};
  {
    runtime ours(make_config());
    held = ours.spawn([value = counted(book, 1)] { FAIL() << "it must not run"; });
    for (int i = 0; i < 10; ++i) ours.spawn([value = counted(book, 2)] {}).detach();
    EXPECT_EQ(book.full.load(), 11);
    waiter = std::thread([&] {
      EXPECT_TRUE(held->join().error().is_stopped());
      saw_the_end.store(true);
    });
  }
  waiter.join();
  EXPECT_TRUE(saw_the_end.load());
  EXPECT_EQ(book.alive.load(), 0);
}

TEST_P(runtime_life_test, a_runtime_that_never_ran_and_one_that_only_failed_to_are_destroyed) {
  {
    const runtime idle(make_config());
  }
  runtime ours(make_config());
  EXPECT_THROW(ours.run({.name = "", .stack_size = 1}, [] {}), std::system_error);
  ours.run([] {});
}

TEST_P(runtime_life_test, a_root_whose_copy_throws_leaves_the_runtime_usable) {
  struct thrower {
    thrower() = default;
    thrower(const thrower&) { throw std::runtime_error("not to be copied"); }
    void operator()() const {}
  };
  runtime ours(make_config());
  const thrower root;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(ours.run(root), std::runtime_error);
  }
  EXPECT_EQ(ours.run([] { return 3; }), 3);
}

// ---- foreign threads
// -------------------------------------------------------------------------------

TEST_P(runtime_life_test, foreign_threads_spawn_stop_and_join_while_the_runtime_runs) {
  runtime ours(make_config());
  std::vector<std::thread> threads;
  std::atomic<int> joined{0};
  ours.run([&] {
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < scaled(200); ++i) {
          auto value = ours.spawn([i] { return i; });
          auto sleeper = ours.spawn([] { sleep_for(1h); });
          if (t != 0) {
            EXPECT_TRUE(request_stop(sleeper.id()).has_value());
          }
          if (t == 0) sleeper.request_stop();
          EXPECT_EQ(value.join().value(), i);
          EXPECT_TRUE(sleeper.join().error().is_stopped());
          ++joined;
        }
      });
    }
    while (joined.load() < 3 * scaled(200)) sleep_for(200us);
  });
  for (std::thread& each : threads) each.join();
  expect_nothing_left(ours);
}

// The last actors end while foreign threads still stop and join them and spawn more: each spawn
// runs to its end or is refused, and nothing is touched after its death.
TEST_P(runtime_life_test, foreign_threads_go_on_while_the_run_ends) {
  const auto count = rounds(scaled(100), 10'000);
  for (std::int64_t round = 0; round < count; ++round) {
    runtime ours(make_config());
    std::atomic<int> stage{0};
    std::atomic<int> accepted{0};
    std::atomic<int> ran{0};
    std::optional<join_handle<void>> target;  // the joining thread's, once it is there
    pid who;
    std::vector<std::thread> threads;
    std::vector<join_handle<void>> late;
    threads.emplace_back([&] {
      while (stage.load() == 0) std::this_thread::yield();
      EXPECT_TRUE(target->join().error().is_stopped());
    });
    threads.emplace_back([&] {
      while (stage.load() == 0) std::this_thread::yield();
      EXPECT_TRUE(request_stop(who).has_value());
    });
    threads.emplace_back([&] {
      while (stage.load() == 0) std::this_thread::yield();
      for (;;) {
        auto more = ours.try_spawn({}, [&] { ++ran; });
        if (!more.has_value()) {
          EXPECT_EQ(more.error(), std::errc::operation_canceled);
          break;
        }
        ++accepted;
        if (accepted.load() > 300 || stage.load() == 2) break;
        late.push_back(std::move(*more));
      }
    });
    ours.run([&] {
      target = spawn([] { sleep_for(1h); });
      who = target->id();
      stage.store(1);
    });
    stage.store(2);
    for (std::thread& each : threads) each.join();
    // What was accepted after the end waits for another run.
    ours.run([] {});
    EXPECT_EQ(ran.load(), accepted.load());
    expect_nothing_left(ours);
  }
}

TEST_P(runtime_life_test, handles_and_pids_outlive_their_runtime) {
  std::optional<join_handle<int>> held;
  pid who;
  {
    runtime ours(make_config());
    ours.run([&] {
      held = spawn([] { return 8; });
      who = held->id();
    });
  }
  EXPECT_FALSE(request_stop(who).has_value());
  held->request_stop();
  EXPECT_TRUE(held->has_ended());
  EXPECT_EQ(held->id(), who);
  EXPECT_EQ(held->join().value(), 8);
}

TEST_P(runtime_life_test, stop_all_from_outside_ends_the_run) {
  runtime ours(make_config());
  std::atomic<bool> up{false};
  std::thread stopper([&] {
    while (!up.load()) std::this_thread::yield();
    ours.stop_all();
  });
  ours.run([&] {
    up.store(true);
    sleep_until(deadline::never());
  });
  stopper.join();
  expect_nothing_left(ours);
}

// ---- configuration
// ---------------------------------------------------------------------------------

struct absurd {
  config how;
  std::string field;
  std::string range;
};

TEST(runtime_config, absurd_values_are_refused_by_field_and_range) {
  std::vector<absurd> all;
  const auto add = [&](auto change, std::string field, std::string range) {
    absurd& one = all.emplace_back();
    change(one.how);
    one.field = std::move(field);
    one.range = std::move(range);
  };
  add([](config& c) { c.schedulers = 1025; }, "schedulers", "0 to 1024");
  add([](config& c) { c.schedulers = ~0U; }, "schedulers", "0 to 1024");
  add([](config& c) { c.stack_size = 0; }, "stack_size", "16384 to 1073741824");
  add([](config& c) { c.stack_size = 16383; }, "stack_size", "16384 to 1073741824");
  add([](config& c) { c.stack_size = ~std::size_t{0}; }, "stack_size", "16384 to 1073741824");
  add([](config& c) { c.max_actors = 0; }, "max_actors", "1 to 67108864");
  add([](config& c) { c.max_actors = (std::size_t{1} << 26) + 1; }, "max_actors", "1 to 67108864");
  add([](config& c) { c.blocking_threads_max = 0; }, "blocking_threads_max", "1 to 4096");
  add([](config& c) { c.blocking_threads_max = 4097; }, "blocking_threads_max", "1 to 4096");
  add([](config& c) { c.blocking_idle = -1ms; }, "blocking_idle", "0 to 3600000");
  add([](config& c) { c.blocking_idle = 2h; }, "blocking_idle", "0 to 3600000");
  add([](config& c) { c.run_queue = static_cast<run_queue_kind>(4); }, "run_queue", "0 to 3");
  for (const absurd& one : all) {
    SCOPED_TRACE(one.field);
    try {
      const runtime impossible(one.how);
      FAIL() << "accepted";
    } catch (const config_error& e) {
      EXPECT_NE(std::string(e.what()).find("config::" + one.field), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(one.range), std::string::npos) << e.what();
    }
  }
}

TEST(runtime_config, no_number_of_schedulers_means_one_a_cpu) {
  const runtime ours;
  EXPECT_GE(ours.schedulers(), 1U);
}

TEST(runtime_config, the_smallest_runtime_works) {
  config how;
  how.schedulers = 1;
  how.max_actors = 1;
  how.stack_size = std::size_t{16} << 10;
  for (const run_queue_kind kind : {run_queue_kind::locked, run_queue_kind::mpmc,
                                    run_queue_kind::striped, run_queue_kind::local}) {
    how.run_queue = kind;
    EXPECT_EQ(run(how,
                  [] {
                    EXPECT_FALSE(try_spawn({}, [] {}).has_value());
                    yield();
                    return 1;
                  }),
              1);
  }
}

TEST(runtime_config, a_hundred_and_twenty_eight_schedulers_work) {
  config how;
  how.schedulers = 128;
  for (const run_queue_kind kind : {run_queue_kind::locked, run_queue_kind::mpmc,
                                    run_queue_kind::striped, run_queue_kind::local}) {
    how.run_queue = kind;
    const int sum = run(how, [] {
      std::vector<join_handle<int>> all;
      for (int i = 0; i < 500; ++i) {
        all.push_back(spawn([i] {
          yield();
          sleep_for(100us);
          return i;
        }));
      }
      int total = 0;
      for (auto& each : all) total += each.join().value();
      return total;
    });
    EXPECT_EQ(sum, 499 * 500 / 2);
  }
}

// ---- what ends the process
// -------------------------------------------------------------------------

[[gnu::noinline]] int dig_without_end(int depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(depth);
  return depth == 100'000'000 ? 0 : dig_without_end(depth + 1) + frame[0];
}

TEST(runtime_death_test, a_stack_overflow_names_the_actor_and_its_stack_size) {
  EXPECT_DEATH(run([] {
                 (void)spawn({.name = "digger", .stack_size = std::size_t{32} << 10}, [] {
                   return dig_without_end(0);
                 }).join();
               }),
               "digger.*32|stack-overflow");
}

TEST(runtime_death_test, a_runtime_must_not_be_destroyed_while_it_runs) {
  EXPECT_DEATH(
      {
        auto ours = std::make_unique<runtime>();
        ours->run([&] { ours.reset(); });
      },
      "a runtime was destroyed while run\\(\\) was going on");
}

TEST(runtime_death_test, a_broken_invariant_names_the_actor_that_ran) {
  EXPECT_DEATH(run([] {
                 (void)spawn({.name = "culprit", .stack_size = 0}, [] {
                   SMARM_ASSERT(self_name().empty(), "a test breaks this", self_name());
                 }).join();
               }),
               "a test breaks this.*culprit");
}

}  // namespace
}  // namespace smarm
