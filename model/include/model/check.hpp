// check explores a model and says whether it holds.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "model/engine_judge.hpp"
#include "model/engine_run.hpp"
#include "model/search_revisit.hpp"

namespace model {

namespace detail {

inline result explore(const options& wished, strategy& how, const std::function<void()>& body) {
  using steady = std::chrono::steady_clock;
  result found;
  engine machine{wished, how};
  const auto began = steady::now();
  const auto call = [](void* closure) { (*static_cast<const std::function<void()>*>(closure))(); };
  const auto seconds = [began] {
    return std::chrono::duration<double>(steady::now() - began).count();
  };
  std::uint64_t runs = 0;
  while (how.next()) {
    const run_end end = machine.run(call, const_cast<std::function<void()>*>(&body));
    ++runs;
    if (end == run_end::complete) ++found.executions;
    if (end == run_end::blocked) ++found.blocked;
    if (end == run_end::inconsistent) ++found.pruned;
    if (end == run_end::failed) {
      found.outcome = verdict::fail;
      found.kind = machine.kind();
      found.message = machine.message();
      if (!wished.keep_going) break;
      ++found.failures;
    }
    if (end == run_end::misuse || end == run_end::bound) {
      found.outcome = end == run_end::misuse ? verdict::misuse : verdict::incomplete;
      found.message = machine.message();
      break;
    }
    if (runs >= wished.executions_max) {
      found.outcome = verdict::incomplete;
      found.message = "more than " + std::to_string(wished.executions_max) + " executions";
      break;
    }
  }
  found.races = machine.races();
  found.seconds = seconds();
  return found;
}

}  // namespace detail

// check runs `body` as thread 0 of every execution that the language allows (see options::mode).
// It may be called by one thread of a process at a time, and not from within a model.
[[nodiscard]] inline result check(const options& wished, const std::function<void()>& body) {
  search exhaustive;
  return detail::explore(wished, exhaustive, body);
}

}  // namespace model
