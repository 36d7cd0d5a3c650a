// Goal: request_stop as promised: sticky, seen at the entry and the return of every park, not to be
// swallowed, held off by shields and by an unwind in progress, harmless for those that have ended;
// and stale or foreign pids are answered by every call that takes one. Method: each rule by a small
// program at 1, 2 and 8 schedulers, then storms in which stop, wake, deadline and end meet.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "sched/wait.hpp"
#include "tests/support/actors_test.hpp"
#include "tests/support/counted.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;
using test::rounds;
using test::scaled;

using stop_test = test::actors_test;
SMARM_TEST_AT_1_2_8(stop_test);

// flag_on_exit raises its flag when the scope is left.
struct flag_on_exit {
  std::atomic<bool>& flag;
  ~flag_on_exit() { flag.store(true); }
};

// spawn_begun spawns and waits until the actor runs: one that is stopped before never begins.
template <class F>
auto spawn_begun(F function) {
  auto begun = std::make_shared<std::atomic<bool>>(false);
  auto handle = spawn([begun, function = std::move(function)]() mutable {
    begun->store(true);
    return function();
  });
  while (!begun->load()) yield();
  return handle;
}

// Waits without a deadline for a wake that only the given place can tell of.
void park_for_good() { (void)detail::park(detail::begin_wait(), detail::wait_reason::none); }

TEST_P(stop_test, a_parked_actor_unwinds_and_its_joiner_learns_that_it_was_stopped) {
  run([] {
    std::atomic<bool> unwound{false};
    auto parked = spawn_begun([&] {
      const flag_on_exit scope{unwound};
      park_for_good();
      FAIL() << "nobody woke it";
    });
    EXPECT_TRUE(request_stop(parked.id()).has_value());
    const auto end = parked.join();
    ASSERT_FALSE(end.has_value());
    EXPECT_TRUE(end.error().is_stopped());
    EXPECT_EQ(end.error().message(), "stopped");
    EXPECT_TRUE(unwound.load());
  });
}

TEST_P(stop_test, an_actor_stopped_before_its_first_run_never_begins) {
  run([] {
    test::ledger book;
    for (int i = 0; i < 50; ++i) {
      std::atomic<bool> passed{false};
      auto fresh = spawn([&, value = test::counted(book, i)] {
        check();
        passed.store(true);
        for (;;) yield();
      });
      fresh.request_stop();
      EXPECT_TRUE(fresh.join().error().is_stopped());
      // With others about it may have begun before the stop.
      if (schedulers() == 1) {
        EXPECT_FALSE(passed.load());
      }
      EXPECT_EQ(book.alive.load(), 0);
    }
  });
}

TEST_P(stop_test, every_stop_point_sees_it) {
  run([] {
    const auto ends_at = [](auto call) {
      auto actor = spawn_begun([&] {
        (void)request_stop(self());
        EXPECT_TRUE(stop_requested());
        call();
        ADD_FAILURE() << "went on";
      });
      EXPECT_TRUE(actor.join().error().is_stopped());
    };
    auto other = spawn([] { sleep_for(1h); });
    ends_at([] { check(); });
    ends_at([] { yield(); });
    ends_at([] { sleep_for(1h); });
    ends_at([] { sleep_for(-1h); });
    ends_at([] { sleep_until(deadline::never()); });
    ends_at([&] { (void)other.join(); });
    ends_at([&] { (void)other.join_for(0s); });
    ends_at([] { spawn([] {}).detach(); });
    ends_at([] { (void)try_spawn({}, [] {}); });
    ends_at([] { park_for_good(); });
    other.request_stop();
    EXPECT_TRUE(other.join().error().is_stopped());
  });
}

TEST_P(stop_test, a_computing_actor_goes_on_until_its_next_stop_point) {
  run([] {
    std::atomic<bool> asked{false};
    auto busy = spawn_begun([&] {
      while (!stop_requested()) {
        if (schedulers() == 1) (void)request_stop(self());
      }
      asked.store(true);
      EXPECT_TRUE(stop_requested());
      check();
    });
    busy.request_stop();
    EXPECT_TRUE(busy.join().error().is_stopped());
    EXPECT_TRUE(asked.load());
  });
}

TEST_P(stop_test, a_stop_that_catch_all_swallows_comes_back_at_the_next_stop_point) {
  run([] {
    std::atomic<int> swallowed{0};
    auto stubborn = spawn_begun([&] {
      for (int i = 0; i < 10; ++i) {
        try {
          sleep_for(1h);
        } catch (...) {
          ++swallowed;
        }
      }
      yield();
      ADD_FAILURE() << "went on";
    });
    while (!stubborn.has_ended()) {
      stubborn.request_stop();
      yield();
    }
    EXPECT_TRUE(stubborn.join().error().is_stopped());
    EXPECT_EQ(swallowed.load(), 10);
  });
}

TEST_P(stop_test, an_actor_that_swallows_the_stop_and_returns_has_ended_normally) {
  run([] {
    auto graceful = spawn_begun([] {
      try {
        sleep_for(1h);
      } catch (...) {
        return 5;
      }
      return 6;
    });
    graceful.request_stop();
    EXPECT_EQ(graceful.join().value(), 5);
  });
}

TEST_P(stop_test, handlers_for_errors_let_a_stop_pass) {
  run([] {
    auto actor = spawn_begun([] {
      try {
        sleep_for(1h);
      } catch (const std::exception&) {
        ADD_FAILURE() << "a stop is no error";
      }
    });
    actor.request_stop();
    EXPECT_TRUE(actor.join().error().is_stopped());
  });
}

TEST_P(stop_test, an_error_thrown_while_a_stop_is_pending_is_the_exit_reason) {
  run([] {
    auto actor = spawn_begun([] {
      try {
        sleep_for(1h);
      } catch (...) {
        throw std::runtime_error("cleaning up failed");
      }
    });
    actor.request_stop();
    EXPECT_EQ(actor.join().error().message(), "failed: cleaning up failed");
  });
}

// ---- held off
// ------------------------------------------------------------------------------------

TEST_P(stop_test, a_shield_lets_waits_run_to_their_end_and_the_stop_comes_after_it) {
  run([] {
    std::atomic<int> steps{0};
    auto shielded = spawn_begun([&] {
      {
        const stop_shield outer;
        {
          const stop_shield inner;
          yield();
          sleep_for(200us);
          ++steps;
        }
        sleep_for(200us);  // the inner one's end must not lift the outer one
        yield();
        check();
        EXPECT_EQ(spawn([] { return 3; }).join().value(), 3);
        ++steps;
        while (!stop_requested()) yield();
        ++steps;
      }
      ++steps;  // the shield's end is no stop point
      yield();
      ADD_FAILURE() << "went on";
    });
    shielded.request_stop();
    EXPECT_TRUE(shielded.join().error().is_stopped());
    EXPECT_EQ(steps.load(), 4);
  });
}

TEST_P(stop_test, a_stop_during_a_shielded_wait_does_not_cut_it) {
  run([] {
    auto shielded = spawn_begun([] {
      const stop_shield shield;
      // Until one of them was met by the stop, however late that comes.
      do {
        const auto begin = std::chrono::steady_clock::now();
        sleep_for(3ms);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
      } while (!stop_requested());
    });
    shielded.request_stop();
    EXPECT_TRUE(shielded.join().has_value());
  });
}

TEST_P(stop_test, a_wait_that_must_be_seen_to_its_end_is_neither_refused_nor_cut) {
  run([] {
    std::atomic<bool> cut{false};
    auto actor = spawn_begun([&] {
      (void)request_stop(self());
      const auto begin = std::chrono::steady_clock::now();
      const auto outcome = detail::park_through_stop(
          detail::begin_wait(), detail::wait_reason::blocking_job, deadline(2ms));
      cut.store(std::chrono::steady_clock::now() - begin < 2ms ||
                outcome != detail::wait_outcome::timed_out);
      check();
    });
    EXPECT_TRUE(actor.join().error().is_stopped());
    EXPECT_FALSE(cut.load());
  });
}

TEST_P(stop_test, a_destructor_may_park_while_the_actor_unwinds_and_is_not_cut) {
  run([] {
    struct parks_at_the_end {
      std::atomic<int>& done;
      ~parks_at_the_end() {
        sleep_for(300us);
        yield();
        check();
        EXPECT_EQ(spawn([] { return 1; }).join().value(), 1);
        ++done;
      }
    };
    for (const bool by_stop : {true, false}) {
      std::atomic<int> done{0};
      auto actor = spawn_begun([&] {
        const parks_at_the_end first{done};
        const parks_at_the_end second{done};
        if (by_stop) sleep_for(1h);
        throw std::runtime_error("an error of its own");
      });
      for (int i = 0; i < 40; ++i) {
        if (by_stop || i > 3) actor.request_stop();  // also while it unwinds
        sleep_for(20us);
      }
      const auto end = actor.join();
      EXPECT_EQ(end.error().is_stopped(), by_stop);
      EXPECT_EQ(done.load(), 2);
    }
  });
}

// parks_when_destroyed has a destructor that waits, with a shield of its own and without.
struct parks_when_destroyed {
  std::atomic<int>* done;
  explicit parks_when_destroyed(std::atomic<int>& count) : done(&count) {}
  parks_when_destroyed(parks_when_destroyed&& other) noexcept
      : done(std::exchange(other.done, nullptr)) {}
  ~parks_when_destroyed() {
    if (done == nullptr) return;
    {
      const stop_shield inner;
      sleep_for(50us);
    }
    sleep_for(50us);
    check();
    ++*done;
  }
};

TEST_P(stop_test, the_destructor_of_a_result_is_not_cut_by_a_stop_that_came_before_the_end) {
  std::atomic<int> done{0};
  run([&] {
    for (int i = 0; i < 10; ++i) {
      spawn([&] {
        const stop_shield see_it_through;
        (void)request_stop(self());
        return parks_when_destroyed(done);
      }).detach();
    }
  });
  EXPECT_EQ(done.load(), 10);
}

TEST_P(stop_test, the_destructor_of_a_function_that_returned_may_park_with_a_stop_pending) {
  std::atomic<int> done{0};
  run([&] {
    for (int i = 0; i < 10; ++i) {
      auto asked = spawn([held = parks_when_destroyed(done)] { (void)request_stop(self()); });
      EXPECT_TRUE(asked.join().has_value()) << "it met no stop point";
      EXPECT_EQ(done.load(), i + 1) << "the function is destroyed before the end is told";
    }
  });
}

TEST_P(stop_test, the_destructor_of_a_function_that_never_began_may_park) {
  if (schedulers() > 1) return;  // it might begin
  std::atomic<int> done{0};
  run([&] {
    auto fresh = spawn([held = parks_when_destroyed(done)] { FAIL() << "it began"; });
    fresh.request_stop();
    EXPECT_TRUE(fresh.join().error().is_stopped());
  });
  EXPECT_EQ(done.load(), 1);
}

// ---- who is there
// ----------------------------------------------------------------------------------

TEST_P(stop_test, nobody_is_found_under_a_stale_or_forged_pid) {
  runtime ours(make_config());
  ours.run([&] {
    auto gone = spawn([] {});
    const pid stale = gone.id();
    EXPECT_TRUE(gone.join().has_value());
    const pid me = self();
    std::vector<pid> nobody{stale,
                            {},
                            {me.index, 0},
                            {me.index, me.generation + 1},
                            {me.index, me.generation - 1},
                            {me.index, 0xffffffffU},
                            {0xffffffffU, 1},
                            {0xffffffffU, 0xffffffffU},
                            {1U << 26, 1},
                            {(1U << 26) - 1, me.generation}};
    std::mt19937_64 rng = make_rng();
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t dice = rng();
      const pid forged{static_cast<std::uint32_t>(dice), static_cast<std::uint32_t>(dice >> 32)};
      if (forged.index != me.index) nobody.push_back(forged);
    }
    for (const pid who : nobody) {
      const auto answer = request_stop(who);
      ASSERT_FALSE(answer.has_value()) << to_string(who);
      EXPECT_EQ(answer.error().who, who);
      EXPECT_FALSE(ours.request_stop(who).has_value());
    }
    EXPECT_FALSE(stop_requested());
    EXPECT_EQ(to_string(request_stop(stale).error()), "no such actor: " + to_string(stale));
  });
  EXPECT_FALSE(request_stop(pid{}).has_value()) << "nor from a foreign thread";
}

TEST_P(stop_test, the_handle_of_an_actor_that_has_ended_stops_nobody_else) {
  run([] {
    auto gone = spawn([] { return 1; });
    while (!gone.has_ended()) yield();
    // Whoever gets the slot next must not be hit.
    for (int i = 0; i < 100; ++i) {
      auto next = spawn([] {
        yield();
        return stop_requested();
      });
      gone.request_stop();
      EXPECT_FALSE(next.join().value());
    }
    EXPECT_EQ(gone.join().value(), 1);
  });
}

TEST_P(stop_test, an_actor_reaches_its_own_runtime_only_and_a_foreign_thread_every_one) {
  runtime other(make_config());
  std::atomic<std::uint64_t> victim{0};
  std::atomic<bool> over{false};
  std::thread host([&] {
    other.run([&] {
      const pid me = self();
      victim.store((std::uint64_t{me.generation} << 32) | me.index);
      while (!over.load()) {
        try {
          sleep_for(100us);
        } catch (...) {
          EXPECT_TRUE(over.load()) << "stopped from another runtime";
          throw;
        }
      }
    });
  });
  while (victim.load() == 0) std::this_thread::yield();
  const pid who{static_cast<std::uint32_t>(victim.load()),
                static_cast<std::uint32_t>(victim.load() >> 32)};
  runtime ours(make_config());
  ours.run([&] {
    EXPECT_FALSE(request_stop(who).has_value());
    EXPECT_FALSE(ours.request_stop(who).has_value());
  });
  EXPECT_FALSE(ours.request_stop(who).has_value());
  over.store(true);
  // It may have ended by itself by now.
  (void)request_stop(who);
  host.join();
  EXPECT_FALSE(other.request_stop(who).has_value()) << "stale";
}

TEST_P(stop_test, stop_all_reaches_every_actor_of_the_runtime_and_of_no_other) {
  runtime other(make_config());
  auto bystander = other.spawn([] { return stop_requested(); });
  runtime ours(make_config());
  std::atomic<int> stopped{0};
  ours.run([&] {
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 100; ++i) {
      all.push_back(spawn([i] {
        if (i % 2 == 0) sleep_for(1h);
        for (;;) yield();
      }));
    }
    yield();
    const stop_shield see_it_through;
    ours.stop_all();
    for (auto& each : all) {
      if (each.join().error().is_stopped()) ++stopped;
    }
    EXPECT_TRUE(stop_requested());
  });
  EXPECT_EQ(stopped.load(), 100);
  other.run([] {});
  EXPECT_FALSE(bystander.join().value());
}

// ---- storms
// ----------------------------------------------------------------------------------------

// Each round parks an actor with a deadline, and lets a stop, two wakes and the deadline meet it:
// whatever wins, the actor ends, and ends as stopped.
TEST_P(stop_test, stop_wake_and_deadline_race_and_the_stop_is_never_lost) {
  const auto count = rounds(scaled(2'000), 200'000);
  run([count] {
    std::mt19937_64 rng = make_rng(1);
    for (std::int64_t round = 0; round < count; ++round) {
      const std::uint64_t dice = rng();
      std::atomic<bool> ready{false};
      detail::waker wake_up;
      auto victim = spawn([&] {
        for (;;) {
          const detail::waker wait = detail::begin_wait();
          if (!ready.load()) {
            wake_up = wait;
            ready.store(true);
          }
          const std::chrono::nanoseconds distance(dice % 2 == 0 ? dice % 3'000 : 1'000'000'000);
          // A deadline that has passed does not park, and must not keep the others from running.
          if (detail::park(wait, detail::wait_reason::none, distance) ==
              detail::wait_outcome::timed_out) {
            yield();
          }
        }
      });
      while (!ready.load()) yield();
      auto helper = spawn([&] {
        for (std::uint64_t i = (dice >> 8) % 3; i > 0; --i) yield();
        wake_up.wake();
        wake_up.wake();
      });
      for (std::uint64_t i = (dice >> 16) % 3; i > 0; --i) yield();
      victim.request_stop();
      ASSERT_TRUE(victim.join().error().is_stopped()) << "round " << round;
      ASSERT_TRUE(helper.join().has_value());
      wake_up.wake();  // of an actor that has ended
    }
  });
}

TEST_P(stop_test, stop_from_foreign_threads_meets_parks_of_every_kind) {
  const auto count = rounds(scaled(150), 60'000);
  runtime ours(make_config());
  ours.run([&] {
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> target{0};
    std::thread stopper([&] {
      while (!over.load()) {
        const std::uint64_t bits = target.load();
        const pid who{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
        (void)request_stop(who);
        (void)ours.request_stop(who);
      }
    });
    for (std::int64_t i = 0; i < count; ++i) {
      auto victim = spawn([i] {
        for (;;) {
          if (i % 3 == 0) yield();
          if (i % 3 == 1) sleep_for(1h);
          if (i % 3 == 2) (void)spawn([] { yield(); }).join();
        }
      });
      target.store((std::uint64_t{victim.id().generation} << 32) | victim.id().index);
      EXPECT_TRUE(victim.join().error().is_stopped());
    }
    over.store(true);
    // This thread runs other actors meanwhile in vain: all have ended.
    stopper.join();
  });
  test::expect_nothing_left(ours);
}

TEST_P(stop_test, join_against_stop_of_the_joiner_leaves_the_handle_usable) {
  const auto count = rounds(scaled(300), 100'000);
  run([count] {
    for (std::int64_t i = 0; i < count; ++i) {
      std::atomic<bool> go{false};
      auto target = std::make_shared<join_handle<int>>(spawn([&] {
        while (!go.load()) yield();
        return 4;
      }));
      auto joiner = spawn([target] { return target->join().value(); });
      for (std::int64_t j = i % 4; j > 0; --j) yield();
      joiner.request_stop();
      if (i % 2 == 0) go.store(true);
      const auto end = joiner.join();
      go.store(true);
      if (end.has_value()) {
        EXPECT_EQ(*end, 4);
      } else {
        EXPECT_TRUE(end.error().is_stopped());
        ASSERT_TRUE(target->joinable());
        EXPECT_EQ(target->join().value(), 4);
      }
    }
  });
}

}  // namespace
}  // namespace smarm
