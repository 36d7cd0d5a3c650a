// The checker against programs whose executions are known from an enumerator that shares nothing
// with it. Goal: no outcome is missing, none is too much, and each execution is visited exactly
// once. Method: the outcome sets and the counts of executions have to be equal, program by program.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "litmus.hpp"
#include "model/sanitizer_options.hpp"  // once in this program

namespace {

const std::string folder = MODEL_TEST_FOLDER;

model::options counting() {
  model::options wished;
  wished.races_fail = false;
  return wished;
}

class corpus : public testing::TestWithParam<litmus::program> {};

TEST_P(corpus, has_exactly_the_known_outcomes_and_executions) {
  const litmus::found f = litmus::run(GetParam(), counting());
  EXPECT_EQ(litmus::difference(GetParam(), f), "");
}

TEST_P(corpus, fails_with_cells_exactly_if_there_is_a_race) {
  const litmus::program& p = GetParam();
  const litmus::found f = litmus::run(p, {}, litmus::plain_as::cells);
  if (p.races) {
    EXPECT_EQ(f.result.kind, "data race") << f.result.message;
  } else {
    EXPECT_EQ(f.result.outcome, model::verdict::pass) << f.result.message;
    EXPECT_EQ(f.outcomes, p.outcomes);
    EXPECT_EQ(f.result.executions, p.executions);
  }
}

INSTANTIATE_TEST_SUITE_P(litmus, corpus, testing::ValuesIn(litmus::read(folder + "/litmus.txt")),
                         [](const auto& info) { return info.param.id; });

// What has no oracle: each is a program of the corpus with other fences, and has to come out as
// that one with its own, with weaker ones, or with none (asymmetric.txt names it by its outcomes).
INSTANTIATE_TEST_SUITE_P(asymmetric, corpus,
                         testing::ValuesIn(litmus::read(folder + "/asymmetric.txt")),
                         [](const auto& info) { return info.param.id; });

void compare_all(const std::vector<litmus::program>& programs) {
  for (const litmus::program& p : programs) {
    const std::string difference = litmus::difference(p, litmus::run(p, counting()));
    EXPECT_EQ(difference, "") << p.id << ' ' << p.name << "\n  "
                              << testing::PrintToString(p.sources);
  }
}

TEST(random_programs, have_exactly_the_outcomes_and_executions_that_the_oracle_found) {
  const auto programs = litmus::read(folder + "/random.txt");
  ASSERT_EQ(programs.size(), 500U);
  compare_all(programs);
}

// With SMARM_SOAK and the oracle's folder in MODEL_ORACLE: 20,000 programs made on the spot.
TEST(random_programs, agree_with_the_oracle_in_the_long_run) {
  const char* oracle = std::getenv("MODEL_ORACLE");
  if (std::getenv("SMARM_SOAK") == nullptr || oracle == nullptr)
    GTEST_SKIP() << "needs SMARM_SOAK=1 and MODEL_ORACLE=folder of the oracle";
  for (int seed = 1000; seed < 1010; ++seed) {
    const std::string made = testing::TempDir() + "model_random.txt";
    const std::string command = "python3 " + folder + "/make_corpus.py " + oracle + " random " +
                                std::to_string(seed) + " 2000 > " + made;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    compare_all(litmus::read(made));
  }
}

}  // namespace
