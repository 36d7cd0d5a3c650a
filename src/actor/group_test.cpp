// Groups. G numbers are those of the project's list of what Erlang does.
#include <string>
#include <thread>
#include <vector>

#include <smarm/errors.hpp>
#include <smarm/group.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm {
namespace {

using test::await_end;
using test::down_of;
using test::go;
using test::has;
using test::spawn_detached;
using test::take;
using what = group_event::what;

using group_test = test::actors_test;
SMARM_TEST_AT_1_2_8(group_test);

using pids = std::vector<pid>;
using names = std::vector<std::string>;

pid waiting_for_go() {
  return spawn_detached([] { (void)receive<go>(); });
}

TEST_P(group_test, G1_a_member_counts_as_often_as_it_joined) {
  run([] {
    const pid me = self();
    EXPECT_TRUE(join_group("g"));
    EXPECT_TRUE(join_group("g"));
    EXPECT_EQ(group_members("g"), (pids{me, me}));
    EXPECT_TRUE(leave_group("g"));
    EXPECT_EQ(group_members("g"), (pids{me}));
    EXPECT_TRUE(leave_group("g"));
    EXPECT_EQ(which_groups(), names{});
    EXPECT_FALSE(leave_group("g")) << "not joined";
  });
}

TEST_P(group_test, G2_who_ends_has_left_all_groups_once_its_down_is_seen) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      const pid member = waiting_for_go();
      EXPECT_TRUE(join_group("a", member));
      EXPECT_TRUE(join_group("b", member));
      const monitor_ref watch = monitor(member, to_mailbox);
      send(member, go{});
      (void)down_of(watch);
      EXPECT_EQ(group_members("a"), pids{});
      EXPECT_EQ(which_groups(), names{});
      EXPECT_FALSE(join_group("a", member));
    }
  });
}

TEST_P(group_test, G3_scopes_keep_groups_apart) {
  run([] {
    EXPECT_TRUE(join_group("g", self(), "one"));
    EXPECT_EQ(group_members("g", "one"), (pids{self()}));
    EXPECT_EQ(group_members("g", "two"), pids{});
    EXPECT_EQ(group_members("g"), pids{});
    EXPECT_EQ(which_groups("one"), names{"g"});
  });
}

TEST_P(group_test, G4_who_watches_a_group_hears_who_comes_and_goes) {
  run([] {
    const auto [ref, before] = watch_group("g");
    EXPECT_TRUE(before.empty());
    const pid member = waiting_for_go();
    EXPECT_TRUE(join_group("g", member));
    EXPECT_TRUE(join_group("other", member));
    const auto came = take<group_event>();
    EXPECT_EQ(came->ref, ref);
    EXPECT_EQ(came->kind, what::joined);
    EXPECT_EQ(came->group, "g");
    EXPECT_EQ(came->who, pids{member});
    send(member, go{});
    EXPECT_EQ(take<group_event>()->kind, what::left);
    EXPECT_TRUE(unwatch_group(ref));
    EXPECT_FALSE(unwatch_group(ref));
    EXPECT_TRUE(join_group("g"));
    EXPECT_FALSE(has<group_event>());
  });
}

TEST_P(group_test, who_watches_a_scope_hears_of_all_its_groups) {
  run([] {
    EXPECT_TRUE(join_group("a", self(), "s"));
    const auto [ref, before] = watch_scope("s");
    ASSERT_EQ(before.size(), 1U);
    EXPECT_EQ(before[0].first, "a");
    EXPECT_TRUE(join_group("b", self(), "s"));
    EXPECT_TRUE(join_group("b", self(), "elsewhere"));
    EXPECT_EQ(take<group_event>()->group, "b");
    EXPECT_FALSE(has<group_event>());
  });
}

TEST_P(group_test, members_that_come_and_go_at_once_leave_an_empty_table) {
  run([] {
    const auto [ref, before] = watch_group("busy");
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 100; ++i) {
      all.push_back(spawn([] {
        EXPECT_TRUE(join_group("busy"));
        yield();
      }));
    }
    for (auto& one : all) (void)one.join();
    int joined = 0;
    int left = 0;
    while (joined < 100 || left < 100) {
      const auto event = take<group_event>();
      if (!event) break;
      ++(event->kind == what::joined ? joined : left);
      EXPECT_LE(left, joined);
    }
    EXPECT_EQ(which_groups(), names{});
  });
}

TEST_P(group_test, a_thread_that_is_no_actor_sees_the_groups_and_watches_none) {
  run([] {
    EXPECT_TRUE(join_group("g"));
    EXPECT_TRUE(join_group("h"));
    pids members;
    names groups;
    std::thread([&] {
      members = group_members("g");
      groups = which_groups();
      EXPECT_THROW((void)watch_group("g"), misuse);
      EXPECT_THROW((void)watch_scope(""), misuse);
    }).join();
    EXPECT_EQ(members, pids{self()});
    EXPECT_EQ(groups, (names{"g", "h"}));
  });
}

TEST_P(group_test, a_pid_of_nobody_joins_and_leaves_nothing) {
  run([] {
    EXPECT_FALSE(join_group("g", pid{}));
    EXPECT_FALSE(leave_group("g", pid{}));
    EXPECT_EQ(which_groups(), names{});
  });
}

}  // namespace
}  // namespace smarm
