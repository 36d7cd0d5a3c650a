// Random programs of everything that waits. Goal: the exhaustive search misses no outcome of
// programs with mutexes, condition variables, futexes, timeouts, spurious wake-ups and weak
// exchanges, for which there is no oracle. Method: random walks share the rules of memory with the
// search but neither its order of events nor its revisits; whatever they meet the search must have
// met, deadlocks included.
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

struct step {
  unsigned what = 0;
  int operand = 0;
};

using program = std::vector<std::vector<step>>;

program make_program(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&random](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  program made(2 + below(2));
  for (auto& thread : made)
    for (unsigned i = 0, n = 1 + below(made.size() == 2 ? 3 : 2); i < n; ++i)
      thread.push_back({below(10), static_cast<int>(below(2))});
  return made;
}

struct shared {
  model::mutex lock;
  model::condition_variable changed;
  model::atomic<int> word{0};
  model::cell<int> data{0};
};

// run_step does a step and returns what its thread learns from it.
int run_step(shared& s, const step& what) {
  int expected = what.operand;
  int attempts = 1;
  switch (what.what) {
    case 0:
      s.word.store(what.operand + 1, memory_order_release);
      return 0;
    case 1:
      return s.word.load(memory_order_acquire);
    case 2:
      return s.word.fetch_add(1, memory_order_acq_rel);
    case 3:
      return static_cast<int>(s.word.compare_exchange_weak(expected, 5, memory_order_relaxed)) *
                 10 +
             expected;
    case 8:
      while (!s.word.compare_exchange_weak(expected, expected + 1, memory_order_acq_rel))
        ++attempts;
      return attempts * 10 + expected;
    case 4:
      return static_cast<int>(model::futex_wait(s.word, what.operand)) + 1;
    case 5:
      return static_cast<int>(model::futex_wait(s.word, what.operand, 10)) + 1;
    case 6:
      return static_cast<int>(model::futex_wake(s.word, 1));
    case 7: {
      std::unique_lock held{s.lock};
      const int seen = s.data.read();
      s.data.write(seen + 1);
      if (what.operand == 0) s.changed.notify_one();
      return seen;
    }
    default: {
      std::unique_lock held{s.lock};
      const auto how = s.changed.wait_until(held, what.operand == 0 ? model::never : 20);
      return static_cast<int>(how) * 10 + s.data.read();
    }
  }
}

std::set<std::string> outcomes(const program& p, const model::options& wished) {
  std::set<std::string> seen;
  const model::result r = model::check(wished, [&] {
    shared s;
    std::vector<std::string> learnt(p.size());
    std::vector<model::thread> threads;
    for (std::size_t t = 0; t < p.size(); ++t)
      threads.emplace_back([&, t] {
        for (const step& one : p[t]) learnt[t] += ' ' + std::to_string(run_step(s, one));
      });
    for (model::thread& t : threads) t.join();
    std::string all;
    for (const std::string& l : learnt) all += l + " |";
    seen.insert(all + std::to_string(s.word.load(memory_order_relaxed)));
  });
  if (r.failures > 0) seen.insert(r.kind);
  if (r.outcome == model::verdict::misuse) ADD_FAILURE() << r.message;
  return seen;
}

TEST(waiting, exhaustive_search_meets_every_outcome_that_a_random_walk_meets) {
  const std::uint64_t programs = std::getenv("SMARM_SOAK") != nullptr ? 3000 : 150;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const program p = make_program(seed);
    model::options wished;
    wished.keep_going = true;
    wished.weak_failures = seed % 3;
    wished.weak_failures_in_all = 1 + seed / 3 % 2;
    const std::set<std::string> all = outcomes(p, wished);
    wished.mode = model::search_mode::random;
    wished.runs = 400;
    wished.seed = seed;
    for (const std::string& met : outcomes(p, wished))
      EXPECT_TRUE(all.contains(met)) << "seed " << seed << ": " << met;
  }
}

}  // namespace
