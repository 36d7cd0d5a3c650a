// every_way_test runs a test on each of the run queues at 1, 2 and 8 schedulers: whatever the core
// promises it promises in all these ways.
//
//   using spawn_test = smarm::test::every_way_test;
//   SMARM_TEST_EVERY_WAY(spawn_test);
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <smarm/config.hpp>

#include "fiber/sanitizer.hpp"
#include "tests/support/run_fixture.hpp"

namespace smarm::test {

using way = std::tuple<unsigned, run_queue_kind>;

// config_of_way is the default configuration but for what the way says.
inline config config_of_way(const way& which) {
  config how;
  std::tie(how.schedulers, how.run_queue) = which;
  return how;
}

using every_way_test = run_fixture<way, config_of_way>;

inline std::string way_name(const ::testing::TestParamInfo<way>& info) {
  constexpr const char* names[] = {"locked", "mpmc", "striped", "local"};
  return std::string(names[static_cast<int>(std::get<1>(info.param))]) + "_on_" +
         std::to_string(std::get<0>(info.param));
}

// slow_build tells whether a park is dear here: debug builds move the actor at each, and
// ThreadSanitizer looks at every access. Tests that count parks by the thousand take fewer then.
[[nodiscard]] constexpr bool slow_build() {
#if defined(SMARM_DEBUG) || defined(SMARM_THREAD_SANITIZER)
  return true;
#else
  return false;
#endif
}
// scaled is `count`, or a tenth of it in a slow build.
[[nodiscard]] constexpr int scaled(int count) { return slow_build() ? (count + 9) / 10 : count; }

}  // namespace smarm::test

#define SMARM_TEST_EVERY_WAY(fixture)                                                           \
  INSTANTIATE_TEST_SUITE_P(                                                                     \
      ways, fixture,                                                                            \
      ::testing::Combine(                                                                       \
          ::testing::Values(1U, 2U, 8U),                                                        \
          ::testing::Values(::smarm::run_queue_kind::locked, ::smarm::run_queue_kind::mpmc,     \
                            ::smarm::run_queue_kind::striped, ::smarm::run_queue_kind::local)), \
      ::smarm::test::way_name)
