// Tasks as Elixir has them, and scopes.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <smarm/scope.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/task.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::exit_of;
using test::go;
using test::has;
using test::is_alive;
using test::reason_of;
using test::take;
using test::wait_for_ever;

using task_test = test::actors_test;
SMARM_TEST_AT_1_2_8(task_test);

TEST_P(task_test, await_gives_the_result_and_empties_the_task) {
  run([] {
    auto work = async([] { return std::make_unique<int>(42); });
    EXPECT_EQ(*work.await(), 42);
    EXPECT_FALSE(work);
    EXPECT_THROW((void)work.await(), misuse);
    async([] {}).await();
  });
}

TEST_P(task_test, await_that_times_out_ends_the_owner_and_leaves_the_task_running) {
  run([] {
    pid running;
    const exit_reason why = reason_of([&running, parent = self()] {
      auto work = async_nolink([] { (void)receive<go>(); });
      running = work.id();
      send(parent, go{});
      work.await(5ms);
    });
    (void)take<go>();
    ASSERT_NE(why.detail(), nullptr);
    EXPECT_TRUE((*why.detail())[0].is_atom("timeout")) << why.message();
    EXPECT_TRUE(is_alive(running));
    send(running, go{});
    (void)await_end(running);
  });
}

TEST_P(task_test, a_crash_ends_the_owner_through_the_link) {
  run([] {
    const exit_reason why = reason_of([] {
      auto work = async([] { throw std::runtime_error("broken"); });
      work.await(test::long_enough);
    });
    // The signal or the await, whichever comes first.
    EXPECT_TRUE(why.is_error() || why.detail() != nullptr) << why.message();
  });
}

TEST_P(task_test, an_owner_that_traps_exits_ends_by_its_await) {
  run([] {
    const exit_reason why = reason_of([] {
      trap_exit(true);
      auto work = async([] { exit(exit_reason(atom("broken"))); });
      work.await(test::long_enough);
    });
    EXPECT_EQ(why.message(), "{broken,{task,await}}");
  });
}

TEST_P(task_test, a_task_without_a_link_only_tells) {
  run([] {
    auto work = async_nolink([]() -> int { exit(exit_reason(atom("broken"))); });
    const auto ended = work.yield(test::long_enough);
    ASSERT_TRUE(ended.has_value());
    EXPECT_TRUE(ended->error().is("broken"));
  });
}

TEST_P(task_test, yield_may_be_repeated_until_there_is_a_result) {
  run([] {
    auto work = async([] {
      (void)receive<go>();
      return 7;
    });
    EXPECT_FALSE(work.yield(1ms).has_value());
    EXPECT_FALSE(work.yield(0ms).has_value());
    send(work.id(), go{});
    EXPECT_EQ(work.yield(test::long_enough)->value(), 7);
  });
}

TEST_P(task_test, shutdown_ends_the_task_and_leaves_no_signal) {
  run([] {
    trap_exit(true);
    auto waiting = async(wait_for_ever);
    const pid first = waiting.id();
    EXPECT_FALSE(waiting.shutdown(test::long_enough).has_value());
    EXPECT_FALSE(is_alive(first));
    auto stubborn = async([parent = self()] {
      trap_exit(true);
      send(parent, go{});
      wait_for_ever();
    });
    (void)take<go>();
    EXPECT_FALSE(stubborn.shutdown(5ms).has_value()) << "it is killed";
    auto quick = async([] { return 3; });
    const pid third = quick.id();
    (void)await_end(third);
    EXPECT_EQ(quick.shutdown()->value(), 3) << "a result that was there is given";
    EXPECT_FALSE(has<exit_signal>());
  });
}

TEST_P(task_test, only_the_owner_awaits) {
  run([] {
    auto work = async([] { return 1; });
    EXPECT_TRUE(spawn([&] {
                  try {
                    (void)work.await();
                  } catch (const misuse&) {
                    return true;
                  }
                  return false;
                })
                    .join()
                    .value());
    EXPECT_EQ(work.await(), 1);
  });
}

// ---- scopes ----------------------------------------------------------------------------------

using scope_test = test::actors_test;
SMARM_TEST_AT_1_2_8(scope_test);

TEST_P(scope_test, join_waits_for_every_child) {
  run([] {
    std::atomic<int> done{0};
    scope children;
    for (int i = 0; i < 100; ++i) {
      children.spawn([&] {
        yield();
        ++done;
      });
    }
    children.join();
    EXPECT_EQ(done, 100);
  });
}

TEST_P(scope_test, the_first_failure_stops_the_others_and_is_thrown) {
  run([] {
    std::atomic<int> unwound{0};
    struct note {
      std::atomic<int>& into;
      ~note() { ++into; }
    };
    semaphore begun(0);
    scope children;
    for (int i = 0; i < 10; ++i) {
      children.spawn([&] {
        const note at_the_end{unwound};
        begun.release();
        wait_for_ever();
      });
    }
    for (int i = 0; i < 10; ++i) begun.acquire();
    children.spawn([] { throw std::runtime_error("first"); });
    try {
      children.join();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
    }
    EXPECT_EQ(unwound, 10);
    children.spawn([] { ADD_FAILURE() << "a child that comes after a failure does not begin"; });
    EXPECT_TRUE(children.wait().error().is_error());
  });
}

TEST_P(scope_test, a_childs_ties_are_to_who_spawns_it) {
  run([] {
    trap_exit(true);
    scope children;
    children.spawn({.ties = linked | monitored}, [] { exit(exit_reason(atom("boom"))); });
    const auto signal = take<exit_signal>();
    const auto gone = take<down>();
    ASSERT_TRUE(signal && gone);
    EXPECT_EQ(signal->from, gone->who);
    EXPECT_TRUE(signal->reason.is("boom"));
    EXPECT_TRUE(gone->reason.is("boom"));
    EXPECT_TRUE(children.wait().error().is("boom"));
  });
}

TEST_P(scope_test, a_child_that_is_killed_is_a_failure_with_its_reason) {
  run([] {
    scope children;
    children.spawn([] { exit(exit_reason(atom("gone"))); });
    EXPECT_TRUE(children.wait().error().is("gone"));
  });
}

TEST_P(scope_test, leaving_a_scope_stops_the_children_and_waits_for_them) {
  run([] {
    std::atomic<int> alive{0};
    struct count {
      std::atomic<int>& of;
      explicit count(std::atomic<int>& counted) : of(counted) { ++of; }
      ~count() { --of; }
    };
    {
      scope children;
      for (int i = 0; i < 10; ++i) {
        children.spawn([&] {
          const count me(alive);
          wait_for_ever();
        });
      }
      yield();
    }
    EXPECT_EQ(alive, 0);
    EXPECT_THROW(
        [&] {
          scope children;
          children.spawn(wait_for_ever);
          throw std::runtime_error("out");
        }(),
        std::runtime_error);
  });
}

TEST_P(scope_test, a_stopped_owner_waits_for_its_children_too) {
  run([] {
    std::atomic<bool> child_gone{false};
    auto owner = spawn([&, parent = self()] {
      scope children;
      children.spawn([&] {
        struct note {
          std::atomic<bool>& into;
          ~note() { into = true; }
        } const at_the_end{child_gone};
        send(parent, go{});
        wait_for_ever();
      });
      children.join();
    });
    (void)take<go>();
    owner.request_stop();
    EXPECT_TRUE(owner.join().error().is_stopped());
    EXPECT_TRUE(child_gone);
  });
}

TEST_P(scope_test, wait_gives_up_at_its_deadline_and_children_may_spawn_siblings) {
  run([] {
    scope children;
    children.spawn([&] { children.spawn([] { (void)receive_for<go>(1h); }); });
    EXPECT_FALSE(children.wait_until(5ms).has_value());
    children.stop();
    EXPECT_TRUE(children.wait().has_value()) << "to be stopped is no failure";
    const auto other = spawn([&] { (void)children.wait(); }).join();
    EXPECT_TRUE(!other && other.error().is_error()) << "only the owner waits";
  });
}

TEST_P(scope_test, a_storm_of_children_and_failures_leaves_nobody_behind) {
  run([] {
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> alive{0};
      {
        scope children;
        for (int i = 0; i < 8; ++i) {
          children.spawn([&, i] {
            ++alive;
            struct leave {
              std::atomic<int>& of;
              ~leave() { --of; }
            } const at_the_end{alive};
            if (i == round % 8) throw std::runtime_error("fails");
            if (i % 3 == 0) yield();
            if (i % 3 == 1) wait_for_ever();
          });
        }
        EXPECT_FALSE(children.wait().has_value());
        EXPECT_EQ(alive, 0) << "in round " << round;
      }
    }
  });
}

}  // namespace
}  // namespace smarm
