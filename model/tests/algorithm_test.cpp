// Known algorithms under the checker. Goal: each has exactly the executions that the oracle
// counted, is judged as it was, and each one-step weakening of an order is noticed or not, as it
// was by the oracle. Method: algorithms.txt has the oracle's answers, algorithms.cpp the programs.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms.hpp"

namespace {

struct mutant {
  std::string site;
  std::string order;
  bool killed = false;
};

struct known {
  std::uint64_t executions = 0;
  bool fails = false;
  std::vector<mutant> mutants;
};

std::map<std::string, known> answers() {
  std::map<std::string, known> all;
  std::ifstream in{std::string{MODEL_TEST_FOLDER} + "/algorithms.txt"};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words{line};
    std::string what;
    std::string id;
    std::string skip;
    words >> what >> id;
    if (what == "algorithm") {
      words >> skip >> all[id].executions >> skip >> skip;
      all[id].fails = skip == "fail";
    } else {
      mutant m;
      words >> m.site >> m.order >> skip;
      m.killed = skip == "killed";
      all[id].mutants.push_back(m);
    }
  }
  return all;
}

std::memory_order order_of(const std::string& word) {
  if (word == "rlx") return std::memory_order_relaxed;
  if (word == "acq") return std::memory_order_acquire;
  if (word == "rel") return std::memory_order_release;
  return std::memory_order_acq_rel;
}

// The names of parameters are enough for a message.
class algorithm : public testing::TestWithParam<algorithms::algorithm> {};

TEST_P(algorithm, has_the_known_executions_and_verdict) {
  const known wanted = answers().at(GetParam().id);
  std::uint64_t completed = 0;
  algorithms::orders usual;
  usual.completed = &completed;
  model::options wished;
  wished.keep_going = true;
  const model::result r = model::check(wished, [&] { GetParam().body(usual); });
  EXPECT_EQ(completed, wanted.executions);
  EXPECT_EQ(r.outcome, wanted.fails ? model::verdict::fail : model::verdict::pass) << r.report;
}

TEST_P(algorithm, notices_the_weakenings_that_the_oracle_noticed) {
  const known wanted = answers().at(GetParam().id);
  for (const mutant& m : wanted.mutants) {
    algorithms::orders weak;
    weak.site = m.site;
    weak.dropped = m.order == "drop";
    if (!weak.dropped) weak.changed = order_of(m.order);
    const model::result r = model::check({}, [&] { GetParam().body(weak); });
    const bool killed = r.outcome == model::verdict::fail;
    EXPECT_EQ(killed, m.killed || wanted.fails) << m.site << ' ' << m.order << '\n' << r.report;
  }
}

INSTANTIATE_TEST_SUITE_P(known, algorithm, testing::ValuesIn(algorithms::all()),
                         [](const auto& info) { return info.param.id + "_" + info.param.name; });

}  // namespace
