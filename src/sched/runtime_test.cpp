// Goal: what run, spawn, join and the handles promise in normal running and in misuse. Method: each
// promise by a small program, on all run queues at 1, 2 and 8 schedulers; the fixture fails
// on whatever is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/counted.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::counted;
using test::ledger;
using test::scaled;

using runtime_test = test::every_way_test;
SMARM_TEST_EVERY_WAY(runtime_test);

TEST_P(runtime_test, run_returns_what_root_returned) {
  EXPECT_EQ(run([] { return 42; }), 42);
  EXPECT_EQ(run([] { return std::string("text"); }), "text");
  EXPECT_EQ(*run([] { return std::make_unique<int>(7); }), 7);
  int place = 0;
  EXPECT_EQ(&run([&]() -> int& { return place; }), &place);
  bool ran = false;
  run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_P(runtime_test, run_throws_what_ended_root) {
  EXPECT_THROW(run([] { throw std::out_of_range("far"); }), std::out_of_range);
  EXPECT_THROW(run([]() -> int { throw 42; }), int);
}

TEST_P(runtime_test, run_waits_for_every_actor_and_not_for_root_alone) {
  std::atomic<int> ended{0};
  run([&] {
    for (int i = 0; i < 50; ++i) {
      spawn([&, i] {
        for (int j = 0; j < i; ++j) yield();
        ++ended;
      }).detach();
    }
  });
  EXPECT_EQ(ended.load(), 50);
}

TEST_P(runtime_test, a_stopped_root_ends_a_void_run_quietly_and_any_other_by_misuse) {
  run([] {
    (void)request_stop(self());
    yield();
    FAIL() << "a stopped actor went on";
  });
  EXPECT_THROW(run([]() -> int {
                 (void)request_stop(self());
                 yield();
                 return 1;
               }),
               misuse);
}

TEST_P(runtime_test, join_gives_the_value_whether_the_actor_has_ended_or_not) {
  run([] {
    auto early = spawn([] { return 1; });
    while (!early.has_ended()) yield();
    EXPECT_EQ(early.join().value(), 1);
    auto late = spawn([] {
      for (int i = 0; i < 20; ++i) yield();
      return 2;
    });
    EXPECT_EQ(late.join().value(), 2);
    EXPECT_FALSE(late.joinable());
  });
}

TEST_P(runtime_test, join_carries_values_of_every_kind) {
  run([] {
    static int place = 5;
    EXPECT_TRUE(spawn([] {}).join().has_value());
    EXPECT_EQ(*spawn([] { return std::make_unique<int>(3); }).join().value(), 3);
    EXPECT_EQ(spawn([] { return std::string(1000, 'x'); }).join().value().size(), 1000U);
    const auto many = spawn([] { return std::array<std::int64_t, 512>{1, 2, 3}; }).join().value();
    EXPECT_EQ(many[2], 3);
    EXPECT_EQ(spawn([]() -> int* { return &place; }).join().value(), &place);
    EXPECT_EQ(&spawn([]() -> int& { return place; }).join().value().get(), &place);
  });
}

TEST_P(runtime_test, an_exception_that_ends_an_actor_is_its_exit_reason) {
  run([] {
    auto failed = spawn([]() -> int { throw std::runtime_error("so it goes"); }).join();
    ASSERT_FALSE(failed.has_value());
    EXPECT_TRUE(failed.error().is_error());
    EXPECT_EQ(failed.error().message(), "failed: so it goes");
    EXPECT_THROW(std::rethrow_exception(failed.error().exception()), std::runtime_error);
    const auto odd = spawn([] { throw 17; }).join();
    EXPECT_EQ(odd.error().message(), "failed: an exception of type int");
  });
}

TEST_P(runtime_test, results_and_functions_are_destroyed_once_joined_or_not) {
  ledger book;
  run([&] {
    for (std::int64_t i = 0; i < 20; ++i) {
      auto handle = spawn([value = counted(book, i)]() mutable {
        yield();
        return std::move(value);
      });
      if (i % 3 == 0) {
        EXPECT_EQ(handle.join().value().number(), i);
      }
      if (i % 3 == 1) handle.detach();
    }
  });
  EXPECT_EQ(book.alive.load(), 0);
  EXPECT_EQ(book.full.load(), 0);
}

TEST_P(runtime_test, the_function_is_destroyed_before_the_end_is_published) {
  run([] {
    std::atomic<bool> destroyed{false};
    struct flag {
      std::atomic<bool>* at;
      explicit flag(std::atomic<bool>& where) : at(&where) {}
      flag(flag&& other) noexcept : at(std::exchange(other.at, nullptr)) {}
      ~flag() {
        if (at != nullptr) at->store(true);
      }
    };
    EXPECT_TRUE(spawn([raised = flag(destroyed)] { yield(); }).join().has_value());
    EXPECT_TRUE(destroyed.load());
  });
}

TEST_P(runtime_test, join_until_gives_up_and_can_be_tried_again) {
  run([] {
    std::atomic<bool> go{false};
    auto slow = spawn([&] {
      while (!go.load()) yield();
      return 9;
    });
    EXPECT_FALSE(slow.join_for(0s).has_value());
    EXPECT_FALSE(slow.join_for(-1h).has_value());
    EXPECT_FALSE(slow.join_for(200us).has_value());
    EXPECT_TRUE(slow.joinable());
    go.store(true);
    EXPECT_EQ(slow.join_for(10min)->value(), 9);
    EXPECT_FALSE(slow.joinable());
  });
}

TEST_P(runtime_test, a_loop_of_waits_whose_time_has_passed_lets_the_others_run) {
  run([] {
    auto other = spawn([] {
      for (int i = 0; i < 100; ++i) yield();
    });
    while (!other.join_for(0s)) {
    }
  });
}

TEST_P(runtime_test, an_actor_that_joins_itself_gets_misuse) {
  run([] {
    join_handle<void> handle;
    handle = spawn([&] {
      while (!handle.joinable()) yield();
      EXPECT_THROW((void)handle.join(), misuse);
    });
    while (!handle.has_ended()) yield();
    EXPECT_TRUE(handle.join().has_value());
  });
}

TEST_P(runtime_test, an_empty_handle_refuses_every_use) {
  run([] {
    join_handle<int> empty;
    EXPECT_FALSE(empty.joinable());
    EXPECT_THROW((void)empty.join(), misuse);
    EXPECT_THROW((void)empty.join_for(1s), misuse);
    EXPECT_THROW((void)empty.id(), misuse);
    EXPECT_THROW((void)empty.has_ended(), misuse);
    EXPECT_THROW(empty.request_stop(), misuse);
    empty.detach();
  });
}

TEST_P(runtime_test, a_deep_tree_of_actors_is_summed_by_joins) {
  struct tree {
    static int leaves(int depth) {
      if (depth == 0) return 1;
      auto left = spawn([depth] { return leaves(depth - 1); });
      auto right = spawn([depth] { return leaves(depth - 1); });
      return left.join().value() + right.join().value();
    }
  };
  const int depth = test::slow_build() ? 5 : 9;
  EXPECT_EQ(run([&] { return tree::leaves(depth); }), 1 << depth);
}

TEST_P(runtime_test, a_thousand_actors_that_yield_come_all_to_their_end) {
  const int count = scaled(1000);
  std::atomic<int> steps{0};
  run([&] {
    std::vector<join_handle<void>> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(spawn([&] {
        for (int j = 0; j < 10; ++j) {
          ++steps;
          yield();
        }
      }));
    }
    for (auto& each : all) {
      EXPECT_TRUE(each.join().has_value());
    }
  });
  EXPECT_EQ(steps.load(), count * 10);
}

// ---- names, identity
// -----------------------------------------------------------------------------

TEST_P(runtime_test, an_actor_knows_its_name_and_pid) {
  run([] {
    EXPECT_EQ(self_name(), "root");
    auto named = spawn({.name = "worker", .stack_size = 0},
                       [] { return std::pair(std::string(self_name()), self()); });
    const pid who = named.id();
    EXPECT_TRUE(who.is_valid());
    const auto [name, inside] = named.join().value();
    EXPECT_EQ(name, "worker");
    EXPECT_EQ(inside, who);
    EXPECT_EQ(spawn([] { return std::string(self_name()); }).join().value(), "");
    EXPECT_TRUE(is_actor());
  });
}

TEST_P(runtime_test, pids_are_never_given_out_twice) {
  std::vector<pid> seen;
  for (int i = 0; i < 3; ++i) {
    run([&] {
      for (int j = 0; j < scaled(500); ++j) {
        seen.push_back(spawn([] { return self(); }).join().value());
      }
    });
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST_P(runtime_test, the_destructor_of_a_result_that_nobody_took_may_ask_who_it_is_and_park) {
  static std::atomic<int> destroyed{0};
  destroyed = 0;
  struct chatty {
    bool armed = true;
    chatty() = default;
    chatty(chatty&& other) noexcept : armed(std::exchange(other.armed, false)) {}
    ~chatty() {
      if (!armed) return;
      EXPECT_TRUE(self().is_valid());
      EXPECT_EQ(self_name(), "chatty");
      sleep_for(100us);
      yield();
      EXPECT_FALSE(request_stop(self()).has_value()) << "it has ended for everybody";
      ++destroyed;
    }
  };
  run([] {
    for (int i = 0; i < 5; ++i) spawn({.name = "chatty", .stack_size = 0}, [] { return chatty(); });
  });
  EXPECT_EQ(destroyed.load(), 5);
}

// ---- refusals
// --------------------------------------------------------------------------------------

TEST_P(runtime_test, calls_that_need_an_actor_say_so_on_a_foreign_thread) {
  EXPECT_FALSE(is_actor());
  EXPECT_THROW((void)self(), misuse);
  EXPECT_THROW((void)self_name(), misuse);
  EXPECT_THROW(spawn([] {}), misuse);
  EXPECT_THROW((void)try_spawn({}, [] {}), misuse);
  yield();
  check();
  EXPECT_FALSE(stop_requested());
  const stop_shield no_effect;
}

TEST_P(runtime_test, run_inside_an_actor_is_misuse_and_does_no_harm) {
  run([] {
    EXPECT_THROW(smarm::run([] {}), misuse);
    runtime inner(make_config());
    EXPECT_THROW(inner.run([] {}), misuse);
  });
}

TEST_P(runtime_test, a_runtime_that_runs_refuses_a_second_run) {
  runtime ours(make_config());
  std::atomic<bool> refused{false};
  ours.run([&] {
    std::thread second([&] {
      EXPECT_THROW(ours.run([] {}), misuse);
      refused.store(true);
    });
    while (!refused.load()) yield();
    second.join();
  });
}

TEST_P(runtime_test, stack_sizes_out_of_range_are_refused_by_value) {
  run([] {
    for (const std::size_t absurd : {std::size_t{1}, (std::size_t{16} << 10) - 1,
                                     (std::size_t{1} << 30) + 1, ~std::size_t{0}}) {
      const auto refused = try_spawn({.name = "", .stack_size = absurd}, [] {});
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error(), std::errc::invalid_argument);
      EXPECT_THROW(spawn({.name = "", .stack_size = absurd}, [] {}), std::system_error);
    }
    auto small = spawn({.name = "", .stack_size = std::size_t{16} << 10}, [] { return 1; });
    auto large = spawn({.name = "", .stack_size = std::size_t{8} << 20}, [] {
      volatile char deep[4 << 20];
      deep[0] = 1;
      yield();
      return static_cast<int>(deep[0]);
    });
    EXPECT_EQ(small.join().value(), 1);
    EXPECT_EQ(large.join().value(), 1);
  });
}

TEST_P(runtime_test, actors_beyond_the_limit_are_refused_until_one_ends) {
  config how = make_config();
  how.max_actors = 10;
  ledger book;
  run(how, [&] {
    std::atomic<bool> go{false};
    const auto wait = [&, value = std::make_shared<counted>(book, 1)] {
      while (!go.load()) sleep_for(50us);
    };
    std::vector<join_handle<void>> nine;
    for (int i = 0; i < 9; ++i) nine.push_back(spawn(wait));
    for (int i = 0; i < 3; ++i) {
      const auto refused = try_spawn({}, wait);
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error(), std::errc::resource_unavailable_try_again);
    }
    EXPECT_THROW(spawn(wait), std::system_error);
    go.store(true);
    for (auto& each : nine) {
      EXPECT_TRUE(each.join().has_value());
    }
    // The joiner may learn of the end a moment before the place is free.
    while (!try_spawn({}, [] {}).has_value()) yield();
  });
  EXPECT_EQ(book.alive.load(), 0);
}

TEST_P(runtime_test, a_function_whose_copy_throws_leaves_nothing_behind) {
  struct thrower {
    thrower() = default;
    thrower(const thrower&) { throw std::runtime_error("not to be copied"); }
    void operator()() const {}
  };
  run([] {
    const thrower function;
    EXPECT_THROW(spawn(function), std::runtime_error);
    EXPECT_THROW((void)try_spawn({}, function), std::runtime_error);
  });
}

TEST_P(runtime_test, functions_and_results_of_great_alignment_lie_where_they_should) {
  struct alignas(4096) page {
    char byte = 7;
  };
  run([] {
    for (int i = 0; i < 5; ++i) {
      const page big;
      auto result = spawn([big] {
                      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&big) % 4096, 0U);
                      yield();
                      return std::make_unique<page>(big);
                    }).join();
      EXPECT_EQ(result.value()->byte, 7);
    }
    struct alignas(256) wide {
      int value = 3;
    };
    EXPECT_EQ(spawn([] { return wide{}; }).join().value().value, 3);
  });
}

TEST_P(runtime_test, a_failure_that_nobody_can_learn_of_is_reported_once_with_its_name) {
  static std::atomic<int> reports{0};
  static std::string reported;
  reports = 0;
  config how = make_config();
  how.on_unobserved_failure = [](pid who, std::string_view name, const exit_reason& why) {
    EXPECT_TRUE(who.is_valid());
    reported = std::string(name) + ": " + why.message();
    ++reports;
  };
  run(how, [] {
    spawn({.name = "lonely", .stack_size = 0}, [] {
      yield();
      throw std::runtime_error("unheard");
    }).detach();
    auto watched = spawn([] { throw std::runtime_error("heard"); });
    EXPECT_TRUE(watched.join().error().is_error());
    auto held = spawn([] { throw std::runtime_error("can still be asked"); });
    while (!held.has_ended()) yield();
    spawn([] {}).detach();
    auto stopped = spawn([] { sleep_until(deadline::never()); });
    stopped.request_stop();
    stopped.detach();
  });
  EXPECT_EQ(reports.load(), 1);
  EXPECT_EQ(reported, "lonely: failed: unheard");
}

// ---- counts
// --------------------------------------------------------------------------------------

TEST_P(runtime_test, counts_tell_what_lives) {
  runtime ours(make_config());
  EXPECT_EQ(ours.schedulers(), schedulers());
  ours.run([&] {
    EXPECT_EQ(ours.counts().actors, 1U);
    EXPECT_EQ(ours.counts().timers, 0U);
    std::vector<join_handle<void>> sleepers;
    for (int i = 0; i < 10; ++i) sleepers.push_back(spawn([] { sleep_for(1h); }));
    while (ours.counts().timers < 10) yield();
    EXPECT_EQ(ours.counts().actors, 11U);
    EXPECT_GE(ours.counts().stacks_in_use, 11U);
    for (auto& each : sleepers) each.request_stop();
    for (auto& each : sleepers) {
      EXPECT_TRUE(each.join().error().is_stopped());
    }
    EXPECT_EQ(ours.counts().timers, 0U) << "a stopped sleeper takes its timer along";
  });
  test::expect_nothing_left(ours);
}

}  // namespace
}  // namespace smarm
