// What waits: mutexes, condition variables, futexes, spin loops, virtual time. Goal: correct uses
// pass, each classic mistake is found and named. Method: small models, verdict and kind compared.
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>

#include "model/model.hpp"

namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

std::string kind_of(const std::function<void()>& body, model::options wished = {}) {
  const model::result r = model::check(wished, body);
  return r.outcome == model::verdict::fail ? r.kind : name_of(r.outcome);
}

TEST(mutex, makes_a_plain_counter_right) {
  const model::result r = model::check({}, [] {
    model::mutex lock;
    model::cell<int> counter{0};
    const auto increment = [&] {
      const std::lock_guard held{lock};
      counter.write(counter.read() + 1);
    };
    model::parallel(increment, increment, increment);
    model::expect(counter.read() == 3);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(r.executions, 6U);  // the orders of three critical sections
}

TEST(mutex, does_not_help_who_does_not_take_it) {
  EXPECT_EQ(kind_of([] {
              model::mutex lock;
              model::cell<int> counter{0};
              model::parallel(
                  [&] {
                    const std::lock_guard held{lock};
                    counter.write(1);
                  },
                  [&] { counter.write(2); });
            }),
            "data race");
}

TEST(mutex, two_taken_in_opposite_orders_deadlock) {
  EXPECT_EQ(kind_of([] {
              model::mutex first;
              model::mutex second;
              model::parallel(
                  [&] {
                    const std::lock_guard a{first};
                    const std::lock_guard b{second};
                  },
                  [&] {
                    const std::lock_guard b{second};
                    const std::lock_guard a{first};
                  });
            }),
            "deadlock");
}

TEST(mutex, taken_twice_by_one_thread_deadlocks) {
  EXPECT_EQ(kind_of([] {
              model::mutex lock;
              lock.lock();
              lock.lock();
            }),
            "deadlock");
}

TEST(condition_variable, hands_over_with_a_predicate) {
  EXPECT_EQ(kind_of([] {
              model::mutex lock;
              model::condition_variable changed;
              model::cell<bool> ready{false};
              model::parallel(
                  [&] {
                    std::unique_lock held{lock};
                    changed.wait(held, [&] { return ready.read(); });
                  },
                  [&] {
                    const std::lock_guard held{lock};
                    ready.write(true);
                    changed.notify_one();
                  });
            }),
            "pass");
}

TEST(condition_variable, loses_the_wake_up_of_who_does_not_look_first) {
  model::options wished;
  wished.spurious = 0;
  EXPECT_EQ(kind_of(
                [] {
                  model::mutex lock;
                  model::condition_variable changed;
                  model::parallel(
                      [&] {
                        std::unique_lock held{lock};
                        changed.wait(held);
                      },
                      [&] { changed.notify_one(); });
                },
                wished),
            "deadlock");
}

TEST(condition_variable, notify_one_may_wake_either_sleeper) {
  std::set<int> first;
  model::options wished;
  wished.spurious = 0;
  const model::result r = model::check(wished, [&] {
    model::mutex lock;
    model::condition_variable changed;
    int asleep = 0;
    int woken = 0;
    const auto sleeper = [&](int who) {
      std::unique_lock held{lock};
      ++asleep;
      changed.wait(held);
      if (woken == 0) woken = who;
      changed.notify_one();
    };
    model::parallel([&] { sleeper(1); }, [&] { sleeper(2); },
                    [&] {
                      const std::lock_guard held{lock};
                      model::assume(asleep == 2);
                      changed.notify_one();
                    });
    first.insert(woken);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(first, (std::set<int>{1, 2}));
}

TEST(condition_variable, serves_two_consumers_of_two_producers) {
  EXPECT_EQ(kind_of([] {
              model::mutex lock;
              model::condition_variable changed;
              model::cell<int> items{0};
              const auto consume = [&] {
                std::unique_lock held{lock};
                changed.wait(held, [&] { return items.read() > 0; });
                items.write(items.read() - 1);
              };
              const auto produce = [&] {
                const std::lock_guard held{lock};
                items.write(items.read() + 1);
                changed.notify_one();
              };
              model::parallel(consume, consume, produce, produce);
            }),
            "pass");
}

TEST(condition_variable, wakes_for_no_reason_which_an_if_does_not_survive) {
  EXPECT_EQ(kind_of([] {
              model::mutex lock;
              model::condition_variable changed;
              bool ready = false;
              model::parallel(
                  [&] {
                    std::unique_lock held{lock};
                    if (!ready) changed.wait(held);
                    model::expect(ready, "woken before it was ready");
                  },
                  [&] {
                    const std::lock_guard held{lock};
                    ready = true;
                    changed.notify_one();
                  });
            }),
            "assertion");
}

// A parker on a futex: 0 empty, 1 notified, -1 parked.
void park_and_unpark(std::memory_order publish) {
  model::atomic<int> state{0};
  model::cell<int> payload{0};
  model::parallel(
      [&] {
        if (state.fetch_sub(1, memory_order_acquire) != 1) {
          int expected = 1;
          do {
            static_cast<void>(model::futex_wait(state, -1));
            expected = 1;
          } while (!state.compare_exchange_strong(expected, 0, memory_order_acquire,
                                                  memory_order_relaxed));
        }
        model::expect(payload.read() == 5);
      },
      [&] {
        payload.write(5);
        if (state.exchange(1, publish) == -1) model::futex_wake(state, 1);
      });
}

TEST(futex, parker_loses_no_wake_up) {
  EXPECT_EQ(kind_of([] { park_and_unpark(memory_order_release); }), "pass");
}

TEST(futex, wake_up_publishes_nothing_by_itself) {
  EXPECT_EQ(kind_of([] { park_and_unpark(memory_order_relaxed); }), "data race");
}

TEST(futex, look_and_sleep_are_one_step_for_the_waker) {
  // The waker stores, relaxed, and wakes; the sleeper must see the store or be woken.
  const model::result r = model::check({}, [] {
    model::atomic<int> word{0};
    model::parallel(
        [&] {
          while (word.load(memory_order_relaxed) == 0)
            static_cast<void>(model::futex_wait(word, 0));
        },
        [&] {
          word.store(1, memory_order_relaxed);
          model::futex_wake(word, 1);
        });
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
}

TEST(futex, waker_that_forgets_to_store_first_leaves_the_sleeper_asleep) {
  EXPECT_EQ(kind_of([] {
              model::atomic<int> word{0};
              model::parallel(
                  [&] {
                    while (word.load(memory_order_relaxed) == 0)
                      static_cast<void>(model::futex_wait(word, 0));
                  },
                  [&] {
                    model::futex_wake(word, 1);
                    word.store(1, memory_order_relaxed);
                  });
            }),
            "deadlock");
}

TEST(futex, timed_wait_ends_woken_or_timed_out_and_never_stays) {
  std::set<model::wait_result> seen;
  const model::result r = model::check({}, [&] {
    model::atomic<int> word{0};
    model::wait_result how{};
    model::parallel([&] { how = model::futex_wait(word, 0, 100); },
                    [&] {
                      word.store(1, memory_order_relaxed);
                      model::futex_wake(word, 1);
                    });
    if (how == model::wait_result::timed_out) model::expect(model::now() >= 100);
    seen.insert(how);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(seen.size(), 4U);
}

TEST(naive_parker, loses_a_wake_up_unless_its_accesses_are_seq_cst) {
  const auto parker = [](std::memory_order store, std::memory_order load) {
    return [=] {
      model::atomic<int> flag{0};
      model::atomic<int> sleeping{0};
      model::atomic<int> woken{0};
      model::parallel(
          [&] {
            sleeping.store(1, store);
            if (flag.load(load) == 0)
              woken.await([](int v) { return v == 1; }, memory_order_acquire);
          },
          [&] {
            flag.store(1, store);
            if (sleeping.load(load) == 1) woken.store(1, memory_order_release);
          });
    };
  };
  EXPECT_EQ(kind_of(parker(memory_order_release, memory_order_acquire)), "deadlock");
  EXPECT_EQ(kind_of(parker(memory_order_seq_cst, memory_order_seq_cst)), "pass");
}

TEST(await_until, ends_with_the_value_or_at_its_deadline_and_never_stays) {
  std::set<std::string> seen;
  const model::result r = model::check({}, [&] {
    model::atomic<int> word{0};
    std::string how;
    model::parallel(
        [&] {
          const auto is_set = [](int v) { return v != 0; };
          const auto got = word.await_until(50, is_set, memory_order_acquire);
          how = got ? std::to_string(*got) : "late";
          model::expect(got || model::now() >= 50, "it gave up before its time");
        },
        [&] { word.store(7, memory_order_release); });
    seen.insert(how);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(seen, (std::set<std::string>{"7", "late"}));
}

TEST(await_until, that_nobody_answers_is_no_deadlock_unless_it_has_no_deadline) {
  const auto alone = [](std::int64_t deadline) {
    return [deadline] {
      model::atomic<int> word{0};
      const auto is_set = [](int v) { return v != 0; };
      const auto take = [](int) { return 0; };
      model::expect(!word.await_update_until(deadline, is_set, take, memory_order_acquire));
      model::expect(model::now() == deadline);
    };
  };
  EXPECT_EQ(kind_of(alone(50)), "pass");
  EXPECT_EQ(kind_of(alone(model::never)), "deadlock");
}

TEST(await_until, that_gave_up_leaves_what_comes_later) {
  EXPECT_EQ(
      kind_of([] {
        model::atomic<int> permit{0};
        bool taken = false;
        model::parallel(
            [&] {
              const auto is_there = [](int v) { return v == 1; };
              const auto take = [](int) { return 0; };
              taken =
                  permit.await_update_until(10, is_there, take, memory_order_acquire).has_value();
            },
            [&] { permit.store(1, memory_order_release); });
        model::expect(permit.load(memory_order_relaxed) == (taken ? 0 : 1));
      }),
      "pass");
}

TEST(spin_loop, ends_when_another_thread_writes) {
  const model::result r = model::check({}, [] {
    model::atomic<int> flag{0};
    model::cell<int> data{0};
    model::parallel(
        [&] {
          while (flag.load(memory_order_acquire) == 0) model::pause();
          model::expect(data.read() == 1);
        },
        [&] {
          data.write(1);
          flag.store(1, memory_order_release);
        });
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(r.executions, 1U);
}

TEST(spin_loop, nobody_writes_for_is_a_livelock) {
  EXPECT_EQ(kind_of([] {
              model::atomic<int> flag{0};
              model::parallel([&] {
                flag.fetch_add(0, memory_order_relaxed);
                while (flag.load(memory_order_acquire) == 0) model::pause();
              });
            }),
            "livelock");
}

TEST(spin_loop, that_writes_in_every_round_is_incomplete_and_not_passed) {
  model::options wished;
  wished.events_max = 50;
  EXPECT_EQ(kind_of(
                [] {
                  model::atomic<int> flag{0};
                  model::parallel([&] {
                    while (flag.exchange(1, memory_order_acquire) != 2) model::pause();
                  });
                },
                wished),
            "INCOMPLETE");
}

}  // namespace
