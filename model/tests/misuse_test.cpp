// Models that break the checker's rules. Goal: each is answered with one line that says what is
// wrong, and never with a pass. Method: one such model each, the message searched.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "model/model.hpp"

namespace {

using std::memory_order_relaxed;

void expect_line(const model::result& r, const std::string& part) {
  EXPECT_NE(r.message.find(part), std::string::npos) << r.message;
  EXPECT_EQ(r.message.find('\n'), std::string::npos);
}

TEST(misuse, model_that_differs_between_runs_is_told_where) {
  int runs = 0;
  const model::result r = model::check({}, [&] {
    ++runs;
    model::atomic<int> x{0};
    model::parallel([&] { x.store(1, memory_order_relaxed); },
                    [&] {
                      if (runs > 1) {
                        x.store(2, memory_order_relaxed);
                      } else {
                        x.load(memory_order_relaxed);
                      }
                    });
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "differs between two runs: event 0 of thread 2 was load at misuse_test.cpp:");
}

TEST(misuse, model_that_does_less_in_a_later_run_is_told) {
  int runs = 0;
  const model::result r = model::check({}, [&] {
    model::atomic<int> x{0};
    if (runs++ > 0) return;
    model::parallel([&] { x.store(1, memory_order_relaxed); },
                    [&] { x.load(memory_order_relaxed); });
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "differs between two runs");
}

TEST(misuse, thread_that_never_ends_is_incomplete) {
  const model::result r = model::check({}, [] {
    model::atomic<int> x{0};
    for (;;) x.store(1, memory_order_relaxed);
  });
  EXPECT_EQ(r.outcome, model::verdict::incomplete);
  expect_line(r, "thread 0 does not end: more than 400 accesses");
}

TEST(misuse, thread_that_runs_without_touching_anything_is_found_by_the_clock) {
  const model::result r = model::check({}, [] {
    std::uint64_t spins = 1;
    while (spins != 0) {
      spins |= 1;
      asm("" : "+r"(spins));
    }
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "without touching shared state");
}

TEST(misuse, loop_that_waits_without_reading_is_found) {
  const model::result r = model::check({}, [] {
    for (;;) model::pause();
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "waits without reading anything");
}

TEST(misuse, object_that_was_not_constructed_is_found) {
  const model::result r = model::check({}, [] {
    auto* raw = static_cast<model::atomic<int>*>(model::allocate(sizeof(model::atomic<int>)));
    raw->load(memory_order_relaxed);
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "not constructed");
}

TEST(misuse, too_many_threads_are_told) {
  const model::result r = model::check({}, [] {
    for (std::size_t i = 0; i < model::threads_max; ++i) model::spawn([] {});
  });
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  expect_line(r, "more than 16 threads");
}

TEST(misuse, bound_on_executions_makes_incomplete_and_never_pass) {
  model::options wished;
  wished.executions_max = 3;
  const model::result r = model::check(wished, [] {
    model::atomic<int> x{0};
    const auto one = [&] { x.fetch_add(1, memory_order_relaxed); };
    model::parallel(one, one, one);
  });
  EXPECT_EQ(r.outcome, model::verdict::incomplete);
  expect_line(r, "more than 3 executions");
}

TEST(misuse, abort_in_a_thread_is_a_failure_with_a_report) {
  const model::result r = model::check({}, [] {
    model::atomic<int> x{0};
    x.store(1, memory_order_relaxed);
    std::abort();
  });
  EXPECT_EQ(r.outcome, model::verdict::fail);
  EXPECT_EQ(r.kind, "abort");
  expect_line(r, "after store at misuse_test.cpp:");
}

TEST(misuse, objects_that_outlive_the_runs_begin_each_with_their_value) {
  static model::atomic<int> kept{5};
  const model::result r = model::check({}, [] {
    const auto one = [] { kept.fetch_add(1, memory_order_relaxed); };
    model::parallel(one, one);
    model::expect(kept.load(memory_order_relaxed) == 7);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(r.executions, 2U);
}

}  // namespace
