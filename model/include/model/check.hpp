// check explores a model and says whether it holds.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "model/engine_judge.hpp"
#include "model/engine_threads.hpp"
#include "model/report.hpp"
#include "model/sample.hpp"
#include "model/search_revisit.hpp"
#include "model/watch.hpp"

namespace model {

namespace detail {

// exploration is one call of check: run after run until there is an answer.
class exploration {
 public:
  exploration(const options& wished, strategy& how, const std::function<void()>& body)
      : wished_(wished), strategy_(how), body_(body), engine_(wished, how) {}

  [[nodiscard]] result run() {
    const watch guard{engine_};
    const auto call = [](void* body) { (*static_cast<const std::function<void()>*>(body))(); };
    while (strategy_.next()) {
      const run_end end = engine_.run(call, const_cast<std::function<void()>*>(&body_));
      ++runs_;
      if (!take(end) || is_over()) break;
    }
    found_.races = engine_.races();
    found_.seconds = seconds();
    return std::move(found_);
  }

 private:
  using steady = std::chrono::steady_clock;

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(steady::now() - began_).count();
  }

  // take counts a run; false if it ends the exploration.
  [[nodiscard]] bool take(run_end end) {
    switch (end) {
      case run_end::complete:
        ++found_.executions;
        return true;
      case run_end::blocked:
        ++found_.blocked;
        return true;
      case run_end::inconsistent:
        ++found_.pruned;
        return true;
      case run_end::failed:
        return fail();
      case run_end::bound:
        // A sampled run that got too long says nothing; the next one may.
        if (wished_.mode != search_mode::exhaustive) return ++found_.pruned > 0;
        break;
      case run_end::misuse:
        break;
    }
    if (found_.outcome == verdict::fail) return end == run_end::bound;
    found_.outcome = end == run_end::misuse ? verdict::misuse : verdict::incomplete;
    found_.message = engine_.message();
    return false;
  }

  // fail keeps the shortest failing execution of a number of runs.
  [[nodiscard]] bool fail() {
    ++found_.failures;
    const std::size_t length = engine_.trace().size();
    if (found_.outcome != verdict::fail) first_failure_ = runs_;
    if (found_.outcome != verdict::fail || length < shortest_) {
      found_.outcome = verdict::fail;
      shortest_ = length;
      found_.kind = engine_.kind();
      found_.message = engine_.message();
      report account{engine_, wished_.command};
      found_.replay = account.replay();
      found_.report = account.text();
    }
    return true;
  }

  [[nodiscard]] bool is_over() {
    if (found_.outcome == verdict::fail && !wished_.keep_going)
      return runs_ - first_failure_ >= wished_.shorter_runs;
    if (runs_ >= wished_.executions_max && wished_.mode == search_mode::exhaustive)
      return give_up("more than " + std::to_string(wished_.executions_max) + " executions");
    if (runs_ % 256 != 0) return false;
    const double now = seconds();
    if (wished_.seconds_max > 0 && now > wished_.seconds_max)
      return give_up("more than " + std::to_string(wished_.seconds_max) + " seconds");
    if (wished_.progress && now - told_ > 2) {
      told_ = now;
      std::fprintf(stderr, "%s: %llu executions, %llu blocked, %llu pruned, %.0f runs/s, %.0f s\n",
                   wished_.name.c_str(), static_cast<unsigned long long>(found_.executions),
                   static_cast<unsigned long long>(found_.blocked),
                   static_cast<unsigned long long>(found_.pruned), static_cast<double>(runs_) / now,
                   now);
    }
    return false;
  }

  [[nodiscard]] bool give_up(const std::string& why) {
    if (found_.outcome == verdict::pass) {
      found_.outcome = verdict::incomplete;
      found_.message = why;
    }
    return true;
  }

  const options& wished_;
  strategy& strategy_;
  const std::function<void()>& body_;
  engine engine_;
  result found_;
  steady::time_point began_ = steady::now();
  double told_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t first_failure_ = 0;
  std::size_t shortest_ = 0;
};

[[nodiscard]] inline result repeat(const options& wished, const std::function<void()>& body) {
  replay_walk walk{wished.replay};
  result found = exploration{wished, walk, body}.run();
  if (!walk.fits() && found.outcome != verdict::misuse) {
    found.outcome = verdict::misuse;
    found.message = "the replay string does not fit this model: it is of another one, or of an " +
                    std::string{"older text of it"};
  }
  return found;
}

}  // namespace detail

// check runs `body` as thread 0 of every execution that the language allows (see options::mode).
// It may be called by one thread of a process at a time, and not from within a model.
[[nodiscard]] inline result check(const options& wished, const std::function<void()>& body) {
  if (!wished.replay.empty()) return detail::repeat(wished, body);
  if (wished.mode == search_mode::random) {
    random_walk walk{wished.runs, wished.seed};
    return detail::exploration{wished, walk, body}.run();
  }
  if (wished.mode == search_mode::pct) {
    pct_walk walk{wished.runs, wished.seed, wished.depth};
    return detail::exploration{wished, walk, body}.run();
  }
  search exhaustive;
  return detail::exploration{wished, exhaustive, body}.run();
}

}  // namespace model
