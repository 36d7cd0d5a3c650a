// A program of models, as a user of the library writes one; the tests of the command line run it,
// and the README quotes it.
#include <memory>
#include <vector>

#include "model/adopt_new.hpp"
#include "model/real_world.hpp"
#include "model/runner.hpp"

namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// Message passing: what was written before the flag is seen after it.
MODEL(message_passing) {
  model::atomic<int> flag{0};
  model::cell<int> data{0};
  model::name(flag, "flag");
  model::parallel(
      [&] {
        data.write(42);
        flag.store(1, memory_order_release);
      },
      [&] {
        while (flag.load(memory_order_acquire) == 0) model::pause();
        model::expect(data.read() == 42, "old data behind a new flag");
      });
}

// Containers of the code under test live in the memory of the run.
MODEL(containers) {
  const auto shared = std::make_unique<model::atomic<int>>(3);
  model::parallel(
      [&] {
        shared->fetch_add(1, memory_order_relaxed);
        const std::vector<int> local(3);
      },
      [&] { shared->fetch_add(1, memory_order_relaxed); });
  model::expect(shared->load(memory_order_relaxed) == 5);
}

// A re-check before sleeping: skipping it loses the wake-up.
MODEL_WITH(sleeper, o.spurious = 0) {
  model::atomic<int> ready{0};
  model::parallel(
      [&] {
        while (ready.load(memory_order_acquire) == 0)
          static_cast<void>(model::futex_wait(ready, 0));
      },
      [&] {
        ready.store(1, memory_order_release);
        model::futex_wake(ready, 1);
      });
}

// Sampled, unless the command line wants all.
MODEL_WITH(two_stores, o.mode = model::search_mode::random, o.runs = 50) {
  model::atomic<int> word{0};
  model::parallel([&] { word.store(1, memory_order_relaxed); },
                  [&] { word.store(2, memory_order_relaxed); });
}

MODEL_FAILS(forgotten_block, "leak") {
  std::vector<int>* volatile kept = new std::vector<int>;
  static_cast<void>(kept);
}

MODEL_FAILS(block_freed_twice, "double free") {
  int* volatile kept = new int;
  delete kept;
  delete kept;
}

}  // namespace

#if defined(MODEL_MISUSES)
#include <time.h>

#include <chrono>
#include <thread>

namespace {

MODEL(reads_the_clock) { static_cast<void>(std::chrono::steady_clock::now()); }
MODEL(starts_a_real_thread) {
  std::thread{[] {}}.join();
}
MODEL(sleeps) {
  const timespec soon{0, 1};
  ::nanosleep(&soon, nullptr);
}
MODEL_WITH(allocates_outside, o.adopt_new = false) { ::operator delete(::operator new(8)); }

}  // namespace
#endif

MODEL_MAIN();
