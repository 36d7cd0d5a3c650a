// raw_mutex under the checker, futex and all.
//
// Proves, for two and three threads that lock once or twice each:
//   - mutual exclusion, and that each holder sees what the last one wrote;
//   - no lost wake-up: whoever sleeps for the lock is woken, also when a sleep ends for no reason
//   and
//     when `contended` was left behind by a waiter that needed no wake;
//   - try_lock takes a free lock and never a held one.
// Outside: fairness (there is none), and the length of the spin (one look here).
// The other models take this lock as proven and wait for it in one step (tests/model/world.cpp), so
// the real one is compiled here, in a namespace of its own.
#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "tests/model/protocol.hpp"

namespace real {
using ::smarm::detail::acquire;
using ::smarm::detail::atomic;
using ::smarm::detail::futex_wait;
using ::smarm::detail::futex_wake;
using ::smarm::detail::relax;
using ::smarm::detail::relaxed;
using ::smarm::detail::release;
using ::smarm::detail::spin_limit;
#include "base/raw_mutex.hpp"
// The order matters: the source names the class above, not the models'.
#include "base/raw_mutex.cpp"
}  // namespace real

namespace {

using real::smarm::detail::raw_guard;
using real::smarm::detail::raw_mutex;

struct counter {
  raw_mutex mutex;
  model::cell<int> value{0};
  void add() {
    const raw_guard guard(mutex);
    value.write(value.read() + 1);
  }
};

PROTOCOL(raw_mutex_two_threads) {
  counter shared;
  model::parallel([&] { shared.add(); }, [&] { shared.add(); });
  model::expect(shared.value.read() == 2, "no update is lost");
}

PROTOCOL(raw_mutex_locked_twice) {
  counter shared;
  model::parallel(
      [&] {
        shared.add();
        shared.add();
      },
      [&] { shared.add(); });
  model::expect(shared.value.read() == 3, "no update is lost");
}

PROTOCOL_WITH(raw_mutex_three_threads, o.spurious = 0) {
  counter shared;
  model::parallel([&] { shared.add(); }, [&] { shared.add(); }, [&] { shared.add(); });
  model::expect(shared.value.read() == 3, "no update is lost");
}

PROTOCOL(raw_mutex_try_lock) {
  counter shared;
  int taken = 0;
  model::parallel([&] { shared.add(); },
                  [&] {
                    if (!shared.mutex.try_lock()) return;
                    taken = 1;
                    shared.value.write(shared.value.read() + 1);
                    shared.mutex.unlock();
                  });
  model::expect(shared.value.read() == 1 + taken, "a failed try has not the lock");
  model::expect(shared.mutex.try_lock(), "a lock that was given back is free");
  model::expect(!shared.mutex.try_lock(), "a lock that is held is not free");
  shared.mutex.unlock();
}

}  // namespace
