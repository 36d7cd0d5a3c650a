// Goal: a permit is never lost and never counted twice; park returns at the unpark or at the
// deadline, not before. Method: each order of the two calls by hand, then many meetings of two
// threads where a lost permit would hang.
#include "sched/parker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace smarm::detail {
namespace {

constexpr std::int64_t ms = 1'000'000;

TEST(parker, an_unpark_before_the_park_is_kept) {
  parker place;
  place.unpark();
  EXPECT_TRUE(place.park(never_ns));
}

TEST(parker, permits_do_not_add_up) {
  parker place;
  place.unpark();
  place.unpark();
  place.unpark();
  EXPECT_TRUE(place.park(never_ns));
  EXPECT_FALSE(place.park(monotonic_ns() + ms));
}

TEST(parker, a_park_without_a_permit_ends_at_its_deadline_and_not_before) {
  parker place;
  const std::int64_t until = monotonic_ns() + 3 * ms;
  EXPECT_FALSE(place.park(until));
  EXPECT_GE(monotonic_ns(), until);
  place.unpark();
  EXPECT_TRUE(place.park(monotonic_ns() + 60'000 * ms)) << "a timeout leaves the place in order";
}

TEST(parker, a_deadline_that_has_passed_still_takes_a_permit_that_is_there) {
  parker place;
  EXPECT_FALSE(place.park(monotonic_ns() - ms));
  EXPECT_FALSE(place.park(0));
  place.unpark();
  EXPECT_TRUE(place.park(0));
}

TEST(parker, an_unpark_wakes_the_sleeping_thread_and_publishes_what_was_written_before) {
  parker place;
  int value = 0;
  std::thread waker([&] {
    value = 42;
    place.unpark();
  });
  EXPECT_TRUE(place.park(never_ns));
  EXPECT_EQ(value, 42);
  waker.join();
}

TEST(parker, no_permit_is_lost_between_two_threads_that_park_and_unpark_in_turns) {
  parker left;
  parker right;
  constexpr int rounds = 20'000;
  int counter = 0;  // handed over by the permits alone
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      right.park(never_ns);
      ++counter;
      left.unpark();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    right.unpark();
    left.park(never_ns);
  }
  other.join();
  EXPECT_EQ(counter, rounds);
}

TEST(parker, a_permit_that_meets_the_deadline_is_either_taken_or_left_for_the_next_park) {
  parker place;
  constexpr int rounds = 3'000;
  std::atomic<int> turn{0};
  std::thread waker([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (turn.load() < i) std::this_thread::yield();
      const std::int64_t until = monotonic_ns() + (i % 60) * 1'000;
      while (monotonic_ns() < until) {
      }
      place.unpark();
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    turn.store(i);
    // Exactly one permit comes a round: had it been lost, the second park would never return.
    if (!place.park(monotonic_ns() + 30'000)) {
      EXPECT_TRUE(place.park(never_ns));
    }
    EXPECT_FALSE(place.park(0)) << "and it was one";
  }
  waker.join();
}

}  // namespace
}  // namespace smarm::detail
