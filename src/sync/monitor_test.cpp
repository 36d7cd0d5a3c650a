// What a monitor promises: one down for each, whoever was watched, however it ended, alive or not.
// Who is to be watched alive waits for a permit until its monitor is set, however long that takes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/monitor.hpp>
#include <smarm/runtime.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::make_rng;

using monitor_test = test::actors_test;
SMARM_TEST_AT_1_2_8(monitor_test);

TEST_P(monitor_test, tells_how_the_actor_ended) {
  run([] {
    semaphore watched(0);
    auto normal = spawn([&watched] { watched.acquire(); });
    auto failing = spawn([&watched] {
      watched.acquire();
      throw std::runtime_error("it broke");
    });
    auto stopped = spawn([] { sleep_until(deadline::never()); });
    auto watch_normal = monitor(normal.id());
    auto watch_failing = monitor(failing.id());
    auto watch_stopped = monitor(stopped.id());
    EXPECT_EQ(watch_stopped.try_recv().error(), recv_error::empty);
    EXPECT_EQ(watch_stopped.recv_for(1ms).error(), recv_error::timed_out);
    stopped.request_stop();
    watched.release(2);

    const down gone = watch_normal.recv();
    EXPECT_EQ(gone.who, normal.id());
    EXPECT_TRUE(gone.reason.is_normal());
    EXPECT_EQ(watch_failing.recv().reason.message(), "failed: it broke");
    EXPECT_TRUE(watch_stopped.recv_for(1h).value().reason.is_stopped());
    EXPECT_FALSE(watch_stopped) << "a down empties the handle";
    EXPECT_THROW((void)watch_stopped.recv(), misuse);
    (void)normal.join();
    (void)failing.join();
    (void)stopped.join();
  });
}

TEST_P(monitor_test, a_pid_that_is_nobodys_is_down_at_once) {
  run([] {
    auto ended = spawn([] {});
    const pid stale = ended.id();
    (void)ended.join();
    for (const pid nobody :
         {stale, pid{}, pid{0xffffffff, 0xffffffff}, pid{3, 0}, pid{1'000'000, 7}}) {
      auto watch = monitor(nobody);
      EXPECT_EQ(watch.target(), nobody);
      const auto gone = watch.try_recv();
      ASSERT_TRUE(gone) << to_string(nobody);
      EXPECT_EQ(gone->who, nobody);
      EXPECT_EQ(gone->reason.kind(), exit_kind::noproc);
    }
  });
}

TEST_P(monitor_test, many_monitors_share_one_channel) {
  run([] {
    auto [tx, rx] = channel<down>();
    semaphore watched(0);
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 50; ++i) {
      actors.push_back(spawn([&watched] { watched.acquire(); }));
      (void)monitor(actors.back().id(), tx);
    }
    (void)monitor(pid{}, tx);
    tx.close();
    watched.release(50);
    int downs = 0;
    int nobody = 0;
    for (const down& gone : rx) {
      ++downs;
      nobody += gone.reason.kind() == exit_kind::noproc ? 1 : 0;
    }
    // The channel ends with the last monitor: each is a sender of it.
    EXPECT_EQ(downs, 51);
    EXPECT_EQ(nobody, 1);
    for (auto& actor : actors) (void)actor.join();
  });
}

TEST_P(monitor_test, an_actor_may_be_watched_many_times) {
  run([] {
    semaphore is_watched(0);
    auto watched = spawn([&is_watched] { is_watched.acquire(); });
    std::vector<monitor_handle> watches;
    for (int i = 0; i < 20; ++i) watches.push_back(monitor(watched.id()));
    for (std::size_t i = 0; i < watches.size(); i += 2) watches[i] = {};
    is_watched.release();
    for (std::size_t i = 1; i < watches.size(); i += 2) {
      EXPECT_TRUE(watches[i].recv().reason.is_normal());
    }
    (void)watched.join();
  });
}

TEST_P(monitor_test, a_monitor_that_is_taken_off_says_nothing) {
  run([] {
    auto [tx, rx] = channel<down>();
    semaphore has_been_watched(0);
    auto watched = spawn([&has_been_watched] { has_been_watched.acquire(); });
    auto watch = monitor(watched.id(), tx);
    tx.close();
    EXPECT_TRUE(watch.demonitor());
    EXPECT_FALSE(watch.demonitor()) << "it is empty now";
    EXPECT_EQ(rx.recv().error(), recv_error::closed) << "it was the last sender";
    has_been_watched.release();
    (void)watched.join();

    auto [late_tx, late_rx] = channel<down>();
    auto late = monitor(watched.joinable() ? watched.id() : pid{}, late_tx);
    EXPECT_FALSE(late.demonitor()) << "the down is delivered already";
    EXPECT_TRUE(late_rx.try_recv());
  });
}

TEST_P(monitor_test, a_bounded_channel_is_misuse) {
  run([] {
    auto [tx, rx] = channel<down>(1);
    sender<down>& bounded = tx;
    EXPECT_THROW(monitor(self(), bounded), misuse);
    EXPECT_THROW(monitor(self(), sender<down>{}), misuse);
    EXPECT_THROW((void)monitor_handle{}.recv(), misuse);
  });
}

TEST_P(monitor_test, a_receiver_that_is_gone_loses_the_down_and_nothing_else) {
  run([] {
    auto ends = channel<down>();
    semaphore is_alone(0);
    auto watched = spawn([&is_alone] { is_alone.acquire(); });
    auto watch = monitor(watched.id(), ends.tx);
    ends.rx = {};
    is_alone.release();
    (void)watched.join();
    (void)watch;
  });
}

// A monitor set, and taken off, at the moment at which the actor ends. Goal: either it is taken off
// or its down arrives, never both, never neither.
TEST_P(monitor_test, setting_and_taking_off_race_the_end) {
  const std::int64_t count = test::rounds(3'000, 200'000);
  run([count] {
    auto rng = make_rng(41);
    std::int64_t taken_off = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      auto watched = spawn([turns = rng() % 3] {
        for (auto left = turns; left > 0; --left) yield();
      });
      auto [tx, rx] = channel<down>();
      auto watch = monitor(watched.id(), tx);
      tx.close();
      auto own = monitor(watched.id());
      for (auto left = rng() % 3; left > 0; --left) yield();
      if (watch.demonitor()) {
        ++taken_off;
        ASSERT_EQ(rx.recv().error(), recv_error::closed);
      } else {
        const auto gone = rx.recv();
        ASSERT_TRUE(gone);
        ASSERT_EQ(gone->who, watched.id());
        ASSERT_EQ(rx.recv().error(), recv_error::closed);
      }
      const auto kind = own.recv().reason.kind();
      ASSERT_TRUE(kind == exit_kind::normal || kind == exit_kind::noproc);
      (void)watched.join();
    }
    RecordProperty("taken_off", std::to_string(taken_off));
  });
}

TEST_P(monitor_test, a_thread_that_is_no_actor_watches) {
  runtime ours(make_config());
  auto [tx, rx] = oneshot<pid>();
  std::thread watching([rx = std::move(rx)]() mutable {
    const pid who = rx.recv().value();
    auto watch = monitor(who);
    const auto kind = watch.recv().reason.kind();
    EXPECT_TRUE(kind == exit_kind::normal || kind == exit_kind::noproc);
  });
  ours.run([tx = std::move(tx)]() mutable {
    EXPECT_TRUE(tx.send(self()));
    sleep_for(1ms);
  });
  watching.join();
  test::expect_nothing_left(ours);
}

}  // namespace
}  // namespace smarm
