// Goal: each of the run queues hands out every entry exactly once and never loses one, grows
// while it is in use, is as fair as it says, and never looks empty to whoever must not miss what is
// in it. Method: the same tests for all kinds; entries are slots that are nobody's actors,
// and a byte per slot catches a double.
#include "sched/run_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {
namespace {

std::string kind_name(const ::testing::TestParamInfo<run_queue_kind>& info) {
  constexpr const char* names[] = {"locked", "mpmc", "striped", "local"};
  return names[static_cast<int>(info.param)];
}

class run_queue_test : public ::testing::TestWithParam<run_queue_kind> {
 protected:
  static std::unique_ptr<slot[]> make_slots(std::uint32_t count) {
    auto slots = std::make_unique<slot[]>(count);
    for (std::uint32_t i = 0; i < count; ++i) slots[i].index = i;
    return slots;
  }
};
INSTANTIATE_TEST_SUITE_P(kinds, run_queue_test,
                         ::testing::Values(run_queue_kind::locked, run_queue_kind::mpmc,
                                           run_queue_kind::striped, run_queue_kind::local),
                         kind_name);

TEST_P(run_queue_test, an_empty_queue_gives_nothing) {
  run_queue queue(GetParam(), 3, 3, 16);
  EXPECT_TRUE(queue.looks_empty());
  queue.reserve(8);
  EXPECT_TRUE(queue.looks_empty());
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(queue.pop(i, i).first, nullptr);
  }
}

TEST_P(run_queue_test, one_schedulers_entries_come_out_in_the_order_in_which_they_went_in) {
  run_queue queue(GetParam(), 4, 4, 64);
  queue.reserve(64);
  const auto slots = make_slots(64);
  for (std::uint32_t lap = 0; lap < 50; ++lap) {
    const std::uint32_t count = 1 + lap * 13 % 64;
    for (std::uint32_t i = 0; i < count; ++i) queue.push(2, slots[i]);
    EXPECT_FALSE(queue.looks_empty());
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(queue.pop(2, 1).first, &slots[i]) << "lap " << lap;
    }
    EXPECT_TRUE(queue.looks_empty());
    EXPECT_EQ(queue.pop(2, 1).first, nullptr);
  }
}

TEST_P(run_queue_test, holds_as_many_entries_as_were_reserved) {
  run_queue queue(GetParam(), 2, 2, 1000);
  queue.reserve(1000);
  const auto slots = make_slots(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) queue.push(0, slots[i]);
  std::vector<int> seen(1000, 0);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    slot* const entry = queue.pop(0, 1).first;
    ASSERT_NE(entry, nullptr);
    ++seen[entry->index];
  }
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
  EXPECT_TRUE(queue.looks_empty());
}

TEST_P(run_queue_test, whatever_anybody_pushed_anybody_finds) {
  run_queue queue(GetParam(), 8, 8, 64);
  queue.reserve(64);
  const auto slots = make_slots(64);
  for (unsigned pusher = 0; pusher < 8; ++pusher) {
    for (unsigned popper = 0; popper < 8; ++popper) {
      queue.push(pusher, slots[pusher]);
      EXPECT_FALSE(queue.looks_empty());
      ASSERT_EQ(queue.pop(popper, pusher * 7 + popper).first, &slots[pusher]);
      EXPECT_TRUE(queue.looks_empty());
      queue.push_from_outside(slots[pusher]);
      EXPECT_FALSE(queue.looks_empty());
      ASSERT_EQ(queue.pop(popper, pusher * 7 + popper).first, &slots[pusher]);
      EXPECT_TRUE(queue.looks_empty());
    }
  }
}

// Each thread pops an entry, marks it as held, and pushes it again, through many laps of the ring.
TEST_P(run_queue_test, four_threads_never_hold_the_same_entry_and_none_is_lost) {
  constexpr std::uint32_t count = 24;
  constexpr int laps = 30'000;
  constexpr unsigned threads = 4;
  run_queue queue(GetParam(), threads, threads, count);
  queue.reserve(count);
  const auto slots = make_slots(count);
  const auto held = std::make_unique<std::atomic<int>[]>(count);
  for (std::uint32_t i = 0; i < count; ++i) queue.push(i % threads, slots[i]);
  std::atomic<int> doubles{0};
  std::vector<std::thread> workers;
  for (unsigned me = 0; me < threads; ++me) {
    workers.emplace_back([&, me] {
      for (std::uint32_t i = 0; i < laps; ++i) {
        slot* const entry = queue.pop(me, i).first;
        if (entry == nullptr) {
          std::this_thread::yield();
          continue;
        }
        if (held[entry->index].fetch_add(1) != 0) ++doubles;
        held[entry->index].fetch_sub(1);
        queue.push(me, *entry);
      }
    });
  }
  for (std::thread& each : workers) each.join();
  EXPECT_EQ(doubles.load(), 0);
  std::vector<int> seen(count, 0);
  while (slot* const entry = queue.pop(0, 0).first) ++seen[entry->index];
  EXPECT_EQ(seen, std::vector<int>(count, 1)) << "each is still there, once";
  EXPECT_TRUE(queue.looks_empty());
}

TEST_P(run_queue_test, grows_under_traffic) {
  constexpr std::uint32_t count = 6'000;
  constexpr unsigned threads = 3;
  run_queue queue(GetParam(), threads, threads, count);
  const auto slots = make_slots(count);
  std::atomic<bool> over{false};
  std::vector<std::thread> workers;
  for (unsigned me = 0; me < threads; ++me) {
    workers.emplace_back([&, me] {
      for (std::uint32_t i = 0; !over.load(); ++i) {
        if (slot* const entry = queue.pop(me, i).first) queue.push(me, *entry);
      }
    });
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    queue.reserve(i + 1);
    queue.push_from_outside(slots[i]);
  }
  over.store(true);
  for (std::thread& each : workers) each.join();
  std::vector<int> seen(count, 0);
  while (slot* const entry = queue.pop(0, 0).first) ++seen[entry->index];
  EXPECT_EQ(seen, std::vector<int>(count, 1));
}

// The producer publishes, fences, and asks whether anybody sleeps; the sleeper says so, fences, and
// looks. Both missing each other is what the queue must not add to.
TEST_P(run_queue_test, what_was_pushed_before_a_fence_does_not_look_empty_behind_one) {
  // As many rounds as the time allows: each takes two turns of two threads, which may be any time
  // where the CPUs are busy.
  const std::int64_t until = monotonic_ns() + 2 * ns_per_second;
  run_queue queue(GetParam(), 2, 2, 4);
  queue.reserve(4);
  const auto slots = make_slots(1);
  std::atomic<int> turn{0};
  std::atomic<int> done{0};
  std::atomic<bool> sleeps{false};
  std::atomic<int> rounds{20'000};
  bool producer_saw = false;
  std::thread producer([&] {
    for (int i = 1; i <= rounds.load(); ++i) {
      while (turn.load() < i) std::this_thread::yield();
      queue.push(1, slots[0]);
      fence(seq_cst);
      producer_saw = sleeps.load(std::memory_order_relaxed);
      done.store(i);
    }
  });
  for (int i = 1; i <= rounds.load(); ++i) {
    if (monotonic_ns() > until) rounds.store(i);
    turn.store(i);
    sleeps.store(true, std::memory_order_relaxed);
    fence(seq_cst);
    const bool sleeper_saw = !queue.looks_empty();
    while (done.load() < i) std::this_thread::yield();
    ASSERT_TRUE(producer_saw || sleeper_saw) << "a lost wake-up in round " << i;
    sleeps.store(false);
    ASSERT_EQ(queue.pop(0, 1).first, &slots[0]);
  }
  producer.join();
}

TEST(striped_queue, an_entry_of_a_busy_scheduler_is_found_within_a_few_fairness_rounds) {
  constexpr unsigned schedulers = 8;
  run_queue queue(run_queue_kind::striped, schedulers, schedulers, 64);
  queue.reserve(64);
  const auto slots = std::make_unique<slot[]>(3);
  // The owner of stripe 5 computes; the owner of stripe 0 is never out of work of its own.
  queue.push(5, slots[0]);
  queue.push(0, slots[1]);
  queue.push(0, slots[2]);
  std::uint32_t tick = 1;
  for (; tick < 61 * schedulers * 2; ++tick) {
    slot* const next = queue.pop(0, tick).first;
    ASSERT_NE(next, nullptr);
    if (next == &slots[0]) break;
    queue.push(0, *next);
  }
  EXPECT_LE(tick, 61U * schedulers) << "one round over all stripes at the most";
}

// A thousand on one scheduler is more than its ring holds: what waits outside of it gets its turn.
TEST(local_queue, many_who_run_again_and_again_all_have_about_as_many_turns) {
  constexpr std::uint32_t count = 1'000;
  run_queue queue(run_queue_kind::local, 1, 1, count);
  queue.reserve(count);
  const auto slots = std::make_unique<slot[]>(count);
  std::vector<int> turns(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    slots[i].index = i;
    queue.push(0, slots[i]);
  }
  for (std::uint32_t tick = 1; tick <= 200 * count; ++tick) {
    slot* const next = queue.pop(0, tick).first;
    ASSERT_NE(next, nullptr);
    ++turns[next->index];
    queue.push(0, *next);
  }
  const auto [least, most] = std::minmax_element(turns.begin(), turns.end());
  EXPECT_GT(*least, 100);
  EXPECT_LT(*most, 400);
}

TEST(local_queue, what_comes_from_outside_is_not_kept_waiting_by_what_goes_round) {
  run_queue queue(run_queue_kind::local, 2, 2, 64);
  queue.reserve(64);
  const auto slots = std::make_unique<slot[]>(3);
  queue.push(0, slots[0]);
  queue.push(0, slots[1]);
  queue.push_from_outside(slots[2]);
  std::uint32_t tick = 1;
  for (; tick <= 200; ++tick) {
    slot* const next = queue.pop(0, tick).first;
    ASSERT_NE(next, nullptr);
    if (next == &slots[2]) break;
    queue.push(0, *next);
  }
  EXPECT_LE(tick, 122U) << "two looks at the injector at the most";
}

TEST(local_queue, a_scheduler_without_work_takes_half_of_what_another_has_and_says_so) {
  run_queue queue(run_queue_kind::local, 3, 3, 64);
  queue.reserve(64);
  const auto slots = std::make_unique<slot[]>(9);
  for (int i = 0; i < 9; ++i) queue.push(2, slots[i]);
  const run_queue::popped first = queue.pop(0, 1);
  EXPECT_EQ(first.first, &slots[0]);
  EXPECT_TRUE(first.moved);
  for (int i = 1; i < 5; ++i) {
    const run_queue::popped mine = queue.pop(0, 1);
    EXPECT_EQ(mine.first, &slots[i]);
    EXPECT_FALSE(mine.moved);
    EXPECT_EQ(queue.pop(2, 1).first, &slots[i + 4]);
  }
  EXPECT_TRUE(queue.looks_empty());
  queue.push(2, slots[0]);
  EXPECT_FALSE(queue.pop(1, 1).moved) << "one alone is not moved but run";
}

TEST(local_queue, the_newest_comes_first_where_it_is_asked_for) {
  for (const unsigned schedulers : {1U, 2U}) {
    run_queue queue(run_queue_kind::local, schedulers, schedulers, 8);
    queue.reserve(8);
    const auto slots = std::make_unique<slot[]>(4);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(0, slots[i]));
    EXPECT_EQ(queue.pop_newest(0), &slots[2]);
    EXPECT_EQ(queue.pop(0, 1).first, &slots[0]);
    EXPECT_TRUE(queue.push(0, slots[3]));
    EXPECT_EQ(queue.pop_newest(0), &slots[3]);
    EXPECT_EQ(queue.pop_newest(0), &slots[1]);
    EXPECT_EQ(queue.pop_newest(0), nullptr);
    EXPECT_TRUE(queue.looks_empty());
  }
}

TEST(local_queue, an_older_one_is_taken_only_from_below_the_newest) {
  run_queue queue(run_queue_kind::local, 1, 1, 8);
  queue.reserve(8);
  const auto slots = std::make_unique<slot[]>(3);
  for (int i = 0; i < 3; ++i) queue.push(0, slots[i]);
  EXPECT_EQ(queue.pop_older(0, 3), nullptr);
  EXPECT_EQ(queue.pop_older(0, 2), &slots[0]);
  EXPECT_EQ(queue.pop_older(0, 2), nullptr);
}

TEST(local_queue, the_turns_come_to_the_overflow_to_the_rings_of_others_and_to_the_own_oldest) {
  constexpr int count = 257;
  run_queue queue(run_queue_kind::local, 2, 2, count + 1);
  queue.reserve(count + 1);
  const auto slots = std::make_unique<slot[]>(count + 1);
  for (int i = 0; i < count; ++i) queue.push(0, slots[i]);
  queue.push(1, slots[count]);
  EXPECT_EQ(queue.pop_in_turn(0, 3), &slots[0]) << "of the overflow";
  EXPECT_EQ(queue.pop_in_turn(0, 4), &slots[count]) << "of the other's ring";
  EXPECT_EQ(queue.pop_in_turn(0, 5), &slots[128]) << "of the own one";
  EXPECT_EQ(queue.pop_in_turn(0, 10), &slots[129]) << "where the other has none";
}

TEST(local_queue,
     who_has_run_leaves_a_full_ring_for_the_injector_and_who_has_not_for_the_overflow) {
  constexpr int count = 257;
  run_queue queue(run_queue_kind::local, 1, 1, count);
  queue.reserve(count);
  const auto slots = std::make_unique<slot[]>(count);
  slots[3].has_started = true;
  slots[200].has_started = true;
  for (int i = 0; i < count - 1; ++i) EXPECT_TRUE(queue.push(0, slots[i]));
  EXPECT_FALSE(queue.push(0, slots[count - 1])) << "it is not in the ring";
  EXPECT_EQ(queue.pop_injector(), &slots[3]);
  EXPECT_EQ(queue.pop_injector(), nullptr);
  EXPECT_EQ(queue.pop_in_turn(0, 0), &slots[0]);
  int left = 0;
  while (queue.pop(0, 1).first != nullptr) ++left;
  EXPECT_EQ(left, count - 2);
}

// The owner takes the newest and puts it back, through many laps of the positions, while three
// thieves take halves and give them back from outside.
TEST(local_queue, thieves_and_an_owner_that_takes_the_newest_never_hold_the_same_entry) {
  constexpr std::uint32_t count = 24;
  constexpr int laps = 100'000;
  constexpr unsigned threads = 4;
  run_queue queue(run_queue_kind::local, threads, threads, count);
  queue.reserve(count);
  const auto slots = std::make_unique<slot[]>(count);
  const auto held = std::make_unique<std::atomic<int>[]>(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    slots[i].index = i;
    queue.push(0, slots[i]);
  }
  std::atomic<int> doubles{0};
  std::vector<std::thread> workers;
  for (unsigned me = 0; me < threads; ++me) {
    workers.emplace_back([&, me] {
      for (std::uint32_t i = 1; i < laps; ++i) {
        slot* entry = me == 0 ? queue.pop_newest(0) : nullptr;
        if (entry == nullptr) entry = queue.pop(me, i).first;
        if (entry == nullptr) {
          std::this_thread::yield();
          continue;
        }
        if (held[entry->index].fetch_add(1) != 0) ++doubles;
        held[entry->index].fetch_sub(1);
        if (me == 0) {
          queue.push(0, *entry);
        } else {
          queue.push_from_outside(*entry);
        }
      }
    });
  }
  for (std::thread& each : workers) each.join();
  EXPECT_EQ(doubles.load(), 0);
  std::vector<int> seen(count, 0);
  while (slot* const entry = queue.pop(0, 0).first) ++seen[entry->index];
  EXPECT_EQ(seen, std::vector<int>(count, 1)) << "each is still there, once";
}

TEST(local_queue, a_ring_that_is_full_gives_its_older_half_away) {
  constexpr int count = 257;
  run_queue queue(run_queue_kind::local, 2, 2, count);
  queue.reserve(count);
  const auto slots = std::make_unique<slot[]>(count);
  for (int i = 0; i < count; ++i) queue.push(0, slots[i]);
  EXPECT_EQ(queue.pop(1, 1).first, &slots[0]) << "the overflow has the oldest";
  EXPECT_EQ(queue.pop(0, 1).first, &slots[128]) << "the ring goes on where they ended";
}

TEST(locked_ring_death_test, a_push_beyond_what_was_reserved_ends_the_process) {
  run_queue queue(run_queue_kind::locked, 1, 1, 1024);
  const auto slots = std::make_unique<slot[]>(300);
  EXPECT_DEATH(queue.push(0, slots[0]), "a run queue has room for every actor") << "none reserved";
  EXPECT_DEATH(
      {
        queue.reserve(1);
        for (std::uint32_t i = 0; i < 300; ++i) queue.push(0, slots[i]);
      },
      "a run queue has room for every actor");
}

}  // namespace
}  // namespace smarm::detail
