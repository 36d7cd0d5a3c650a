// The mutex and the condition variable under the checker, by their public faces.
//
// Proves, for two or three actors that lock once each:
//   - mutual exclusion, and that each holder sees what the last one wrote;
//   - no waiter is forgotten: after an unlock that frees and invites, after one that hands over
//   (time
//     has passed), when an invited waiter is stopped or gives up;
//   - a lock that a deadline or a stop meets is taken or free, and the next one gets it;
//   - a notification reaches a waiter that waits, and passes on from one that a stop takes away.
// Actors are model threads (tests/model/actors.hpp); time is moved by a thread of the model.
// Outside: fairness over more than one round, the length of the spin.
#include <array>
#include <mutex>

#include <smarm/condition_variable.hpp>
#include <smarm/mutex.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::stage;

constexpr std::int64_t beyond_handover = 5'000'000;

struct guarded {
  mutex lock;
  model::cell<int> value{0};

  void add() {
    const std::scoped_lock guard(lock);
    value.write(value.read() + 1);
  }
  // add_and_unlock is for whoever has the lock.
  void add_and_unlock() {
    value.write(value.read() + 1);
    lock.unlock();
  }
  // try_add adds where that needs no wait: whoever runs may be faster than who waits.
  void try_add() {
    if (lock.try_lock()) add_and_unlock();
  }
  // is_free tells whether the lock can be had, by whoever runs after all others.
  [[nodiscard]] bool is_free() {
    const bool taken = lock.try_lock();
    if (taken) lock.unlock();
    return taken;
  }
};

PROTOCOL(mutex_two_lockers) {
  stage here;
  actor first;
  actor second;
  guarded shared;
  model::parallel([&] { here.run(first, [&] { shared.add(); }); },
                  [&] { here.run(second, [&] { shared.add(); }); });
  model::expect(shared.value.read() == 2 && shared.is_free(), "no update is lost");
}

// The holder keeps the lock from the start; two wait for it, and time may pass for the first.
PROTOCOL(mutex_hand_over) {
  stage here;
  actor waiter;
  guarded shared;
  model::expect(shared.lock.try_lock());
  model::parallel([&] { here.run(waiter, [&] { shared.add(); }); },
                  [&] {
                    shared.add_and_unlock();
                    shared.try_add();
                  },
                  [&] { model::sleep_until(beyond_handover); });
  model::expect(shared.value.read() >= 2 && shared.is_free(), "the waiter had its turn");
}

// No exchange fails without a reason: with one that does it takes half a minute.
PROTOCOL_WITH(mutex_two_waiters, o.weak_failures = 0) {
  stage here;
  actor first;
  actor second;
  guarded shared;
  model::expect(shared.lock.try_lock());
  model::parallel([&] { here.run(first, [&] { shared.add(); }); },
                  [&] { here.run(second, [&] { shared.add(); }); }, [&] { shared.lock.unlock(); });
  model::expect(shared.value.read() == 2 && shared.is_free(), "no update is lost");
}

// A third one, who never waits, may be faster than the one that an unlock has invited.
PROTOCOL(mutex_third_before_the_invited) {
  stage here;
  actor waiter;
  guarded shared;
  model::expect(shared.lock.try_lock());
  model::parallel([&] { here.run(waiter, [&] { shared.add(); }); },
                  [&] { shared.add_and_unlock(); }, [&] { shared.try_add(); });
  model::expect(shared.value.read() >= 2 && shared.is_free(), "the waiter had its turn");
}

PROTOCOL(mutex_deadline_against_unlock) {
  stage here(true);
  actor waiter;
  guarded shared;
  model::expect(shared.lock.try_lock());
  bool got = false;
  model::parallel(
      [&] {
        here.run(waiter, [&] {
          got = shared.lock.try_lock_until(deadline::from_ns(beyond_handover));
          if (!got) return;
          shared.value.write(shared.value.read() + 1);
          shared.lock.unlock();
        });
      },
      [&] {
        shared.value.write(1);
        shared.lock.unlock();
      },
      [&] { here.fire_due(beyond_handover); });
  model::expect(shared.is_free(), "taken and given back, or never taken");
  model::expect(shared.value.read() == (got ? 2 : 1));
}

PROTOCOL(mutex_stop_against_unlock) {
  stage here;
  actor waiter;
  guarded shared;
  model::expect(shared.lock.try_lock());
  ending how{};
  model::parallel([&] { how = here.run(waiter, [&] { shared.add(); }); },
                  [&] { shared.lock.unlock(); }, [&] { under_model::stop(waiter); });
  model::expect(shared.is_free(), "a stop leaves no lock behind");
  model::expect(shared.value.read() == (how == ending::normal ? 1 : 0));
}

// The invited one is stopped: the other one gets the invitation.
// No exchange fails without a reason, as above.
PROTOCOL_WITH(mutex_stop_of_the_invited, o.weak_failures = 0; SAMPLED_IN_THE_SUITE) {
  stage here;
  actor first;
  actor second;
  guarded shared;
  model::expect(shared.lock.try_lock());
  model::parallel([&] { here.run(first, [&] { shared.add(); }); },
                  [&] { here.run(second, [&] { shared.add(); }); },
                  [&] {
                    under_model::stop(first);
                    shared.lock.unlock();
                  });
  model::expect(shared.value.read() >= 1 && shared.is_free(), "the second had its turn");
}

// Whoever takes a free lock may destroy it: unlock does not touch it afterwards.
PROTOCOL(mutex_destroyed_by_the_next) {
  stage here;
  actor waiter;
  auto shared = std::make_unique<guarded>();
  model::expect(shared->lock.try_lock());
  model::parallel(
      [&] {
        here.run(waiter, [&] {
          shared->add();
          shared.reset();
        });
      },
      [&, lock = &shared->lock] { lock->unlock(); });
}

PROTOCOL(condition_notify_against_wait) {
  stage here;
  actor waiter;
  actor notifier;
  guarded shared;
  condition_variable changed;
  model::parallel(
      [&] {
        here.run(waiter, [&] {
          std::unique_lock lock(shared.lock);
          while (shared.value.read() == 0) {
            static_cast<void>(changed.wait_until(lock, deadline::never()));
          }
        });
      },
      [&] {
        here.run(notifier, [&] { shared.add(); });
        changed.notify_one();
      });
  model::expect(shared.is_free());
}

// wait_in waits for a notification with a lock that was taken for it; until_it_waits comes back
// when it does.
void wait_in(condition_variable& changed, mutex& lock) {
  std::unique_lock held(lock, std::adopt_lock);
  model::expect(changed.wait_until(held, deadline::never()) == std::cv_status::no_timeout);
}
void until_it_waits(mutex& lock) {
  while (!lock.try_lock()) model::pause();
  lock.unlock();
}

// A notification that a stopped waiter has taken is the other's.
PROTOCOL_WITH(condition_stop_of_the_notified, o.weak_failures = 0) {
  stage here;
  actor first;
  actor second;
  std::array<mutex, 2> locks;
  condition_variable changed;
  model::expect(locks[0].try_lock() && locks[1].try_lock());
  model::parallel(
      [&] {
        const ending how = here.run(first, [&] { wait_in(changed, locks[0]); });
        if (how == ending::normal) changed.notify_one();
      },
      [&] { here.run(second, [&] { wait_in(changed, locks[1]); }); },
      [&] {
        until_it_waits(locks[0]);
        until_it_waits(locks[1]);
        changed.notify_one();
        under_model::stop(first);
      });
  model::expect(locks[0].try_lock() && locks[1].try_lock(), "the locks were given back");
  locks[0].unlock();
  locks[1].unlock();
}

// All that wait are woken; that is all that it has to come to.
PROTOCOL_WITH(condition_notify_all, o.weak_failures = 0) {
  stage here;
  std::array<actor, 2> waiters;
  std::array<mutex, 2> locks;
  condition_variable changed;
  model::expect(locks[0].try_lock() && locks[1].try_lock());
  model::parallel([&] { here.run(waiters[0], [&] { wait_in(changed, locks[0]); }); },
                  [&] { here.run(waiters[1], [&] { wait_in(changed, locks[1]); }); },
                  [&] {
                    until_it_waits(locks[0]);
                    until_it_waits(locks[1]);
                    changed.notify_all();
                  });
}

PROTOCOL(condition_stop_against_notify) {
  stage here;
  actor first;
  mutex lock;
  condition_variable changed;
  model::parallel(
      [&] {
        here.run(first, [&] {
          std::unique_lock held(lock);
          static_cast<void>(changed.wait_until(held, deadline::never()));
          changed.notify_one();
        });
      },
      [&] { under_model::stop(first); }, [&] { changed.notify_one(); });
  model::expect(lock.try_lock(), "the lock was given back");
  lock.unlock();
}

// Nobody notifies: the wait ends at its deadline, and leaves nothing for a later notification.
PROTOCOL(condition_deadline) {
  stage here(true);
  actor waiter;
  mutex lock;
  condition_variable changed;
  std::cv_status how = std::cv_status::no_timeout;
  model::parallel(
      [&] {
        here.run(waiter, [&] {
          std::unique_lock held(lock);
          how = changed.wait_until(held, deadline::from_ns(beyond_handover));
        });
      },
      [&] { here.fire_due(beyond_handover); });
  model::expect(how == std::cv_status::timeout, "nobody has notified");
  changed.notify_all();
}

}  // namespace
}  // namespace smarm
