// compare_exchange_weak fails without a reason as often as options::weak_failures allows each
// thread. Goal: what only such a failure breaks is found from the bound on that lets it happen, a
// loop around the exchange ends within its bound, and each way to spend the bound is one execution.
// Method: programs whose executions can be counted by hand.
#include <gtest/gtest.h>

#include <cstdint>

#include "model/model.hpp"

namespace {

using std::memory_order_relaxed;

model::result explore(unsigned bound, const std::function<void()>& body, unsigned in_all = 1000) {
  model::options wished;
  wished.weak_failures = bound;
  wished.weak_failures_in_all = in_all;
  return model::check(wished, body);
}

// add_one adds to the word in the usual loop; it returns how often the exchange failed.
unsigned add_one(model::atomic<unsigned>& word) {
  unsigned failures = 0;
  unsigned seen = word.load(memory_order_relaxed);
  while (!word.compare_exchange_weak(seen, seen + 1, memory_order_relaxed)) ++failures;
  return failures;
}

// A program that is wrong if one thread's exchanges fail `times` times without a reason.
void survives_fewer_than(unsigned times) {
  model::atomic<unsigned> word{0};
  model::expect(add_one(word) < times, "one failure too many");
}

TEST(weak_exchange, failure_is_found_from_the_bound_on_that_allows_it) {
  for (unsigned times = 1; times <= 3; ++times)
    for (unsigned bound = 0; bound <= 3; ++bound) {
      const model::result r = explore(bound, [times] { survives_fewer_than(times); });
      EXPECT_EQ(r.outcome, bound < times ? model::verdict::pass : model::verdict::fail)
          << times << " failures, bound " << bound << ": " << r.message;
    }
}

TEST(weak_exchange, loop_is_explored_once_for_each_number_of_failures) {
  for (unsigned bound = 0; bound <= 3; ++bound) {
    const model::result r = explore(bound, [] {
      model::atomic<unsigned> word{0};
      add_one(word);
    });
    EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
    EXPECT_EQ(r.executions, bound + 1U);
  }
}

TEST(weak_exchange, bound_is_of_a_thread_and_not_of_a_loop_nor_of_all_threads) {
  for (unsigned bound = 0; bound <= 2; ++bound) {
    const model::result loops = explore(bound, [] {
      model::atomic<unsigned> word{0};
      add_one(word);
      add_one(word);
    });
    EXPECT_EQ(loops.outcome, model::verdict::pass) << loops.message;
    // At most `bound` failures, dealt to two loops.
    EXPECT_EQ(loops.executions, (bound + 1U) * (bound + 2U) / 2) << bound;

    const model::result threads = explore(bound, [] {
      model::atomic<unsigned> one{0};
      model::atomic<unsigned> other{0};
      model::parallel([&] { add_one(one); }, [&] { add_one(other); });
    });
    EXPECT_EQ(threads.outcome, model::verdict::pass) << threads.message;
    EXPECT_EQ(threads.executions, (bound + 1U) * (bound + 1U)) << bound;
  }
}

// How many pairs of numbers up to `each` have a sum up to `in_all`.
unsigned pairs(unsigned each, unsigned in_all) {
  unsigned count = 0;
  for (unsigned one = 0; one <= each; ++one)
    for (unsigned other = 0; other <= each; ++other) count += one + other <= in_all;
  return count;
}

TEST(weak_exchange, bound_of_all_threads_holds_beside_that_of_each) {
  for (unsigned each = 0; each <= 2; ++each)
    for (unsigned in_all = 0; in_all <= 4; ++in_all) {
      const auto apart = [] {
        model::atomic<unsigned> one{0};
        model::atomic<unsigned> other{0};
        model::parallel([&] { add_one(one); }, [&] { add_one(other); });
      };
      const model::result r = explore(each, apart, in_all);
      EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
      EXPECT_EQ(r.executions, pairs(each, in_all)) << each << " each, " << in_all << " in all";
    }
}

// Two threads that add to one word. Of each order of the additions there are two executions: the
// second thread's load sees the first addition, or misses it and the exchange fails for that
// reason. With a failure for no reason the first thread has 2 ways instead of 1; the second has 2
// if it sees the addition, else 3: before the exchange that fails, before the one that succeeds, or
// none. Each thread by itself: 2 * 2 and 2 * 3; one failure in all: 2 ways without any, 2 more by
// the first thread, 3 more by the second.
TEST(weak_exchange, mixes_with_failures_for_a_reason) {
  const auto two = [] {
    model::atomic<unsigned> word{0};
    model::parallel([&] { add_one(word); }, [&] { add_one(word); });
    model::expect(word.load(memory_order_relaxed) == 2);
  };
  const model::result none = explore(0, two);
  EXPECT_EQ(none.outcome, model::verdict::pass) << none.message;
  const model::result one = explore(1, two, 1);
  EXPECT_EQ(one.outcome, model::verdict::pass) << one.message;
  const model::result each = explore(1, two);
  EXPECT_EQ(each.outcome, model::verdict::pass) << each.message;
  EXPECT_EQ(none.executions, 2U * 2U);
  EXPECT_EQ(one.executions, 2U * (2U + 2U + 3U));
  EXPECT_EQ(each.executions, 2U * 2U * (2U + 3U));
}

TEST(weak_exchange, strong_one_never_fails_without_a_reason) {
  const model::result r = explore(3, [] {
    model::atomic<int> word{0};
    int seen = 0;
    model::expect(word.compare_exchange_strong(seen, 1, memory_order_relaxed));
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(r.executions, 1U);
}

}  // namespace
