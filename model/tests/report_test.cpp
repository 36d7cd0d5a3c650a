// What a failure tells, and that it can be had again. Goal: the report has all its parts, the
// replay string repeats the very failure in every mode. Method: small failing models, text
// searched.
#include <gtest/gtest.h>

#include <string>

#include "model/model.hpp"

namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// Message passing that lacks its release: weak memory only.
void message_passing() {
  model::atomic<int> data{0};
  model::atomic<int> flag{0};
  model::name(data, "data");
  model::name(flag, "flag");
  model::parallel(
      [&] {
        data.store(1, memory_order_relaxed);
        flag.store(1, memory_order_relaxed);
      },
      [&] {
        if (flag.load(memory_order_acquire) == 1)
          model::expect(data.load(memory_order_relaxed) == 1, "stale data");
      });
}

// A counter that is read and written in two steps: any machine shows it.
void lost_update() {
  model::atomic<int> counter{0};
  const auto increment = [&] {
    counter.store(counter.load(memory_order_acquire) + 1, memory_order_release);
  };
  model::parallel(increment, increment);
  model::expect(counter.load(memory_order_relaxed) == 2, "an update is lost");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(report, tells_a_weak_failure_with_its_events_and_why_the_stale_read_is_legal) {
  model::options wished;
  wished.command = "models --run message_passing";
  const model::result r = model::check(wished, message_passing);
  ASSERT_EQ(r.outcome, model::verdict::fail);
  EXPECT_EQ(r.kind, "assertion");
  EXPECT_TRUE(has(r.message, "stale data (report_test.cpp:")) << r.message;
  EXPECT_TRUE(has(r.report, "it needs weak memory")) << r.report;
  EXPECT_TRUE(has(r.report, "store")) << r.report;
  EXPECT_TRUE(has(r.report, "acquire")) << r.report;
  EXPECT_TRUE(has(r.report, "flag")) << r.report;
  EXPECT_TRUE(has(r.report, "<- T1#1")) << r.report;
  EXPECT_TRUE(has(r.report, "T2#1 may read the initial value: T1#0 wrote 1, which does not happen"))
      << r.report;
  EXPECT_TRUE(has(r.report, "again:  models --run message_passing --replay " + r.replay));
}

TEST(report, says_that_an_interleaving_shows_an_ordinary_failure) {
  const model::result r = model::check({}, lost_update);
  ASSERT_EQ(r.outcome, model::verdict::fail);
  EXPECT_TRUE(has(r.report, "An ordinary interleaving shows it")) << r.report;
  EXPECT_TRUE(has(r.report, "order of writes to")) << r.report;
}

TEST(report, says_for_a_deadlock_what_each_thread_waits_for) {
  const model::result r = model::check({}, [] {
    model::mutex lock;
    model::name(lock, "the lock");
    model::parallel([&] { lock.lock(); }, [&] { lock.lock(); });
  });
  EXPECT_EQ(r.kind, "deadlock");
  EXPECT_TRUE(has(r.report, "waits in lock at report_test.cpp:")) << r.report;
  EXPECT_TRUE(has(r.report, "on the lock, last written by T")) << r.report;
}

TEST(report, names_both_sides_of_a_race) {
  const model::result r = model::check({}, [] {
    model::cell<int> data{0};
    model::parallel([&] { data.write(1); }, [&] { data.write(2); });
  });
  EXPECT_EQ(r.kind, "data race");
  EXPECT_TRUE(has(r.message, "thread 2 at report_test.cpp:")) << r.message;
  EXPECT_TRUE(has(r.message, "thread 1 at report_test.cpp:")) << r.message;
}

TEST(report, is_of_the_shortest_failure_that_was_found) {
  // The loop first fails long, and short in a later execution.
  const auto body = [] {
    const std::uint64_t rounds = 3 - model::choose(4);
    model::atomic<int> x{0};
    for (std::uint64_t i = 0; i < rounds; ++i) x.store(1, memory_order_relaxed);
    model::expect(false, "always");
  };
  model::options first;
  first.shorter_runs = 0;
  EXPECT_TRUE(has(model::check(first, body).report, "store"));
  EXPECT_FALSE(has(model::check({}, body).report, "store"));
}

void expect_repeated(model::options wished, const std::function<void()>& body) {
  const model::result r = model::check(wished, body);
  ASSERT_EQ(r.outcome, model::verdict::fail) << r.message;
  wished.replay = r.replay;
  const model::result again = model::check(wished, body);
  EXPECT_EQ(again.outcome, model::verdict::fail) << again.message;
  EXPECT_EQ(again.kind, r.kind) << r.replay << again.message;
  EXPECT_EQ(again.message, r.message);
  EXPECT_EQ(again.report, r.report);
}

TEST(replay, repeats_the_failure_in_every_mode) {
  model::options wished;
  for (const auto mode :
       {model::search_mode::exhaustive, model::search_mode::random, model::search_mode::pct}) {
    wished.mode = mode;
    expect_repeated(wished, message_passing);
    expect_repeated(wished, lost_update);
  }
}

TEST(replay, repeats_a_lost_wake_up_a_weak_failure_and_a_choice) {
  model::options wished;
  expect_repeated(wished, [] {
    model::atomic<int> word{0};
    model::parallel(
        [&] {
          while (word.load(memory_order_relaxed) == 0)
            static_cast<void>(model::futex_wait(word, 0));
        },
        [&] {
          model::futex_wake(word, 1);
          word.store(1, memory_order_relaxed);
        });
  });
  expect_repeated(wished, [] {
    model::atomic<int> word{0};
    int expected = 0;
    model::expect(word.compare_exchange_weak(expected, 1, memory_order_relaxed), "weak");
  });
  expect_repeated(wished, [] { model::expect(model::choose(5) != 3, "three"); });
}

TEST(replay, repeats_a_store_that_goes_before_another) {
  expect_repeated({}, [] {
    model::atomic<int> x{0};
    model::atomic<int> y{0};
    model::parallel(
        [&] {
          x.store(1, memory_order_relaxed);
          y.store(2, memory_order_relaxed);
        },
        [&] {
          y.store(1, memory_order_relaxed);
          x.store(2, memory_order_relaxed);
        });
    const bool weak = x.load(memory_order_relaxed) == 1 && y.load(memory_order_relaxed) == 1;
    model::expect(!weak, "2+2W");
  });
}

TEST(replay, of_another_model_is_refused_in_a_line) {
  model::options wished;
  wished.replay = "0x2-1x3-7-2.1";
  const model::result r = model::check(wished, lost_update);
  EXPECT_EQ(r.outcome, model::verdict::misuse);
  EXPECT_TRUE(has(r.message, "does not fit")) << r.message;
}

TEST(sampling, finds_the_same_failures_without_exhausting) {
  for (const auto mode : {model::search_mode::random, model::search_mode::pct}) {
    model::options wished;
    wished.mode = mode;
    wished.runs = 2000;
    EXPECT_EQ(model::check(wished, message_passing).kind, "assertion");
    EXPECT_EQ(model::check(wished, lost_update).kind, "assertion");
  }
}

TEST(sampling, makes_the_same_runs_of_the_same_seed) {
  model::options wished;
  wished.mode = model::search_mode::random;
  wished.runs = 50;
  wished.keep_going = true;
  const model::result first = model::check(wished, lost_update);
  const model::result second = model::check(wished, lost_update);
  EXPECT_EQ(first.failures, second.failures);
  EXPECT_EQ(first.replay, second.replay);
  EXPECT_GT(first.failures, 0U);
  EXPECT_GT(first.executions, 0U);
}

}  // namespace
