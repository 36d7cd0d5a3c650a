// Goal: nothing waits longer than it must. Timers fire however busy the schedulers are, short
// sleeps are short, an actor that computes on holds nobody up while another scheduler is free, no
// chain of wake-ups starves the queue, and a run ends as soon as its last actor does. Method: each
// situation is built and its delay measured. The machine may be busy with other work, so a limit
// has to be met by one attempt of several: what is wrong here is wrong every time.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/watchdog.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;
using test::rounds;
using test::scaled;

using prompt_test = test::actors_test;
SMARM_TEST_AT_1_2_8(prompt_test);

// thread_time is the processor time that this thread has had.
nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

// crowding is how much longer than alone a thread that computes takes at present; at least 1. The
// load tells of other threads, the measurement also of a machine that is shared or throttled.
double crowding() {
  const auto begin = clock::now();
  const nanoseconds before = thread_time();
  while (thread_time() - before < 4ms) {
  }
  const double slowness =
      std::chrono::duration<double, std::milli>(clock::now() - begin).count() / 4;
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = 0;
  return std::max({1.0, slowness, load / std::max(1U, std::thread::hardware_concurrency())});
}

// expect_once_within measures until a delay meets the limit: what is late by design is late each
// time, what a busy machine delays is not. On a crowded machine a thread waits its turn for as much
// longer as there are others, and on one where it gets next to no turns nothing can be said.
void expect_once_within(nanoseconds limit, const std::function<nanoseconds()>& measure) {
  constexpr double too_crowded = 8;
  const auto begin = clock::now();
  nanoseconds best = nanoseconds::max();
  nanoseconds allowed = limit;
  double crowd = 1;
  for (int attempt = 0; attempt < 1000 && best > allowed && clock::now() - begin < 20s; ++attempt) {
    best = std::min(best, measure());
    crowd = std::max(crowd, crowding());
    allowed = nanoseconds(static_cast<std::int64_t>(crowd * static_cast<double>(limit.count())));
  }
  if (best > allowed && crowd > too_crowded) {
    std::printf("not judged: a thread takes %.0f times as long here as alone\n", crowd);
    return;
  }
  EXPECT_LE(best.count(), allowed.count()) << "nanoseconds, at best";
}

// compute_for keeps its scheduler busy, without a stop point and without giving way.
void compute_for(nanoseconds duration) {
  const auto until = clock::now() + duration;
  while (clock::now() < until) {
  }
}

// A crew of actors that do nothing but give way, until it is stopped.
class yielders {
 public:
  explicit yielders(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      all_.push_back(spawn([] {
        for (;;) yield();
      }));
    }
  }
  ~yielders() {
    const stop_shield see_it_through;
    for (auto& each : all_) each.request_stop();
    for (auto& each : all_) {
      EXPECT_TRUE(each.join().error().is_stopped());
    }
  }

 private:
  std::vector<join_handle<void>> all_;
};

TEST_P(prompt_test, a_short_sleep_is_short) {
  run([] {
    expect_once_within(400us, [] {
      const auto begin = clock::now();
      sleep_for(200us);
      const auto took = clock::now() - begin;
      EXPECT_GE(took, 200us);
      return took - 200us;
    });
  });
}

TEST_P(prompt_test, timers_fire_while_every_scheduler_is_kept_busy_by_yielders) {
  run([] {
    const yielders crew(3 * schedulers());
    expect_once_within(2ms, [] {
      auto sleeper = spawn([] {
        const auto begin = clock::now();
        sleep_for(1ms);
        return nanoseconds(clock::now() - begin - 1ms);
      });
      const nanoseconds late = sleeper.join().value();
      EXPECT_GE(late.count(), 0);
      return late;
    });
  });
}

TEST_P(prompt_test, thousands_of_sleeps_end_on_time_though_others_park_and_wake) {
  const int each = static_cast<int>(rounds(scaled(500), 25'000));
  run([each] {
    expect_once_within(5ms, [each] {
      std::vector<join_handle<std::vector<nanoseconds>>> all;
      for (int i = 0; i < 4; ++i) {
        all.push_back(spawn([each, i] {
          std::mt19937_64 rng = test::make_rng(static_cast<std::uint64_t>(i));
          std::vector<join_handle<nanoseconds>> sleepers;
          for (int j = 0; j < each; ++j) {
            sleepers.push_back(spawn([distance = nanoseconds(rng() % 20'000'000)] {
              const auto due = clock::now() + distance;  // from its own start
              sleep_until(due);
              return nanoseconds(clock::now() - due);
            }));
          }
          std::vector<nanoseconds> late;
          for (auto& one : sleepers) late.push_back(one.join().value());
          return late;
        }));
      }
      std::vector<nanoseconds> late;
      for (auto& one : all) {
        const auto part = one.join().value();
        late.insert(late.end(), part.begin(), part.end());
      }
      EXPECT_GE(std::ranges::min(late).count(), 0) << "before its time";
      EXPECT_LE(std::ranges::max(late), 2s) << "a timer was forgotten";
      std::ranges::sort(late);
      return late[late.size() / 2];
    });
  });
}

TEST_P(prompt_test, sleeps_of_negative_length_return_at_once_and_let_others_run) {
  run([] {
    std::atomic<bool> other_ran{false};
    auto other = spawn([&] { other_ran.store(true); });
    const auto begin = clock::now();
    int turns = 0;
    for (; turns < 1000 || !other_ran.load(); ++turns) sleep_for(turns % 2 == 0 ? -1h : 0h);
    EXPECT_TRUE(other.join().has_value());
    EXPECT_LT(clock::now() - begin, 10s) << "they slept";
  });
}

TEST_P(prompt_test, an_interval_kept_by_absolute_deadlines_does_not_drift) {
  const int turns = static_cast<int>(rounds(20, 6'000));
  if (test::soaking()) test::extend_watchdog(180s);
  run([turns] {
    expect_once_within(2ms, [turns] {
      auto next = clock::now();
      nanoseconds least = nanoseconds::max();
      for (int i = 0; i < turns; ++i) {
        next += 10ms;
        compute_for(3ms);
        sleep_until(next);
        // What adds up is there in each of the last turns; a late wake is not.
        if (i >= turns * 3 / 4) least = std::min(least, nanoseconds(clock::now() - next));
      }
      return least;
    });
  });
}

// ---- one computes, the others go on
// --------------------------------------------------------------

TEST_P(prompt_test, whom_a_computing_actor_woke_runs_elsewhere_before_long) {
  if (schedulers() == 1) GTEST_SKIP() << "there is no elsewhere";
  run([] {
    expect_once_within(20ms, [] {
      auto [tx, rx] = channel<clock::time_point>();
      auto friend_of_it = spawn([rx = std::move(rx)]() mutable {
        const auto sent = rx.recv().value();
        return nanoseconds(clock::now() - sent);
      });
      sleep_for(1ms);  // now it waits
      (void)tx.send(clock::now());
      compute_for(100ms);
      return friend_of_it.join().value();
    });
  });
}

TEST_P(prompt_test, whom_a_computing_actor_spawned_and_what_it_queued_run_elsewhere_before_long) {
  if (schedulers() == 1) GTEST_SKIP() << "there is no elsewhere";
  run([] {
    expect_once_within(25ms, [] {
      const auto begin = clock::now();
      std::vector<join_handle<nanoseconds>> all;
      for (int i = 0; i < 5; ++i) {
        all.push_back(spawn([begin] { return nanoseconds(clock::now() - begin); }));
      }
      compute_for(100ms);
      nanoseconds worst{};
      for (auto& each : all) worst = std::max(worst, each.join().value());
      return worst;
    });
  });
}

TEST_P(prompt_test, with_every_scheduler_but_one_computing_timers_and_messages_go_on) {
  if (schedulers() == 1) GTEST_SKIP() << "it would be the one that computes";
  run([] {
    expect_once_within(40ms, [] {
      std::atomic<unsigned> computing{0};
      std::atomic<bool> over{false};
      std::vector<join_handle<void>> hogs;
      for (unsigned i = 1; i < schedulers(); ++i) {
        hogs.push_back(spawn([&] {
          ++computing;
          while (!over.load()) {
          }
        }));
      }
      while (computing.load() < schedulers() - 1) sleep_for(100us);
      nanoseconds worst{};
      for (int i = 0; i < 3; ++i) {
        const auto begin = clock::now();
        sleep_for(2ms);
        EXPECT_TRUE(spawn([] { yield(); }).join().has_value());
        worst = std::max(worst, nanoseconds(clock::now() - begin - 2ms));
      }
      over.store(true);
      for (auto& each : hogs) {
        EXPECT_TRUE(each.join().has_value());
      }
      return worst;
    });
  });
}

TEST_P(prompt_test, who_was_woken_by_one_that_computes_on_runs_elsewhere_each_time) {
  if (schedulers() == 1) GTEST_SKIP() << "there is nobody else";
  run([] {
    for (int round = 0; round < 30; ++round) {
      std::atomic<bool> has_run{false};
      auto [tx, rx] = channel<int>();
      auto woken = spawn([&has_run, rx = std::move(rx)]() mutable {
        EXPECT_EQ(rx.recv(), 1);
        has_run.store(true);
      });
      auto hog = spawn([&has_run, tx = std::move(tx)] {
        yield();
        EXPECT_TRUE(tx.send(1).has_value());
        while (!has_run.load()) {
        }
      });
      EXPECT_TRUE(hog.join().has_value());
      EXPECT_TRUE(woken.join().has_value());
    }
  });
}

TEST_P(prompt_test, a_timer_that_a_computing_actor_armed_for_another_is_on_time) {
  if (schedulers() == 1) GTEST_SKIP() << "nobody else could fire it";
  run([] {
    expect_once_within(20ms, [] {
      auto sleeper = spawn([] {
        const auto begin = clock::now();
        sleep_for(1ms);
        return nanoseconds(clock::now() - begin - 1ms);
      });
      yield();  // the sleeper arms its timer on this scheduler, which then computes on
      compute_for(80ms);
      return sleeper.join().value();
    });
  });
}

// ---- fairness
// ------------------------------------------------------------------------------------

// Two that wake each other without end, and one that only gives way: it must get its turns.
TEST_P(prompt_test, no_chain_of_wake_ups_starves_the_queue) {
  run([] {
    auto [to_left, left] = channel<int>();
    auto [to_right, right] = channel<int>();
    auto ping = spawn([rx = std::move(left), tx = std::move(to_right)]() mutable {
      for (;;) {
        (void)tx.send(1);
        if (!rx.recv()) return;
      }
    });
    auto pong = spawn([rx = std::move(right), tx = std::move(to_left)]() mutable {
      for (;;) {
        if (!rx.recv()) return;
        (void)tx.send(1);
      }
    });
    auto third = spawn([] {
      for (int i = 0; i < 200; ++i) yield();
    });
    EXPECT_TRUE(third.join_for(60s).has_value()) << "starved";
    ping.request_stop();
    pong.request_stop();
    (void)ping.join();
    (void)pong.join();
  });
}

TEST_P(prompt_test, yielders_get_their_turns_evenly) {
  run([] {
    constexpr int count = 8;
    std::vector<std::atomic<int>> turns(count);
    std::vector<join_handle<void>> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(spawn([&, i] {
        for (;;) {
          ++turns[static_cast<std::size_t>(i)];
          yield();
        }
      }));
    }
    const auto lowest = [&] {
      int least = turns[0].load();
      for (const auto& each : turns) least = std::min(least, each.load());
      return least;
    };
    while (lowest() < scaled(1000)) sleep_for(200us);
    for (auto& each : all) each.request_stop();
    for (auto& each : all) {
      EXPECT_TRUE(each.join().error().is_stopped());
    }
  });
}

// ---- the end
// -------------------------------------------------------------------------------------

TEST_P(prompt_test, stopping_a_long_sleeper_ends_the_run_at_once_also_with_the_root_busy) {
  expect_once_within(50ms, [] {
    clock::time_point stopped;
    run([&] {
      auto sleeper = spawn([] { sleep_for(60s); });
      compute_for(3ms);  // the other schedulers fall asleep meanwhile
      yield();
      compute_for(1ms);
      sleeper.request_stop();
      sleeper.detach();
      stopped = clock::now();
    });
    return nanoseconds(clock::now() - stopped);
  });
}

TEST_P(prompt_test, a_run_waits_for_no_timer_that_was_cancelled_or_has_fired) {
  expect_once_within(50ms, [] {
    clock::time_point last;
    run([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(spawn([] { yield(); }).join_for(1h).has_value());
        sleep_for(10us);
      }
      last = clock::now();
    });
    return nanoseconds(clock::now() - last);
  });
}

}  // namespace
}  // namespace smarm
