// The blocking pool under the checker: completion against stop, and the pool's own threads.
//
// Proves, for a pool of one thread and one or two jobs:
//   - who waits for a job is woken when it has run, and sees what it did;
//   - a stop withdraws a job that is queued, and otherwise comes at its end: nothing touches the
//   job
//     after run has left;
//   - a job that may be left behind is owned by whoever still needs it, to its end;
//   - each operation is outstanding until it was withdrawn or has run;
//   - the idle thread that times out, is called, or is told to end: none is lost or called twice.
// SAMPLED, not exhausted: the pool's threads, their idle time and its end have more executions than
// can be visited, so each model is 10,000 random ones of them, the same in every run.
// Threads of the pool are model threads (tests/model/kernel.cpp).
// Outside: more than one thread of the pool, no thread to be had.
#include <memory>
#include <optional>

#include "io/blocking_pool.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/kernel.hpp"
#include "tests/model/protocol.hpp"

#define SAMPLED o.spurious = 0, o.mode = model::search_mode::random, o.runs = 10'000

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::kernel;
using under_model::stage;

// A job that may be left behind counts without the checker: its shared_ptr orders the accesses by a
// count that the checker does not see.
struct shared_job final : pool_job {
  void run() noexcept override { ++runs; }
  int runs = 0;
};

struct counting_job final : pool_job {
  void run() noexcept override { runs.write(runs.read() + 1); }
  model::cell<int> runs{0};
};

// office is a pool with its kernel; the destructor ends its threads.
struct office {
  ~office() {
    pool.reset();
    model::expect(system.outstanding.load(relaxed) == 0, "no operation is left outstanding");
  }
  kernel system;
  std::optional<blocking_pool> pool;
};

runtime_core& no_runtime() {
  static char place = 0;
  return *reinterpret_cast<runtime_core*>(&place);  // never looked into
}

PROTOCOL_WITH(blocking_completion_against_stop, SAMPLED) {
  stage here;
  actor asker;
  office at;
  at.pool.emplace(no_runtime());
  model::parallel(
      [&] {
        bool ran = false;
        const ending how = here.run(asker, [&] {
          counting_job job;
          const struct look {
            counting_job& job;
            bool& ran;
            ~look() { ran = job.runs.read() == 1; }
          } at_the_end{job, ran};
          at.pool->run(job);
        });
        model::expect(how == ending::stopped || ran, "run returns when the job has run");
      },
      [&] { under_model::stop(asker); });
}

PROTOCOL_WITH(blocking_two_jobs_one_thread, SAMPLED) {
  stage here;
  actor first;
  actor second;
  office at;
  at.pool.emplace(no_runtime());
  const auto ask = [&](actor& who) {
    here.run(who, [&] {
      counting_job job;
      at.pool->run(job);
      model::expect(job.runs.read() == 1, "run returns when the job has run");
    });
  };
  model::parallel([&] { ask(first); }, [&] { ask(second); });
}

PROTOCOL_WITH(blocking_left_behind_against_completion, SAMPLED) {
  stage here;
  actor asker;
  office at;
  at.pool.emplace(no_runtime());
  model::parallel(
      [&] {
        here.run(asker, [&] {
          const auto job = std::make_shared<shared_job>();
          if (at.pool->run_detachable(job, deadline::never())) {
            model::expect(job->runs == 1, "true: it has run");
          }
        });
      },
      [&] { under_model::stop(asker); });
}

}  // namespace
}  // namespace smarm::detail
