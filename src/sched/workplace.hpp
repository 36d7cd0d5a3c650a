// workplace is what the schedulers of one runtime share in order to find work and to sleep.
//
// Threads: as its parts say. A foreign thread that makes an actor runnable keeps the workplace in
// being by a pin (run_life).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <smarm/config.hpp>

#include "sched/coordinator.hpp"
#include "sched/run_life.hpp"
#include "sched/run_queue.hpp"
#include "sched/slot.hpp"
#include "sched/timers.hpp"

namespace smarm::detail {

class picker;

// idle_duties is what a scheduler that has run out of work does besides looking for some.
class idle_duties {
 public:
  // look_at_drivers has the drivers finish what is ready by now; see driver::look.
  [[nodiscard]] virtual bool look_at_drivers() noexcept = 0;
  // return_surplus gives memory back that has not been used for a while, and says when to come
  // again; never_ns: there is nothing to come for.
  [[nodiscard]] virtual std::int64_t return_surplus(std::int64_t now_ns) noexcept = 0;

 protected:
  ~idle_duties() = default;
};

struct workplace {
  // `cpus` is how many of the schedulers can run at the same time. Throws std::bad_alloc.
  workplace(const config& how, unsigned cpus, run_life& counts, idle_duties& others)
      : queue(how.run_queue, how.schedulers, std::min(how.schedulers, cpus), how.max_actors),
        sleepers(how.schedulers, cpus),
        life(counts),
        actors_max(how.max_actors),
        duties(others) {
    pickers.reserve(how.schedulers);
  }

  // enqueue_from_outside makes a queued actor runnable, from any thread that keeps the workplace in
  // being: publish, then wake one scheduler if one sleeps. A scheduler has picker::enqueue.
  void enqueue_from_outside(slot& runnable) noexcept {
    queue.push_from_outside(runnable);
    sleepers.wake_one_if_idle();
  }

  run_queue queue;
  coordinator sleepers;
  class timers timers;
  run_life& life;
  const std::size_t actors_max;
  idle_duties& duties;
  std::vector<picker*> pickers;  // one a scheduler, in order; constant while any of them runs
};

}  // namespace smarm::detail
