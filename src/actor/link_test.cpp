// Links and exit signals, behaviour by behaviour as OTP 25 has them. L1 to L16 are the names these
// have in the project's list of what Erlang does; the rest is our own.
#include <array>
#include <stdexcept>
#include <vector>

#include <smarm/link.hpp>
#include <smarm/semaphore.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::down_of;
using test::exit_of;
using test::go;
using test::has;
using test::is_alive;
using test::ready;
using test::reason_of;
using test::spawn_detached;
using test::spawn_linked;
using test::take;
using test::wait_for_ever;

const exit_reason boom(atom("boom"));

using link_test = test::actors_test;
SMARM_TEST_AT_1_2_8(link_test);

TEST_P(link_test, L1_a_normal_end_spares_who_is_linked) {
  run([] {
    const pid bystander = spawn_detached([] { (void)receive<go>(); });
    EXPECT_TRUE(reason_of([bystander] { (void)link(bystander); }).is_normal());
    EXPECT_TRUE(is_alive(bystander));
    send(bystander, go{});
  });
}

TEST_P(link_test, L2_any_other_reason_ends_who_is_linked_with_it) {
  run([] {
    const pid victim = spawn_detached(wait_for_ever);
    auto watch = monitor(victim, to_mailbox);
    spawn_detached([victim] {
      (void)link(victim);
      exit(boom);
    });
    EXPECT_EQ(down_of(watch), boom);
  });
}

TEST_P(link_test, L3_who_traps_exits_hears_of_a_normal_end_too) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([] {});
    EXPECT_EQ(exit_of(child), exit_reason::normal());
  });
}

TEST_P(link_test, L4_a_kill_ends_who_traps_exits_and_others_hear_killed) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([parent = self()] {
      trap_exit(true);
      send(parent, go{});
      wait_for_ever();
    });
    (void)take<go>();
    kill(child);
    EXPECT_EQ(exit_of(child), exit_reason::killed());
  });
}

TEST_P(link_test, L6_a_normal_exit_signal_is_ignored_or_a_message_to_who_traps) {
  run([] {
    const pid plain = spawn_detached([] { (void)receive<go>(); });
    exit(plain, exit_reason::normal());
    EXPECT_TRUE(is_alive(plain));
    send(plain, go{});
    const pid trapping = spawn_detached([parent = self()] {
      trap_exit(true);
      send(parent, go{});
      send(parent, receive<exit_signal>());
    });
    (void)take<go>();
    exit(trapping, exit_reason::normal());
    EXPECT_EQ(take<exit_signal>(), (exit_signal{self(), exit_reason::normal()}));
  });
}

TEST_P(link_test, L7_a_normal_exit_signal_to_oneself_ends_one) {
  run([] {
    EXPECT_EQ(reason_of([] {
                exit(self(), exit_reason::normal());
                exit(exit_reason(atom("survived")));
              }),
              exit_reason::normal());
  });
}

TEST_P(link_test, L8_a_link_to_nobody_is_an_error_or_a_signal_to_who_traps) {
  run([] {
    const pid dead = spawn_detached([] {});
    (void)await_end(dead);
    EXPECT_EQ(link(dead).error(), no_such_actor{dead});
    trap_exit(true);
    EXPECT_TRUE(link(dead).has_value());
    EXPECT_EQ(exit_of(dead), exit_reason::noproc());
    EXPECT_TRUE(link(pid{1U << 30U, 7}).has_value()) << "a pid that never was";
    EXPECT_EQ(take<exit_signal>()->reason, exit_reason::noproc());
  });
}

TEST_P(link_test, L9_no_signal_of_a_link_comes_after_unlink) {
  run([] {
    trap_exit(true);
    std::vector<pid> children;
    for (int round = 0; round < 200; ++round) {
      const pid child = spawn_linked([] { exit(exit_reason(atom("x"))); });
      unlink(child);
      const auto of_child = [child](const exit_signal& s) { return s.from == child; };
      receive(when(of_child, [](const exit_signal&) {}), after(0s, [] {}));
      children.push_back(child);
    }
    for (const pid child : children) (void)await_end(child);
    EXPECT_FALSE(has<exit_signal>());
  });
}

TEST_P(link_test, L11_an_exit_signal_reaches_who_is_linked_to_its_receiver) {
  run([] {
    auto [first, watch_first] = spawn_monitor([parent = self()] {
      const pid second = spawn_linked(wait_for_ever);
      send(parent, ready{second});
      wait_for_ever();
    });
    const pid second = take<ready>()->who;
    auto watch_second = monitor(second, to_mailbox);
    const exit_reason why(atom("why"));
    exit(first.id(), why);
    EXPECT_EQ(down_of(watch_first), why);
    EXPECT_EQ(down_of(watch_second), why);
  });
}

TEST_P(link_test, L12_a_linked_spawn_loses_no_immediate_end) {
  run([] {
    trap_exit(true);
    const exit_reason fast(atom("fast"));
    for (int round = 0; round < 100; ++round) {
      const pid child = spawn_linked([&] { exit(fast); });
      EXPECT_EQ(exit_of(child), fast);
    }
  });
}

TEST_P(link_test, L13_who_traps_exits_chooses_its_own_reason) {
  run([] {
    trap_exit(true);
    const exit_reason done(atom("done"));
    const pid child = spawn_linked([&, parent = self()] {
      trap_exit(true);
      send(parent, go{});
      if (receive<exit_signal>().reason.is("r1")) exit(done);
    });
    (void)take<go>();
    exit(child, exit_reason(atom("r1")));
    EXPECT_EQ(exit_of(child), done);
  });
}

TEST_P(link_test, L14_messages_sent_before_the_end_come_before_its_signal) {
  run([] {
    trap_exit(true);
    for (int round = 0; round < 100; ++round) {
      const pid child = spawn_linked([parent = self()] {
        send(parent, 1);
        send(parent, 2);
        exit(exit_reason(atom("c")));
      });
      const auto number_of = [](any_message m) {
        const int* const number = m.get_if<int>();
        return number == nullptr ? 0 : *number;
      };
      EXPECT_EQ(receive(number_of), 1);
      EXPECT_EQ(receive(number_of), 2);
      EXPECT_EQ(exit_of(child), exit_reason(atom("c")));
    }
  });
}

TEST_P(link_test, L15_an_exception_is_an_error_with_its_type_and_text) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([] { throw std::out_of_range("bad thing"); });
    const auto why = exit_of(child);
    ASSERT_TRUE(why && why->is_error());
    EXPECT_EQ(why->type_name(), "std::out_of_range");
    EXPECT_EQ(why->text(), "bad thing");
    EXPECT_THROW(std::rethrow_exception(why->exception()), std::out_of_range);
    EXPECT_EQ(to_string(why->to_term()), R"({error,"std::out_of_range","bad thing"})");
  });
}

TEST_P(link_test, L16_whatever_else_is_thrown_is_an_error_too) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([] { throw 17; });
    const auto why = exit_of(child);
    ASSERT_TRUE(why && why->is_error());
    EXPECT_EQ(why->type_name(), "int");
    EXPECT_EQ(why->text(), "");
  });
}

// ---- what is our own -------------------------------------------------------------------------

TEST_P(link_test, an_exit_signal_with_the_reason_kill_is_a_kill) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([] {
      trap_exit(true);
      wait_for_ever();
    });
    exit(child, exit_reason(atom("kill")));
    EXPECT_EQ(exit_of(child), exit_reason::killed());
    const auto itself = spawn([] {
                          trap_exit(true);
                          exit(self(), exit_reason(atom("kill")));
                          ADD_FAILURE() << "outlived its own kill";
                        }).join();
    EXPECT_EQ(itself.error(), exit_reason::killed());
  });
}

TEST_P(link_test, the_reason_kill_from_a_link_can_be_trapped) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked([] { exit(exit_reason(atom("kill"))); });
    EXPECT_EQ(exit_of(child), exit_reason(atom("kill")));
  });
}

TEST_P(link_test, a_signal_unwinds_the_stack_and_a_caught_exit_does_not_end) {
  run([] {
    semaphore unwound(0);
    struct tell {
      semaphore& into;
      ~tell() { into.release(); }
    };
    const pid child = spawn_detached([&, parent = self()] {
      const tell at_the_end{unwound};
      send(parent, go{});
      wait_for_ever();
    });
    (void)take<go>();
    exit(child, boom);
    unwound.acquire();
    EXPECT_EQ(reason_of([] {
                try {
                  exit(boom);
                } catch (const exit_request& request) {
                  EXPECT_EQ(request.why, boom);
                }
              }),
              exit_reason::normal());
  });
}

TEST_P(link_test, an_actor_that_is_killed_before_it_runs_ends_as_killed) {
  run([] {
    // Whether or not it has begun by then.
    auto [child, watch] = spawn_monitor(wait_for_ever);
    kill(child.id());
    EXPECT_EQ(down_of(watch), exit_reason::killed());
  });
}

TEST_P(link_test, a_stopped_actor_tells_its_links_so) {
  run([] {
    trap_exit(true);
    const pid child = spawn_linked(wait_for_ever);
    ASSERT_TRUE(request_stop(child).has_value());
    EXPECT_EQ(exit_of(child), exit_reason::stopped());
  });
}

TEST_P(link_test, a_link_is_one_however_often_it_is_made_and_unlink_ends_it_from_either_side) {
  run([] {
    trap_exit(true);
    const pid child = spawn_detached([parent = self()] {
      (void)receive<go>();
      unlink(parent);
      send(parent, go{});
      (void)receive<go>();
      exit(boom);
    });
    EXPECT_TRUE(link(child).has_value());
    EXPECT_TRUE(link(child).has_value());
    EXPECT_TRUE(is_linked(child));
    send(child, go{});
    (void)take<go>();
    EXPECT_FALSE(is_linked(child));
    send(child, go{});
    (void)await_end(child);
    EXPECT_FALSE(has<exit_signal>());
    EXPECT_TRUE(link(self()).has_value()) << "nobody is linked to itself";
    EXPECT_FALSE(is_linked(self()));
  });
}

TEST_P(link_test, many_links_all_hear_of_the_end) {
  run([] {
    constexpr int peers = 1'000;
    const pid hub = spawn_detached([] {
      (void)receive<go>();
      exit(boom);
    });
    std::vector<join_handle<void>> linked;
    for (int i = 0; i < peers; ++i) {
      linked.push_back(spawn([hub, parent = self()] {
        (void)link(hub);
        send(parent, go{});
        wait_for_ever();
      }));
    }
    for (int i = 0; i < peers; ++i) (void)take<go>();
    send(hub, go{});
    for (auto& one : linked) EXPECT_EQ(one.join().error(), boom);
  });
}

// Two actors link and unlink each other at once: the halves agree whenever both are through.
TEST_P(link_test, links_made_and_undone_from_both_sides_leave_no_half_behind) {
  run([] {
    for (int round = 0; round < 100; ++round) {
      semaphore meet(0);
      // One a side: who is through a step early must not take the other's permit for it.
      std::array<semaphore, 2> part{semaphore(0), semaphore(0)};
      std::array<bool, 2> linked{};
      std::array<pid, 2> who{};
      std::vector<join_handle<void>> both;
      for (std::size_t side = 0; side < 2; ++side) {
        both.push_back(spawn([&, side] {
          who[side] = self();
          meet.release();
          part[side].acquire();
          const pid peer = who[1 - side];
          for (int turn = 0; turn < 20; ++turn) {
            if ((turn + static_cast<int>(side)) % 2 == 0) {
              (void)link(peer);
            } else {
              unlink(peer);
            }
            if (turn % 5 == 0) yield();
          }
          meet.release();
          part[side].acquire();
          linked[side] = is_linked(peer);
          meet.release();
          part[side].acquire();
        }));
      }
      for (int step = 0; step < 3; ++step) {
        meet.acquire();
        meet.acquire();
        for (semaphore& each : part) each.release();
      }
      for (auto& one : both) (void)one.join();
      EXPECT_EQ(linked[0], linked[1]) << "in round " << round;
    }
  });
}

TEST_P(link_test, a_root_that_a_signal_ends_makes_its_run_throw_the_reason) {
  const auto ended_by = [](const exit_reason& why) -> std::optional<exit_reason> {
    try {
      run([&] {
        spawn_linked([&] { exit(why); });
        wait_for_ever();
      });
    } catch (const exit_request& request) {
      return request.why;
    }
    return std::nullopt;
  };
  EXPECT_EQ(ended_by(boom), boom);
  EXPECT_EQ(ended_by(exit_reason::shutdown()), std::nullopt) << "in good order";
}

TEST_P(link_test, misuse_outside_of_an_actor_is_told) {
  EXPECT_THROW((void)trap_exit(true), misuse);
  EXPECT_THROW((void)link(pid{1, 1}), misuse);
  EXPECT_THROW(unlink(pid{1, 1}), misuse);
  EXPECT_THROW(exit(exit_reason::normal()), misuse);
  exit(pid{1, 1}, boom);  // nobody is there
  kill(pid{1, 1});
  run([] {});
}

}  // namespace
}  // namespace smarm
