// main() of every test program: seed, watchdog, then GoogleTest.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "tests/support/seed.hpp"
#include "tests/support/watchdog.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // A death test forks while scheduler threads exist; "threadsafe" re-executes the program instead
  // of going on in a copy that has lost every other thread.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!GTEST_FLAG_GET(list_tests)) {
    std::fprintf(stderr, "seed: SMARM_TEST_SEED=%" PRIu64 "\n", smarm::test::seed());
    smarm::test::install_watchdog();
  }
  return RUN_ALL_TESTS();
}
