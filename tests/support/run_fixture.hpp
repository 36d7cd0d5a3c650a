// run_fixture is what the fixtures of everything that runs actors have in common: a runtime made as
// the test's parameter says, and nothing left in it when it has run.
//
// Checked after each run: no actor, stack, timer, fd waiter or operation of a driver is left.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include <smarm/config.hpp>
#include <smarm/runtime.hpp>

namespace smarm::test {

// soaking tells whether this is the long run: `./dev soak` sets SMARM_SOAK.
[[nodiscard]] inline bool soaking() {
  static const bool value = std::getenv("SMARM_SOAK") != nullptr;
  return value;
}

// rounds returns how often to do something: the short count in the suite, the long one in a soak.
// An eighth of the short one in a stress build: that one looks for many seeds and not for long
// runs, and each preemption that it asks for costs milliseconds on a loaded machine.
[[nodiscard]] inline std::int64_t rounds(std::int64_t in_suite, std::int64_t in_soak) {
#ifdef SMARM_STRESS
  in_suite = (in_suite + 7) / 8;
#endif
  return soaking() ? in_soak : in_suite;
}

// expect_nothing_left fails the test where a runtime that has run still holds something.
inline void expect_nothing_left(const runtime& ran) {
  const runtime_counts left = ran.counts();
  EXPECT_EQ(left.actors, 0U) << "actors left behind";
  EXPECT_EQ(left.stacks_in_use, 0U) << "stacks left in use";
  EXPECT_EQ(left.timers, 0U) << "timers left armed";
  EXPECT_EQ(left.fd_waiters, 0U) << "fd waiters left";
  EXPECT_EQ(left.io_outstanding, 0U) << "operations left with a driver";
}

// The fixture for parameters of any type; config_of makes a configuration of one.
template <class Param, config (*config_of)(const Param&)>
class run_fixture : public ::testing::TestWithParam<Param> {
 protected:
  [[nodiscard]] static config make_config() { return config_of(run_fixture::GetParam()); }
  [[nodiscard]] static unsigned schedulers() { return make_config().schedulers; }

  // run runs root in a runtime of its own, checks that nothing is left, returns what it returned.
  template <class F>
  static decltype(auto) run(F&& root) {
    return run(make_config(), std::forward<F>(root));
  }
  template <class F>
  static decltype(auto) run(const config& how, F&& root) {
    runtime ours(how);
    const struct check {
      const runtime& ran;
      ~check() { expect_nothing_left(ran); }
    } check_at_end{ours};
    return ours.run(std::forward<F>(root));
  }
};

}  // namespace smarm::test
