// Names. R numbers are those of the project's list of what Erlang does.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <smarm/registry.hpp>
#include <smarm/semaphore.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm {
namespace {

using test::await_end;
using test::down_of;
using test::go;
using test::spawn_detached;
using test::wait_for_ever;

using registry_test = test::actors_test;
SMARM_TEST_AT_1_2_8(registry_test);

pid waiting_for_go() {
  return spawn_detached([] { (void)receive<go>(); });
}

TEST_P(registry_test, R1_a_name_has_one_actor_and_an_actor_one_name) {
  run([] {
    const pid child = waiting_for_go();
    ASSERT_TRUE(register_name("r1", child).has_value());
    EXPECT_EQ(register_name("r1", self()).error(), registry_error::name_taken);
    EXPECT_EQ(register_name("r1b", child).error(), registry_error::already_named);
    EXPECT_TRUE(unregister_name("r1"));
    EXPECT_FALSE(unregister_name("r1"));
    const pid dead = spawn_detached([] {});
    (void)await_end(dead);
    EXPECT_EQ(register_name("r1c", dead).error(), registry_error::no_such_actor);
    EXPECT_EQ(register_name("undefined", self()).error(), registry_error::bad_name);
    EXPECT_EQ(register_name("", self()).error(), registry_error::bad_name);
    EXPECT_TRUE(register_name("r1b", child).has_value()) << "it may have another name now";
    send(child, go{});
  });
}

TEST_P(registry_test, R2_a_name_is_free_once_the_down_is_seen) {
  run([] {
    for (int round = 0; round < 200; ++round) {
      const pid child = waiting_for_go();
      ASSERT_TRUE(register_name("r2", child).has_value()) << "in round " << round;
      const monitor_ref watch = monitor(child, to_mailbox);
      EXPECT_EQ(send("r2", go{}), delivery::sent);
      (void)down_of(watch);
      EXPECT_FALSE(whereis("r2").has_value());
      EXPECT_EQ(send("r2", go{}), delivery::no_such_name);
    }
  });
}

TEST_P(registry_test, a_name_is_free_once_a_join_has_returned) {
  run([] {
    for (int round = 0; round < 200; ++round) {
      auto child = spawn([] { EXPECT_TRUE(register_name("joined").has_value()); });
      (void)child.join();
      EXPECT_FALSE(whereis("joined").has_value());
    }
  });
}

TEST_P(registry_test, R3_all_names_are_listed_as_long_as_their_actors_live) {
  run([] {
    const pid child = spawn_detached(wait_for_ever);
    ASSERT_TRUE(register_name("r3", child).has_value());
    EXPECT_EQ(whereis("r3"), child);
    EXPECT_EQ(name_of(child), "r3");
    const auto is_listed = [] { return std::ranges::count(registered_names(), "r3") == 1; };
    EXPECT_TRUE(is_listed());
    kill(child);
    (void)down_of(monitor(child, to_mailbox));
    EXPECT_FALSE(is_listed());
    EXPECT_EQ(name_of(child), "");
  });
}

TEST_P(registry_test, R4_a_message_to_a_free_name_is_told_and_does_no_harm) {
  run([] { EXPECT_EQ(send("r4_none", 1), delivery::no_such_name); });
}

TEST_P(registry_test, a_thread_that_is_no_actor_finds_names_and_sends_to_them) {
  EXPECT_THROW((void)register_name("outside"), misuse);
  run([] {
    ASSERT_TRUE(register_name("root").has_value());
    std::thread outside([] {
      EXPECT_TRUE(whereis("root").has_value());
      EXPECT_EQ(send("root", go{}), delivery::sent);
    });
    (void)receive<go>();
    outside.join();
  });
  EXPECT_FALSE(whereis("root").has_value());
  EXPECT_TRUE(registered_names().empty());
}

TEST_P(registry_test, two_runtimes_have_names_of_their_own) {
  run([] {
    ASSERT_TRUE(register_name("twin").has_value());
    std::thread([] {
      smarm::run(test::with_schedulers(2), [] {
        EXPECT_FALSE(whereis("twin").has_value());
        EXPECT_TRUE(register_name("twin").has_value());
        EXPECT_EQ(whereis("twin"), self());
      });
    }).join();
    EXPECT_EQ(whereis("twin"), self());
  });
}

// Many fight for one name: one has it at a time, and it is never stuck.
TEST_P(registry_test, a_contended_name_is_always_somebodys_or_free) {
  run([] {
    constexpr int fighters = 8;
    constexpr int wins = 50;
    std::atomic<int> holders{0};
    std::vector<join_handle<void>> all;
    for (int i = 0; i < fighters; ++i) {
      all.push_back(spawn([&] {
        for (int won = 0; won < wins;) {
          auto attempt = spawn([&] {
            if (!register_name("contended")) return false;
            EXPECT_EQ(++holders, 1);
            yield();
            --holders;
            return true;
          });
          won += attempt.join().value() ? 1 : 0;
        }
      }));
    }
    for (auto& one : all) EXPECT_TRUE(one.join().has_value());
  });
}

}  // namespace
}  // namespace smarm
