// options say how a model is explored and where its bounds are; result says what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace model {

enum class verdict : std::uint8_t {
  pass,        // every execution was seen and none is wrong (exhaustive), or no run failed
  fail,        // an execution that the language allows is wrong
  incomplete,  // a bound was hit before the end: neither
  misuse,      // the model itself breaks a rule of the checker; the message says which
};

[[nodiscard]] constexpr const char* name_of(verdict v) noexcept {
  switch (v) {
    case verdict::pass:
      return "pass";
    case verdict::fail:
      return "FAIL";
    case verdict::incomplete:
      return "INCOMPLETE";
    case verdict::misuse:
      return "MISUSE";
  }
  return "";
}

enum class search_mode : std::uint8_t { exhaustive, random, pct };

struct options {
  std::string name = "model";  // in the report and in the command that repeats a run
  search_mode mode = search_mode::exhaustive;  //
  std::uint64_t runs = 10000;                  // random, pct: how many
  std::uint64_t seed = 1;                      // random, pct
  unsigned depth = 3;                          // pct: the number of ordering constraints of a bug
  std::string replay;                          // repeat this one execution
  std::uint64_t executions_max = 20'000'000;   // LIMIT: beyond it the verdict is incomplete
  std::uint32_t events_max = 400;              // LIMIT: events of one thread; beyond it incomplete
  double seconds_max = 0;                      // LIMIT: 0 is none; beyond it incomplete
  unsigned spurious = 1;       // spurious wake-ups of a wait that each thread may meet
  unsigned weak_failures = 1;  // compare_exchange_weak that fail for no reason: of a thread
  unsigned weak_failures_in_all = 1000;  // and of all threads together
  std::uint32_t shorter_runs = 2000;     // runs after a failure in search of a shorter one
  bool races_fail = true;                // false: go on and only count them
  bool leaks_fail = true;                //
  bool adopt_new = true;  // with adopt_new.hpp: operator new takes the run's memory; false: misuse
  bool keep_going = false;  // count failing executions instead of stopping at the first
  bool progress = false;    // a line on standard error every few seconds
  std::string command;      // how to run this model again; goes before --replay in reports
};

struct result {
  verdict outcome = verdict::pass;
  std::string kind;              // assertion, data race, deadlock, ...
  std::string message;           // one line
  std::string report;            // the whole account of the failing execution
  std::string replay;            // repeats it
  std::uint64_t executions = 0;  // complete ones
  std::uint64_t blocked = 0;     // ended with a thread that waits; seen to its end in another one
  std::uint64_t pruned = 0;      // given up as inconsistent
  std::uint64_t races = 0;       // with races_fail off
  std::uint64_t stuck = 0;       // with keep_going
  std::uint64_t failures = 0;    // with keep_going
  double seconds = 0;
};

}  // namespace model
