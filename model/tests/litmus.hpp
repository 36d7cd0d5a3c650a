// litmus reads programs in a small text form and runs them on model threads.
//
// The form, a statement between semicolons:
//   W x 1 rel                 store                   NW d 1            plain store
//   r = R x acq               load                    r = NR d          plain load
//   r = ADD x 1 ar            fetch_add               r = XCHG x 5 ar   exchange
//   r = CAS x 0 1 ar acq      r is the value found    r = CASW ...      weak: r is ok or no and the
//   value F sc                      fence                   IF r == 1 { ... }
//   F light, F heavy          asymmetric fence
// Values are integers or registers. An outcome is the registers of each thread in the order of
// their first mention, then the final value of each location of `finals`; "-" is a register never
// written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace litmus {

struct statement {
  std::vector<std::string> words;  // without the register and the equals sign
  std::string target;              // the register, or empty
  std::vector<statement> body;     // of an IF
  std::uint32_t line = 0;          // its number in the program, for the site
};

struct program {
  std::string id;
  std::string name;
  std::vector<std::string> sources;
  std::vector<std::vector<statement>> threads;
  std::vector<std::vector<std::string>> registers;
  std::map<std::string, std::int64_t> initial;
  std::vector<std::string> finals;
  std::uint64_t executions = 0;
  bool races = false;
  std::set<std::string> outcomes;
};

// read parses a file of programs.
[[nodiscard]] std::vector<program> read(const std::string& path);

// How plain accesses are run: as events of the graph, which even a racy program can be explored by,
// or as model::cell, which ends at the first race.
enum class plain_as : std::uint8_t { events, cells };

struct found {
  model::result result;
  std::set<std::string> outcomes;
};

// run explores a program.
[[nodiscard]] found run(const program& p, model::options wished = {},
                        plain_as plain = plain_as::events);

// difference says how what was found differs from what has to be found; empty if it does not.
[[nodiscard]] std::string difference(const program& p, const found& f);

}  // namespace litmus
