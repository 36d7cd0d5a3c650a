// config says how a runtime is built; a default one suits a service that owns its machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm {

// run_queue_kind chooses the queue in which runnable actors wait for a scheduler.
enum class run_queue_kind : std::uint8_t {
  locked,   // one ring under a lock: strict first come, first served
  mpmc,     // one lock-free ring with room for every actor
  striped,  // a locked ring a CPU; others are searched when a scheduler's own is empty
  local,    // a lock-free ring a scheduler, from which idle ones take half
};

struct config {
  // schedulers: OS threads that run actors, 1 to 1,024; 0 means one a CPU that this process may
  // use, by its affinity mask and the CPU quota of its control groups, rounded up. The thread that
  // calls run() is one of them.
  unsigned schedulers = 0;

  run_queue_kind run_queue = run_queue_kind::local;

  // stack_size: bytes of an actor's stack, 16 KiB to 1 GiB, rounded up to a size class; spawn may
  // ask for another. Only the pages that are touched cost memory.
  std::size_t stack_size = std::size_t{64} * 1024;

  // max_actors: how many actors may live at once, 1 to 2^26; a spawn beyond fails. Where it is
  // large, one may fail when less than a sixteenth is left, since schedulers count in batches.
  std::size_t max_actors = std::size_t{1} << 20;

  // blocking_threads_max: the most threads that blocking(f) may use at once, 1 to 4,096.
  unsigned blocking_threads_max = 64;

  // blocking_idle: how long an idle thread of the blocking pool is kept, 0 to one hour.
  std::chrono::milliseconds blocking_idle = std::chrono::seconds(10);

  // on_unobserved_failure is called when an actor was ended by an exception and nobody can learn
  // of it: its join handle was dropped and no monitor watches it. It runs on the scheduler that
  // ran the actor and must neither park nor throw. Null: one line on standard error.
  void (*on_unobserved_failure)(pid who, std::string_view name, const exit_reason& why) = nullptr;
};

}  // namespace smarm
