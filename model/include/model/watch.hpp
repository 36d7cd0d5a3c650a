// watch looks after user code that does not come back: a loop that never touches shared state is
// found by a clock of processor time, and abort() inside a model thread becomes a failure with a
// report.
#pragma once

#include <signal.h>
#include <sys/time.h>

#include <string>

#include "model/engine_judge.hpp"
#include "model/engine_threads.hpp"

namespace model::detail {

class watch {
 public:
  explicit watch(engine& watched) {
    watched_ = &watched;
    seen_ = 0;
    idle_ = 0;
    struct sigaction action{};
    action.sa_flags = SA_NODEFER | SA_RESTART;
    action.sa_handler = [](int) { tick(); };
    ::sigaction(SIGVTALRM, &action, &old_tick_);
    action.sa_handler = [](int) { aborted(); };
    ::sigaction(SIGABRT, &action, &old_abort_);
    const itimerval every_second{{1, 0}, {1, 0}};
    ::setitimer(ITIMER_VIRTUAL, &every_second, nullptr);
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  ~watch() {
    const itimerval off{};
    ::setitimer(ITIMER_VIRTUAL, &off, nullptr);
    ::sigaction(SIGVTALRM, &old_tick_, nullptr);
    ::sigaction(SIGABRT, &old_abort_, nullptr);
  }

 private:
  // LIMIT: seconds of processor time that user code may take between two accesses.
  static constexpr int idle_max = 3;

  static void tick() {
    const bool same = watched_->work() == seen_ && engine::is_user();
    seen_ = watched_->work();
    idle_ = same ? idle_ + 1 : 0;
    if (idle_ < idle_max) return;
    watched_->misuse("thread " + std::to_string(watched_->thread()) +
                     " does not end: it runs for " + std::to_string(idle_max) +
                     " s without touching shared state, after " + watched_->last_place());
  }

  static void aborted() {
    if (!engine::is_user()) return;  // the checker's own abort goes its way
    watched_->fail("abort", "abort() was called after " + watched_->last_place());
  }

  static inline engine* watched_ = nullptr;
  static inline std::uint64_t seen_ = 0;
  static inline int idle_ = 0;
  struct sigaction old_tick_{};
  struct sigaction old_abort_{};
};

}  // namespace model::detail
