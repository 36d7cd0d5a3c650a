// actors_test is the fixture of everything that runs actors: each test runs with 1, 2 and 8
// schedulers, and fails on anything it leaves behind.
//
//   using channel_test = smarm::test::actors_test;
//   SMARM_TEST_AT_1_2_8(channel_test);
//   TEST_P(channel_test, values_arrive_in_the_order_they_were_sent) {
//     run([] { ... });  // the root actor
//   }
//
// Checked after each run: what run_fixture.hpp says.
// Checked after each test: no more descriptors and allocations than before it, give or take what
// the library and the system set up once and keep.
//
// All inline, so that the test programs of the lower layers need not link what they do not test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include <smarm/config.hpp>
#include <smarm/runtime.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/resources.hpp"
#include "tests/support/run_fixture.hpp"

namespace smarm::test {

// with_schedulers is the default configuration for a number of schedulers.
inline config with_schedulers(const unsigned& number) {
  config how;
  how.schedulers = number;
  return how;
}

class actors_test : public run_fixture<unsigned, with_schedulers> {
 protected:
  // How many blocks the library may set up once, in whichever test comes first, and keep; the long
  // runs fill more of its pools. A leak of a message, actor or wait shows by the thousand.
  [[nodiscard]] static std::int64_t kept_allocations_max() { return soaking() ? 512 : 64; }

  void SetUp() override {
    warm_up();
    descriptors_before_ = open_descriptors();
    allocations_before_ = live_allocations();
  }

  void TearDown() override {
    EXPECT_LE(open_descriptors(), descriptors_before_) << "file descriptors left open";
    EXPECT_LE(live_allocations(), allocations_before_ + kept_allocations_max())
        << "allocations left behind";
  }

 private:
  // What is made on first use is made before anything is counted.
  static void warm_up() {
    static const bool done = [] {
      smarm::run(with_schedulers(8), [] { sleep_for(std::chrono::nanoseconds(1)); });
      return true;
    }();
    (void)done;
  }

  std::size_t descriptors_before_ = 0;
  std::int64_t allocations_before_ = 0;
};

// schedulers_name names the instance of a test in reports.
inline std::string schedulers_name(const ::testing::TestParamInfo<unsigned>& info) {
  return "on_" + std::to_string(info.param) + (info.param == 1 ? "_scheduler" : "_schedulers");
}

}  // namespace smarm::test

// SMARM_TEST_AT_1_2_8(fixture) instantiates the tests of a fixture for each number of schedulers.
#define SMARM_TEST_AT_1_2_8(fixture)                                           \
  INSTANTIATE_TEST_SUITE_P(schedulers, fixture, ::testing::Values(1U, 2U, 8U), \
                           ::smarm::test::schedulers_name)
