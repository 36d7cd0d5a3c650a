// Goal: the hand-written fence orders a store before a later load, as the standard one does.
// Method: the store-buffer litmus test. Without the fence it fails within a fraction of the rounds
// on any machine with store buffers.
#include "base/atomic.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace smarm::detail {
namespace {

TEST(fence, keeps_two_threads_from_both_missing_the_others_store) {
#ifdef SMARM_THREAD_SANITIZER
  constexpr int rounds = 2'000;
#else
  constexpr int rounds = 200'000;
#endif
  struct alignas(64) line {
    atomic<int> value{0};
  };
  line left, right, gate, seen_left;
  int both_missed = 0;
  const auto meet = [&](int round) {
    gate.value.fetch_add(1, acq_rel);  // pairs with the other side's: the round has begun
    while (gate.value.load(acquire) < 2 * round) {
      pause();
    }
  };
  std::thread other([&] {
    for (int round = 1; round <= rounds; ++round) {
      meet(2 * round - 1);
      right.value.store(round, relaxed);  // ordered by the fence below
      fence(seq_cst);
      seen_left.value.store(left.value.load(relaxed), relaxed);  // published by meet()
      meet(2 * round);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    meet(2 * round - 1);
    left.value.store(round, relaxed);  // ordered by the fence below
    fence(seq_cst);
    const int seen_right = right.value.load(relaxed);  // the litmus load
    meet(2 * round);
    // Relaxed: meet() ordered it.
    both_missed += seen_right != round && seen_left.value.load(relaxed) != round ? 1 : 0;
  }
  other.join();
  EXPECT_EQ(both_missed, 0);
}

}  // namespace
}  // namespace smarm::detail
