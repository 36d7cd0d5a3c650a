// Goal: every transition of the slot's word leaves exactly what the diagram of slot_state.hpp says,
// every refusal changes nothing, and a transition from a wrong state ends the process. Method: the
// word is driven by hand through each edge; the races between two owners of an edge are run by two
// threads that meet many times.
#include "sched/slot_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace smarm::detail {
namespace {

using unparked = slot_state::unparked;
using park_end = slot_state::park_end;
using stop_result = slot_state::stop_result;

// Runs as a death test's precondition: `state` as it is in the given state of a first actor.
void bring_to(slot_state& word, run_state state) {
  if (state == run_state::vacant) return;
  word.publish_queued();
  if (state == run_state::queued) return;
  word.try_claim();
  if (state == run_state::running) return;
  const std::uint64_t wait = word.begin_wait(false);
  if (state == run_state::notified) {
    ASSERT_EQ(word.unpark(wait), unparked::noted);
  } else {
    ASSERT_EQ(word.park_return(), park_end::parked);
  }
}

// Puts raw bits into the word, for the far ends of the counters.
void set_bits(slot_state& word, std::uint64_t bits) {
  static_assert(std::is_standard_layout_v<slot_state>);
  // SAFETY: a standard-layout class and its first member have the same address.
  reinterpret_cast<atomic<std::uint64_t>*>(&word)->store(bits, relaxed);
}

TEST(slot_state, a_new_slot_is_vacant_and_nobody_lives_in_it) {
  const slot_state word;
  EXPECT_EQ(word.status().state(), run_state::vacant);
  EXPECT_EQ(word.status().generation(), 1U);
  EXPECT_FALSE(word.is_live(1));
  EXPECT_FALSE(word.is_live(0));
}

TEST(slot_state, an_actor_goes_from_queued_to_running_to_parked_and_back) {
  slot_state word;
  word.publish_queued();
  EXPECT_EQ(word.status().state(), run_state::queued);
  EXPECT_TRUE(word.is_live(1));
  word.try_claim();
  EXPECT_EQ(word.status().state(), run_state::running);
  const std::uint64_t wait = word.begin_wait(false);
  EXPECT_EQ(word.status().state(), run_state::running);
  EXPECT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.status().state(), run_state::parked);
  EXPECT_EQ(word.unpark(wait), unparked::must_enqueue);
  EXPECT_EQ(word.status().state(), run_state::queued);
  EXPECT_NE(word.status().ticket(), wait) << "the wake ends the epoch";
  word.try_claim();
  word.yield_return();
  EXPECT_EQ(word.status().state(), run_state::queued);
  EXPECT_EQ(word.status().generation(), 1U);
}

TEST(slot_state, only_the_first_of_many_wakes_of_one_wait_acts) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.unpark(wait), unparked::must_enqueue);
  const std::uint64_t after = word.status().bits();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(word.unpark(wait), unparked::stale);
  }
  EXPECT_EQ(word.status().bits(), after) << "a stale wake changes nothing";
  word.try_claim();
  EXPECT_EQ(word.unpark(wait), unparked::stale) << "nor while the actor runs on";
  const std::uint64_t next = word.begin_wait(false);
  EXPECT_NE(next, wait);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.unpark(wait), unparked::stale) << "nor in its next wait";
  EXPECT_EQ(word.unpark(next), unparked::must_enqueue);
}

TEST(slot_state, a_wake_before_the_park_is_noted_and_the_park_does_not_happen) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t wait = word.begin_wait(false);
  EXPECT_EQ(word.unpark(wait), unparked::noted);
  EXPECT_EQ(word.status().state(), run_state::notified);
  EXPECT_EQ(word.unpark(wait), unparked::stale) << "one wake is enough";
  EXPECT_EQ(word.park_return(), park_end::must_enqueue);
  EXPECT_EQ(word.status().state(), run_state::queued);
  EXPECT_EQ(word.unpark(wait), unparked::stale);
}

TEST(slot_state, the_owner_can_take_an_early_wake_without_parking) {
  slot_state word;
  bring_to(word, run_state::running);
  EXPECT_FALSE(word.consume_notification()) << "none has come";
  const std::uint64_t wait = word.begin_wait(false);
  EXPECT_FALSE(word.consume_notification());
  ASSERT_EQ(word.unpark(wait), unparked::noted);
  EXPECT_TRUE(word.consume_notification());
  EXPECT_EQ(word.status().state(), run_state::running);
  EXPECT_FALSE(word.consume_notification()) << "taken once";
  EXPECT_EQ(word.unpark(wait), unparked::stale) << "that wait is over";
  EXPECT_NE(word.begin_wait(false), wait);
}

TEST(slot_state, a_wait_opened_anew_makes_the_ticket_before_it_stale) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t first = word.begin_wait(false);
  const std::uint64_t second = word.begin_wait(true);
  EXPECT_NE(first, second);
  EXPECT_EQ(word.unpark(first), unparked::stale);
  EXPECT_EQ(word.unpark(second), unparked::noted);
  const std::uint64_t third = word.begin_wait(true);
  EXPECT_EQ(word.status().state(), run_state::running)
      << "the wake of an abandoned wait is dropped";
  EXPECT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.unpark(second), unparked::stale);
  EXPECT_EQ(word.unpark(third), unparked::must_enqueue);
}

TEST(slot_state, tickets_that_were_never_given_out_wake_nobody) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  const std::uint64_t before = word.status().bits();
  for (const std::uint64_t forged :
       {std::uint64_t{0}, ~std::uint64_t{0}, wait + slot_word::epoch_one,
        wait - slot_word::epoch_one, wait + (std::uint64_t{1} << slot_word::generation_shift),
        wait | 1, wait | slot_word::stop_flag}) {
    EXPECT_EQ(word.unpark(forged), unparked::stale) << forged;
  }
  EXPECT_EQ(word.status().bits(), before);
}

TEST(slot_state, a_stop_is_sticky_and_wakes_a_parked_actor_once) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.request_stop(1), stop_result::must_enqueue);
  EXPECT_EQ(word.status().state(), run_state::queued);
  EXPECT_TRUE(word.status().stop_requested());
  EXPECT_EQ(word.unpark(wait), unparked::stale) << "the stop has ended that wait";
  EXPECT_EQ(word.request_stop(1), stop_result::requested);
  word.try_claim();
  EXPECT_TRUE(word.peek().stop_requested());
  word.yield_return();
  word.try_claim();
  EXPECT_TRUE(word.peek().stop_requested()) << "no transition of a live actor clears it";
}

TEST(slot_state, a_stop_of_a_queued_or_running_actor_enqueues_nobody_and_refuses_the_next_park) {
  slot_state word;
  word.publish_queued();
  EXPECT_EQ(word.request_stop(1), stop_result::requested);
  EXPECT_EQ(word.status().state(), run_state::queued);
  word.try_claim();
  const std::uint64_t wait = word.begin_wait(false);
  EXPECT_EQ(word.park_return(), park_end::must_enqueue) << "a stopped actor does not park";
  EXPECT_EQ(word.unpark(wait), unparked::stale);
}

TEST(slot_state, a_shield_keeps_a_stop_from_waking_and_from_refusing_the_park) {
  slot_state word;
  bring_to(word, run_state::running);
  word.set_shield();
  std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.request_stop(1), stop_result::requested);
  EXPECT_EQ(word.status().state(), run_state::parked);
  EXPECT_EQ(word.unpark(wait), unparked::must_enqueue) << "the wait is still the same one";
  word.try_claim();
  wait = word.begin_wait(false);
  EXPECT_EQ(word.park_return(), park_end::parked) << "pending and shielded: it may park";
  ASSERT_EQ(word.unpark(wait), unparked::must_enqueue);
  word.try_claim();
  word.clear_shield();
  EXPECT_TRUE(word.peek().stop_requested());
  EXPECT_FALSE(word.peek().is_shielded());
  (void)word.begin_wait(false);
  EXPECT_EQ(word.park_return(), park_end::must_enqueue) << "the shield has gone";
}

TEST(slot_state, stops_by_a_wrong_generation_are_refused_in_every_state) {
  for (const run_state state : {run_state::vacant, run_state::queued, run_state::running,
                                run_state::notified, run_state::parked}) {
    slot_state word;
    bring_to(word, state);
    const std::uint64_t before = word.status().bits();
    for (const std::uint32_t forged : {0U, 2U, 77U, slot_word::generation_max, 0xffffffffU}) {
      EXPECT_EQ(word.request_stop(forged), stop_result::no_such_actor);
      EXPECT_FALSE(word.is_live(forged));
    }
    if (state == run_state::vacant) {
      EXPECT_EQ(word.request_stop(1), stop_result::no_such_actor);
    }
    EXPECT_EQ(word.status().bits(), before);
  }
}

TEST(slot_state, a_done_actor_is_found_by_nobody_though_it_may_still_park) {
  slot_state word;
  bring_to(word, run_state::running);
  word.set_done();
  EXPECT_FALSE(word.is_live(1));
  EXPECT_EQ(word.request_stop(1), stop_result::no_such_actor);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.request_stop(1), stop_result::no_such_actor);
  EXPECT_EQ(word.unpark(wait), unparked::must_enqueue) << "its own waits go on to work";
  word.try_claim();
  EXPECT_TRUE(word.reclaim());
  EXPECT_EQ(word.status().state(), run_state::vacant);
  EXPECT_EQ(word.status().generation(), 2U);
}

TEST(slot_state, a_stop_before_the_end_does_not_cut_the_waits_of_a_done_actor) {
  slot_state word;
  bring_to(word, run_state::running);
  ASSERT_EQ(word.request_stop(1), stop_result::requested);
  word.set_done();
  (void)word.begin_wait(false);
  EXPECT_EQ(word.park_return(), park_end::parked) << "done shields";
}

TEST(slot_state, the_next_actor_of_a_slot_starts_without_the_flags_and_epoch_of_the_last) {
  slot_state word;
  bring_to(word, run_state::running);
  const std::uint64_t old_wait = word.begin_wait(false);
  ASSERT_EQ(word.request_stop(1), stop_result::requested);
  word.set_done();
  ASSERT_TRUE(word.reclaim());
  word.publish_queued();
  EXPECT_EQ(word.status().generation(), 2U);
  EXPECT_FALSE(word.status().stop_requested());
  EXPECT_FALSE(word.status().is_shielded());
  EXPECT_TRUE(word.is_live(2));
  EXPECT_FALSE(word.is_live(1)) << "the pid of the last one is stale";
  EXPECT_EQ(word.request_stop(1), stop_result::no_such_actor);
  word.try_claim();
  EXPECT_EQ(word.unpark(old_wait), unparked::stale);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.park_return(), park_end::parked);
  EXPECT_EQ(word.unpark(old_wait), unparked::stale);
  EXPECT_EQ(word.unpark(wait), unparked::must_enqueue);
}

TEST(slot_state, a_slot_whose_generations_are_used_up_is_retired) {
  slot_state word;
  set_bits(word, slot_word::make(slot_word::generation_max, run_state::vacant).bits());
  word.publish_queued();
  EXPECT_TRUE(word.is_live(slot_word::generation_max));
  word.try_claim();
  word.set_done();
  EXPECT_FALSE(word.reclaim()) << "not to be used again";
  EXPECT_EQ(word.status().generation(), 0U) << "and no pid matches it any more";
  EXPECT_FALSE(word.is_live(slot_word::generation_max));
  EXPECT_FALSE(word.is_live(0));
  EXPECT_EQ(word.request_stop(0), stop_result::no_such_actor);
}

TEST(slot_state, an_epoch_wraps_within_its_field) {
  slot_state word;
  const slot_word start = slot_word::make(5, run_state::running);
  set_bits(word, start.bits() | slot_word::epoch_mask);
  const std::uint64_t wait = word.begin_wait(false);
  ASSERT_EQ(word.unpark(wait), unparked::noted);
  ASSERT_TRUE(word.consume_notification());
  EXPECT_EQ(word.status().bits(), start.bits()) << "neither generation nor flags are touched";
}

// ---- broken preconditions ----------------------------------------------------------------------

using slot_state_death_test = ::testing::TestWithParam<run_state>;

std::string state_name(const ::testing::TestParamInfo<run_state>& info) {
  constexpr const char* names[] = {"vacant", "queued", "running", "notified", "parked"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(states, slot_state_death_test,
                         ::testing::Values(run_state::vacant, run_state::queued, run_state::running,
                                           run_state::notified, run_state::parked),
                         state_name);

TEST_P(slot_state_death_test, each_transition_refuses_to_start_from_a_state_that_is_not_its_own) {
  const run_state from = GetParam();
  slot_state word;
  bring_to(word, from);
  const bool on_stack = from == run_state::running || from == run_state::notified;
  if (from != run_state::vacant) {
    EXPECT_DEATH(word.publish_queued(), "only a vacant slot");
  }
  if (from != run_state::queued) {
    EXPECT_DEATH(word.try_claim(), "only a queued actor");
  }
  if (!on_stack) {
    EXPECT_DEATH(word.yield_return(), "only a running actor yields");
    EXPECT_DEATH((void)word.park_return(), "only a running actor parks");
    EXPECT_DEATH(word.set_done(), "only a running actor ends");
  }
  EXPECT_DEATH((void)word.reclaim(), "only a done actor");
}

// ---- races --------------------------------------------------------------------------------------

constexpr int meetings = 4'000;

// Lets `body(round)` of two threads meet `meetings` times, as close together as spinning gets them,
// or as often as two seconds allow: where the CPUs are busy each meeting waits for turns.
template <class Left, class Right, class After>
void meet(Left&& left, Right&& right, After&& after) {
  std::atomic<int> turn{0};
  std::atomic<int> done{0};
  std::atomic<int> last{meetings};
  const std::int64_t until = monotonic_ns() + 2 * ns_per_second;
  std::thread other([&] {
    for (int round = 1; round <= last.load(); ++round) {
      while (turn.load() < round) std::this_thread::yield();
      right(round);
      done.store(round);
    }
  });
  for (int round = 1; round <= last.load(); ++round) {
    if (monotonic_ns() > until) last.store(round);
    turn.store(round);
    left(round);
    while (done.load() < round) std::this_thread::yield();
    after(round);
  }
  other.join();
}

TEST(slot_state_race, a_wake_and_a_park_leave_the_actor_queued_exactly_once) {
  slot_state word;
  bring_to(word, run_state::running);
  std::atomic<std::uint64_t> wait{word.begin_wait(false)};
  std::atomic<int> enqueued{0};
  meet(
      [&](int) {
        if (word.park_return() == park_end::must_enqueue) ++enqueued;
      },
      [&](int) {
        const unparked result = word.unpark(wait.load());
        ASSERT_NE(result, unparked::stale);
        if (result == unparked::must_enqueue) ++enqueued;
      },
      [&](int round) {
        ASSERT_EQ(enqueued.load(), round);
        word.try_claim();
        wait.store(word.begin_wait(false));
      });
}

TEST(slot_state_race, of_two_wakes_and_a_stop_exactly_one_enqueues) {
  for (int i = 0; i < 1000; ++i) {
    slot_state word;
    bring_to(word, run_state::running);
    const std::uint64_t wait = word.begin_wait(false);
    ASSERT_EQ(word.park_return(), park_end::parked);
    std::atomic<int> enqueued{0};
    std::atomic<bool> go{false};
    std::thread other([&] {
      while (!go.load()) std::this_thread::yield();
      if (word.unpark(wait) == unparked::must_enqueue) ++enqueued;
    });
    go.store(true);
    if (word.request_stop(1) == stop_result::must_enqueue) ++enqueued;
    if (word.unpark(wait) == unparked::must_enqueue) ++enqueued;
    other.join();
    ASSERT_EQ(enqueued.load(), 1);
    ASSERT_EQ(word.status().state(), run_state::queued);
    ASSERT_TRUE(word.status().stop_requested());
  }
}

TEST(slot_state_race, a_stop_meets_the_end_and_either_is_taken_or_finds_nobody) {
  slot_state word;
  std::atomic<std::uint32_t> generation{1};
  bring_to(word, run_state::running);
  meet(
      [&](int) {
        word.set_done();
        ASSERT_TRUE(word.reclaim());
      },
      [&](int) {
        const stop_result result = word.request_stop(generation.load());
        ASSERT_NE(result, stop_result::must_enqueue);
      },
      [&](int) {
        ASSERT_EQ(word.status().bits(),
                  slot_word::make(generation.load() + 1, run_state::vacant).bits())
            << "the stop of the last actor has not leaked into the next";
        ++generation;
        word.publish_queued();
        word.try_claim();
      });
}

}  // namespace
}  // namespace smarm::detail
