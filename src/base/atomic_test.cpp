// Goal: the hand-written fence orders a store before a later load, as the standard one does.
// Method: the store-buffer litmus test. Without the fence it fails within a fraction of the rounds
// on any machine with store buffers.
#include "base/atomic.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "base/asymmetric_fence.hpp"
#include "base/clock.hpp"

namespace smarm::detail {
namespace {

TEST(fence, keeps_two_threads_from_both_missing_the_others_store) {
  // LIMIT: rounds, and time: on a busy machine a meeting waits for a turn on the processor.
  constexpr int rounds_max = 200'000;
  const std::int64_t until_ns = monotonic_ns() + ns_per_second;
  struct alignas(64) line {
    atomic<int> value{0};
  };
  line left, right, gate, seen_left, last_round;
  int both_missed = 0;
  const auto meet = [&](int meeting) {
    gate.value.fetch_add(1, acq_rel);  // pairs with the load below: what came before is seen after
    for (int spins = 0; gate.value.load(acquire) < 2 * meeting; ++spins) {
      if (spins < 1000) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread other([&] {
    // Relaxed, here and below: meet() orders it. The other side names the last round before that
    // round's first meeting, so both end after the same one.
    for (int round = 1;; ++round) {
      meet(2 * round - 1);
      right.value.store(round, relaxed);  // ordered by the fence below
      fence(seq_cst);
      seen_left.value.store(left.value.load(relaxed), relaxed);
      meet(2 * round);
      if (last_round.value.load(relaxed) == round) {
        break;
      }
    }
  });
  for (int round = 1; last_round.value.load(relaxed) == 0; ++round) {
    if (round == rounds_max || (round % 64 == 0 && monotonic_ns() > until_ns)) {
      last_round.value.store(round, relaxed);
    }
    meet(2 * round - 1);
    left.value.store(round, relaxed);  // ordered by the fence below
    fence(seq_cst);
    const int seen_right = right.value.load(relaxed);  // the litmus load
    meet(2 * round);
    both_missed += seen_right != round && seen_left.value.load(relaxed) != round ? 1 : 0;
  }
  other.join();
  EXPECT_EQ(both_missed, 0);
}

// The same story by an asymmetric fence; the light side goes on alone between two heavy ones.
TEST(asymmetric_fence, of_a_light_and_a_heavy_one_one_side_sees_the_other) {
  prepare_asymmetric_fences();
  constexpr int rounds = 20'000;
  alignas(64) atomic<int> mine{0};
  alignas(64) atomic<int> theirs{0};
  // What the light side saw of the other in each of its rounds, published behind the round.
  std::vector<atomic<int>> seen(rounds + 1);
  atomic<int> light_round{0};
  atomic<bool> over{false};
  std::thread light([&] {
    for (int round = 1; !over.load(relaxed) && round <= rounds; ++round) {
      mine.store(round, relaxed);
      fence_light();
      seen[static_cast<std::size_t>(round)].store(theirs.load(relaxed), relaxed);
      light_round.store(round, release);
    }
  });
  int both_missed = 0;
  int heavies = 0;
  while (light_round.load(acquire) < rounds) {
    theirs.store(++heavies, relaxed);
    EXPECT_TRUE(fence_heavy());
    const int last = mine.load(relaxed);
    // A round that this side has not seen came later, so it saw what was written here.
    if (last == rounds) break;
    while (light_round.load(acquire) <= last) pause();
    both_missed += seen[static_cast<std::size_t>(last + 1)].load(relaxed) < heavies ? 1 : 0;
  }
  over.store(true, relaxed);
  light.join();
  EXPECT_GT(heavies, 0);
  EXPECT_EQ(both_missed, 0);
}

}  // namespace
}  // namespace smarm::detail
