// parker and thread_parker under the checker, futex and all.
//
// Proves, for a sleeper with one or two parks and one or two wakers:
//   - no lost wake-up, also when a sleep ends for no reason, and what the waker wrote is visible;
//   - a permit that comes first is kept, one that comes with the deadline is either taken by that
//     park or by the next, and never both or neither;
//   - a wake of a wait epoch that has passed leaves the open one alone (thread_parker).
// Outside: more than two permits under way, the pool of thread_parkers, the wrap of the epoch.
// The other models take the parker as proven (tests/model/world.cpp), so the real ones are compiled
// here, in a namespace of their own.
#include <pthread.h>

#include <cstdint>
#include <new>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/perturb.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/current.hpp"
#include "tests/model/protocol.hpp"

namespace real {
using ::smarm::detail::acquire;
using ::smarm::detail::atomic;
using ::smarm::detail::current_thread;
using ::smarm::detail::fatal;
using ::smarm::detail::futex_result;
using ::smarm::detail::futex_wait;
using ::smarm::detail::futex_wake;
using ::smarm::detail::never_ns;
using ::smarm::detail::perturb;
using ::smarm::detail::perturb_point;
using ::smarm::detail::raw_guard;
using ::smarm::detail::raw_mutex;
using ::smarm::detail::relaxed;
using ::smarm::detail::release;
using ::smarm::detail::thread_state;
#include "sched/parker.hpp"
#include "sched/thread_parker.hpp"
// The order matters: the sources name the classes above, not the models'.
#include "sched/parker.cpp"
#include "sched/thread_parker.cpp"
}  // namespace real

namespace {

using real::smarm::detail::parker;
using real::smarm::detail::thread_parker;
using smarm::detail::never_ns;

PROTOCOL(parker_park_against_unpark) {
  parker sleeper;
  model::cell<int> news{0};
  model::parallel(
      [&] {
        model::expect(sleeper.park(never_ns), "a park without a deadline ends with the permit");
        model::expect(news.read() == 1, "what the waker wrote");
      },
      [&] {
        news.write(1);
        sleeper.unpark();
      });
}

PROTOCOL(parker_permit_against_deadline) {
  parker sleeper;
  model::cell<int> news{0};
  model::parallel(
      [&] {
        if (!sleeper.park(100)) {
          model::expect(sleeper.park(never_ns), "the permit that came too late is kept");
        }
        model::expect(news.read() == 1, "what the waker wrote");
        model::expect(!sleeper.park(200), "a permit is taken once");
      },
      [&] {
        news.write(1);
        sleeper.unpark();
      });
}

PROTOCOL_WITH(parker_two_wakers, o.spurious = 0) {
  parker sleeper;
  model::cell<int> first{0};
  model::cell<int> second{0};
  bool again = false;
  model::parallel(
      [&] {
        model::expect(sleeper.park(never_ns), "one of two permits");
        again = sleeper.park(100);
      },
      [&] {
        first.write(1);
        sleeper.unpark();
      },
      [&] {
        second.write(1);
        sleeper.unpark();
      });
  if (!again) static_cast<void>(sleeper.park(200));
  model::expect(!sleeper.park(300), "two wakes are at most two permits");
}

PROTOCOL(parker_two_rounds) {
  parker sleeper;
  model::cell<int> news{0};
  smarm::detail::atomic<int> round{0};
  model::parallel(
      [&] {
        model::expect(sleeper.park(never_ns), "the first wake");
        model::expect(news.read() == 1, "the first news");
        round.store(1, smarm::detail::release);
        model::expect(sleeper.park(never_ns), "the second wake");
        model::expect(news.read() == 2, "the second news");
      },
      [&] {
        news.write(1);
        sleeper.unpark();
        round.await([](int now) { return now == 1; }, smarm::detail::acquire);
        news.write(2);
        sleeper.unpark();
      });
}

PROTOCOL(thread_parker_park_against_wake) {
  thread_parker sleeper;
  model::cell<int> news{0};
  const std::uint32_t epoch = sleeper.begin_wait();
  model::parallel(
      [&] {
        model::expect(sleeper.park(epoch, never_ns),
                      "a park without a deadline ends with the wake");
        model::expect(news.read() == 1, "what the waker wrote");
      },
      [&] {
        news.write(1);
        sleeper.wake(epoch);
      });
}

PROTOCOL(thread_parker_wake_against_deadline) {
  thread_parker sleeper;
  model::cell<int> news{0};
  const std::uint32_t epoch = sleeper.begin_wait();
  model::parallel(
      [&] {
        if (!sleeper.park(epoch, 100)) return;
        model::expect(news.read() == 1, "what the waker wrote, however late it came");
      },
      [&] {
        news.write(1);
        sleeper.wake(epoch);
      });
}

PROTOCOL(thread_parker_stale_wake) {
  thread_parker sleeper;
  model::cell<int> news{0};
  smarm::detail::atomic<std::uint32_t> open{0};
  const std::uint32_t first = sleeper.begin_wait();
  model::parallel(
      [&] {
        if (sleeper.park(first, 100)) model::expect(true);
        const std::uint32_t second = sleeper.begin_wait();
        open.store(second, smarm::detail::release);
        model::expect(sleeper.park(second, never_ns), "the wake of the open epoch");
        model::expect(news.read() == 1, "only its own wake ends a wait");
      },
      [&] { sleeper.wake(first); },
      [&] {
        const std::uint32_t epoch =
            open.await([](std::uint32_t now) { return now != 0; }, smarm::detail::acquire);
        news.write(1);
        sleeper.wake(epoch);
      });
}

}  // namespace
