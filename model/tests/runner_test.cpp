// The command line of a program of models. Goal: a person and a script can list, run, mutate and
// repeat models, and misuse of the real world is told in a line. Method: the example program is
// run.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "model/fiber.hpp"

namespace {

// output runs a command and returns what it printed; its exit status goes to `status`.
std::string output(const std::string& command, int* status = nullptr) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  const int ended = ::pclose(pipe);
  if (status != nullptr) *status = WEXITSTATUS(ended);
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string example = MODEL_EXAMPLE;
const std::string misuse = MODEL_MISUSE;

TEST(runner, runs_every_model_and_counts_them) {
  int status = -1;
  const std::string text = output(example, &status);
  EXPECT_EQ(status, 0) << text;
  EXPECT_TRUE(has(text, "6 passed, 0 failed\n")) << text;
  EXPECT_TRUE(has(text, "message_passing")) << text;
}

TEST(runner, lists_and_selects_by_name_and_prefix) {
  EXPECT_TRUE(has(output(example + " --list"), "forgotten_block  has to fail: leak\n"));
  EXPECT_TRUE(has(output(example + " --run sleeper"), "1 passed, 0 failed"));
  EXPECT_TRUE(has(output(example + " --run 'block*' --run sleeper"), "2 passed, 0 failed"));
  int status = -1;
  EXPECT_TRUE(has(output(example + " --run nobody", &status), "no model of that name"));
  EXPECT_EQ(status, 1);
}

TEST(runner, refuses_what_it_does_not_understand) {
  int status = -1;
  EXPECT_TRUE(has(output(example + " --frobnicate", &status), "not understood: --frobnicate"));
  EXPECT_EQ(status, 2);
  output(example + " --mutate nonsense", &status);
  EXPECT_EQ(status, 2);
  output(example + " --runs many", &status);
  EXPECT_EQ(status, 2);
}

TEST(runner, says_which_sites_there_are_and_how_each_can_be_weakened) {
  const std::string text = output(example + " --run message_passing --sites");
  EXPECT_TRUE(has(text, ":store:relaxed\n")) << text;
  EXPECT_TRUE(has(text, ":load:relaxed\n")) << text;
}

// Every mutation that --sites offers for the order of message_passing is killed by it.
TEST(runner, kills_the_mutations_that_it_lists_and_repeats_the_failure_by_the_printed_command) {
  const std::string text = output(example + " --run message_passing --sites");
  int killed = 0;
  for (std::size_t at = 0; (at = text.find("mutate ", at)) != std::string::npos; at += 7) {
    const std::string spec = text.substr(at + 7, text.find('\n', at) - at - 7);
    if (!spec.ends_with("relaxed")) continue;
    int status = -1;
    const std::string failed = output(example + " --run message_passing --mutate " + spec, &status);
    EXPECT_EQ(status, 1) << failed;
    EXPECT_TRUE(has(failed, "data race")) << failed;
    const std::size_t again = failed.find("again:  ");
    ASSERT_NE(again, std::string::npos) << failed;
    const std::string command = failed.substr(again + 8, failed.find('\n', again) - again - 8);
    EXPECT_TRUE(has(output(command, &status), "data race")) << command;
    EXPECT_EQ(status, 1);
    ++killed;
  }
  EXPECT_EQ(killed, 2);
}

TEST(runner, says_that_a_mutation_met_nothing) {
  const std::string text = output(example + " --mutate nowhere.cpp:1:relaxed");
  EXPECT_TRUE(has(text, "the mutation met no site")) << text;
}

TEST(runner, drops_a_wake_and_the_sleeper_stays_asleep) {
  const std::string text = output(example + " --run sleeper --sites");
  const std::size_t at = text.find(":wake:drop");
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t begin = text.rfind("mutate ", at) + 7;
  const std::string spec = text.substr(begin, at + 10 - begin);
  EXPECT_TRUE(has(output(example + " --run sleeper --mutate " + spec), "deadlock")) << spec;
}

TEST(runner, samples_when_told_to) {
  const std::string text =
      output(example + " --run message_passing --mode pct --runs 500 --seed 3");
  EXPECT_TRUE(has(text, " 500 executions")) << text;
}

TEST(runner, visits_all_of_a_model_that_is_sampled_when_told_to) {
  EXPECT_TRUE(has(output(example + " --run two_stores"), " 50 executions"));
  const std::string text = output(example + " --run two_stores --mode exhaustive");
  EXPECT_TRUE(has(text, " 2 executions")) << text;
}

TEST(runner, answers_misuse_of_the_real_world_in_a_line) {
  EXPECT_TRUE(has(output(misuse + " --run reads_the_clock"), "thread 0 reads the clock"));
  EXPECT_TRUE(has(output(misuse + " --run sleeps"), "thread 0 sleeps"));
  EXPECT_TRUE(has(output(misuse + " --run allocates_outside"), "outside of the arena"));
#if !defined(MODEL_ASAN)  // whose own pthread_create comes first
  EXPECT_TRUE(has(output(misuse + " --run starts_a_real_thread"), "starts a real thread"));
#endif
}

}  // namespace
