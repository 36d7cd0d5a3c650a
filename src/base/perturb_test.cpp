// Goal: what a thread is made to do depends on seed, name and number alone, and is worth having.
// Method: sequences side by side; in a stress build also the calls themselves.
#include "base/perturb.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <vector>

namespace smarm::detail {
namespace {

using kind = disturbance::kind;

std::vector<disturbance> first(disturbances sequence, std::size_t count) {
  std::vector<disturbance> taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(sequence.next());
  return taken;
}

TEST(perturb, decides_the_same_for_the_same_seed_name_and_number) {
  EXPECT_EQ(first({7, "smarm/1", 3}, 10'000), first({7, "smarm/1", 3}, 10'000));
}

TEST(perturb, decides_otherwise_for_another_seed_name_or_number) {
  const auto one = first({7, "smarm/1", 3}, 10'000);
  EXPECT_NE(one, first({8, "smarm/1", 3}, 10'000));
  EXPECT_NE(one, first({7, "smarm/2", 3}, 10'000));
  EXPECT_NE(one, first({7, "smarm/1", 4}, 10'000));
}

TEST(perturb, leaves_threads_mostly_alone_and_does_each_of_its_deeds) {
  std::map<kind, int> seen;
  for (const disturbance& each : first({1, "smarm/0", 0}, 100'000)) {
    ++seen[each.what];
    if (each.what == kind::spin) {
      EXPECT_LE(each.amount, 1024U);
    } else if (each.what == kind::sleep) {
      EXPECT_LE(each.amount, 50U);
    }
  }
  EXPECT_GT(seen[kind::none], 90'000);
  for (const kind deed : {kind::spin, kind::yield, kind::sleep}) EXPECT_GT(seen[deed], 50);
}

TEST(perturb, has_stretches_of_quiet_and_of_disturbance) {
  disturbances sequence(1, "smarm/0", 0);
  int quiet = 0;
  int wild = 0;
  for (int stretch = 0; stretch < 10'000; ++stretch) {
    int disturbed = 0;
    for (int i = 0; i < 16; ++i) disturbed += sequence.next().what != kind::none ? 1 : 0;
    quiet += disturbed == 0 ? 1 : 0;
    wild += disturbed >= 6 ? 1 : 0;
  }
  EXPECT_GT(quiet, 1'000);
  EXPECT_GT(wild, 50);
}

TEST(perturb, names_every_point) {
  for (int point = 0; point <= static_cast<int>(perturb_point::verdict); ++point) {
    EXPECT_FALSE(name_of(static_cast<perturb_point>(point)).empty());
  }
}

TEST(perturb, leaves_errno_alone) {
  errno = EDOM;
  for (int i = 0; i < 10'000; ++i) perturb(perturb_point::park);
  EXPECT_EQ(errno, EDOM);
}

}  // namespace
}  // namespace smarm::detail
