// The mailbox: order, selection, deadlines, aliases, monitors that deliver into it. V and M numbers
// are those of the project's list of what Erlang does.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <smarm/mailbox.hpp>
#include <smarm/registry.hpp>
#include <smarm/semaphore.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/counted.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::down_of;
using test::go;
using test::has;
using test::is_alive;
using test::reason_of;
using test::spawn_detached;
using test::take;
using test::wait_for_ever;

using mailbox_test = test::actors_test;
SMARM_TEST_AT_1_2_8(mailbox_test);

struct letter {
  char name;
};

std::string letters_left() {
  std::string left;
  while (auto next = receive_for<letter>(0s)) left += next->name;
  return left;
}

auto is_letter(char name) {
  return [name](const letter& l) { return l.name == name; };
}

int twice(int value) noexcept { return 2 * value; }

TEST_P(mailbox_test, a_handler_may_be_a_function) {
  run([] {
    send(self(), 3);
    EXPECT_EQ(receive(twice), 6);
    send(self(), 4);
    EXPECT_EQ(receive(&twice), 8);
  });
}

TEST_P(mailbox_test, V1_a_selective_receive_keeps_the_order_of_what_it_leaves) {
  run([] {
    for (const char name : {'a', 'b', 'c', 'd'}) send(self(), letter{name});
    EXPECT_EQ(receive(when(is_letter('c'), [](letter l) { return l.name; })), 'c');
    EXPECT_EQ(mailbox_size(), 3U);
    EXPECT_EQ(letters_left(), "abd");
  });
}

TEST_P(mailbox_test, V2_after_zero_looks_and_does_not_wait) {
  run([] {
    send(self(), 1);
    EXPECT_TRUE(receive([](letter) { return false; }, after(0s, [] { return true; })));
    EXPECT_EQ(receive<int>(), 1);
  });
}

TEST_P(mailbox_test, V3_after_zero_takes_what_is_there) {
  run([] {
    send(self(), letter{'x'});
    EXPECT_TRUE(receive([](letter) { return true; }, after(0s, [] { return false; })));
  });
}

TEST_P(mailbox_test, handlers_are_chosen_by_type_and_the_oldest_message_that_fits_is_taken) {
  run([] {
    send(self(), std::string("text"));
    send(self(), 2.5);
    send(self(), 7);
    const auto take_any = [] {
      return receive([](int n) { return std::to_string(n); },
                     [](const std::string& s) { return s; },
                     [](any_message m) { return m.is<double>() ? std::string("real") : "?"; });
    };
    EXPECT_EQ(take_any(), "text");
    EXPECT_EQ(take_any(), "real");
    EXPECT_EQ(take_any(), "7");
  });
}

TEST_P(mailbox_test, a_receive_waits_for_what_fits_while_other_messages_come) {
  run([] {
    const pid sender = spawn_detached([parent = self()] {
      for (int i = 0; i < 100; ++i) send(parent, i);
      send(parent, go{});
    });
    (void)receive<go>();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(receive<int>(), i);
    (void)await_end(sender);
    EXPECT_EQ(receive_for<int>(1ms).error(), recv_error::timed_out);
  });
}

TEST_P(mailbox_test, messages_move_and_whatever_is_left_at_the_end_is_destroyed) {
  test::ledger book;
  run([&book] {
    const pid keeper = spawn_detached([] {
      (void)receive<go>();
      const auto mine = receive<test::counted>();
      EXPECT_EQ(mine.number(), 1);
      EXPECT_TRUE(mine.is_full());
    });
    send(keeper, std::make_unique<int>(3));
    for (int i = 1; i <= 10; ++i) send(keeper, test::counted(book, i));
    send(keeper, go{});
    (void)await_end(keeper);
    EXPECT_EQ(send(keeper, test::counted(book, 99)), delivery::no_such_actor);
  });
  EXPECT_EQ(book.alive, 0);
  EXPECT_EQ(book.made, 11);
}

TEST_P(mailbox_test, an_over_aligned_message_lies_where_it_should) {
  struct alignas(64) line {
    int number;
  };
  run([] {
    send(self(), line{5});
    receive([](const line& l) {
      EXPECT_EQ(l.number, 5);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&l) % 64, 0U);
    });
  });
}

TEST_P(mailbox_test, a_handler_that_throws_has_taken_its_message_and_no_other) {
  run([] {
    send(self(), 1);
    send(self(), 2);
    EXPECT_THROW(receive([](int) { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_EQ(receive<int>(), 2);
    EXPECT_EQ(mailbox_size(), 0U);
    send(self(), 3);
    EXPECT_THROW(receive(when([](int) -> bool { throw std::runtime_error("no"); }, [](int) {})),
                 std::runtime_error);
    EXPECT_THROW(receive(when([](int) { return receive<int>() == 3; }, [](int) {})), misuse);
    EXPECT_EQ(receive<int>(), 3);
  });
}

TEST_P(mailbox_test, a_stop_or_a_signal_ends_a_receive) {
  run([] {
    EXPECT_EQ(reason_of([] {
                exit(self(), exit_reason(atom("enough")));
                (void)receive<int>();
              }),
              exit_reason(atom("enough")));
    auto waiting = spawn([] { (void)receive<int>(); });
    waiting.request_stop();
    EXPECT_TRUE(waiting.join().error().is_stopped());
  });
}

TEST_P(mailbox_test, a_bounded_mailbox_refuses_messages_and_takes_every_signal) {
  run([] {
    limit_mailbox(2);
    EXPECT_EQ(send(self(), 1), delivery::sent);
    EXPECT_EQ(send(self(), 2), delivery::sent);
    EXPECT_EQ(send(self(), 3), delivery::full);
    trap_exit(true);
    for (int i = 0; i < 10; ++i) {
      spawn_link([] {}).detach();
      (void)spawn_monitor([] {});
    }
    for (int i = 0; i < 10; ++i) {
      (void)take<exit_signal>();
      (void)take<down>();
    }
    EXPECT_EQ(receive<int>(), 1);
    EXPECT_EQ(send(self(), 3), delivery::sent);
    EXPECT_EQ(receive<int>(), 2);
    EXPECT_EQ(receive<int>(), 3);
  });
}

TEST_P(mailbox_test, who_always_finds_a_message_gives_way) {
  run([] {
    auto busy = spawn([] {
      for (;;) {
        send(self(), 1);
        (void)receive<int>();
      }
    });
    sleep_for(1ms);
    busy.request_stop();
    EXPECT_FALSE(busy.join().has_value());
  });
}

TEST_P(mailbox_test, a_predicate_that_flushes_leaves_the_mailbox_as_it_is) {
  run([] {
    auto [ended, watch] = spawn_monitor([] {});
    while (mailbox_size() == 0) yield();
    send(self(), 1);
    const auto flush = [&](const down&) {
      EXPECT_FALSE(watch.demonitor_and_flush());
      return true;
    };
    EXPECT_TRUE(receive(when(flush, [](const down&) { return true; })));
    EXPECT_EQ(receive<int>(), 1);
  });
}

TEST_P(mailbox_test, many_senders_lose_nothing_and_keep_their_order) {
  run([] {
    constexpr int senders = 8;
    constexpr int each = 500;
    struct numbered {
      int from;
      int number;
    };
    for (int from = 0; from < senders; ++from) {
      spawn_detached([from, parent = self()] {
        for (int i = 0; i < each; ++i) {
          send(parent, numbered{from, i});
          if (i % 64 == 0) yield();
        }
      });
    }
    std::vector<int> next(senders, 0);
    for (int i = 0; i < senders * each; ++i) {
      const numbered one = receive<numbered>();
      EXPECT_EQ(one.number, next[static_cast<std::size_t>(one.from)]++);
    }
  });
}

TEST_P(mailbox_test, a_thread_that_is_no_actor_may_send_but_not_receive) {
  EXPECT_THROW((void)receive<int>(), misuse);
  EXPECT_EQ(send(pid{1, 1}, 1), delivery::no_such_actor);
  run([] {
    std::thread outside([to = self()] { send(to, 42); });
    EXPECT_EQ(receive<int>(), 42);
    outside.join();
  });
}

// ---- monitors that deliver into it -----------------------------------------------------------

TEST_P(mailbox_test, M1_a_monitor_of_nobody_is_down_with_noproc) {
  run([] {
    const pid dead = spawn_detached([] {});
    (void)await_end(dead);
    const monitor_ref watch = monitor(dead, to_mailbox);
    const auto gone = take<down>();
    EXPECT_EQ(gone->ref, watch.id());
    EXPECT_EQ(gone->who, dead);
    EXPECT_EQ(gone->reason, exit_reason::noproc());
  });
}

TEST_P(mailbox_test, M2_a_monitor_of_a_free_name_is_down_with_noproc_and_the_name) {
  run([] {
    const monitor_ref watch = monitor("no_such_name", to_mailbox);
    const auto gone = take<down>();
    EXPECT_EQ(gone->ref, watch.id());
    EXPECT_EQ(gone->name, "no_such_name");
    EXPECT_EQ(gone->reason, exit_reason::noproc());
  });
}

TEST_P(mailbox_test, M3_two_monitors_are_two_downs) {
  run([] {
    const exit_reason bye(atom("bye"));
    const pid child = spawn_detached([&] {
      (void)receive<go>();
      exit(bye);
    });
    const monitor_ref first = monitor(child, to_mailbox);
    const monitor_ref second = monitor(child, to_mailbox);
    EXPECT_NE(first.id(), second.id());
    send(child, go{});
    EXPECT_EQ(down_of(first), bye);
    EXPECT_EQ(down_of(second), bye);
  });
}

TEST_P(mailbox_test, M4_the_end_of_the_watcher_does_not_touch_the_watched) {
  run([] {
    const pid child = spawn_detached([] { (void)receive<go>(); });
    EXPECT_TRUE(reason_of([child] {
                  (void)monitor(child, to_mailbox);
                  exit(exit_reason(atom("boom")));
                }).is("boom"));
    EXPECT_TRUE(is_alive(child));
    send(child, go{});
  });
}

TEST_P(mailbox_test, M5_no_down_comes_after_demonitor) {
  run([] {
    const pid child = spawn_detached([] { (void)receive<go>(); });
    monitor_ref watch = monitor(child, to_mailbox);
    EXPECT_TRUE(watch.demonitor());
    send(child, go{});
    (void)await_end(child);
    EXPECT_FALSE(has<down>());
    for (int round = 0; round < 200; ++round) {
      const pid racing = spawn_detached([] {});
      monitor_ref ref = monitor(racing, to_mailbox);
      const monitor_id id = ref.id();
      (void)ref.demonitor();
      const auto mine = [id](const down& d) { return d.ref == id; };
      receive(when(mine, [](const down&) {}), after(0s, [] {}));
      (void)await_end(racing);
      EXPECT_FALSE(has<down>()) << "in round " << round;
    }
  });
}

TEST_P(mailbox_test, M6_demonitor_and_flush_takes_a_down_that_has_come) {
  run([] {
    const pid child = spawn_detached([] {});
    monitor_ref watch = monitor(child, to_mailbox);
    (void)await_end(child);
    while (mailbox_size() == 0) yield();
    EXPECT_FALSE(watch.demonitor_and_flush());
    EXPECT_FALSE(has<down>());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

// Its type is asked before its number: another message may begin with the same bytes.
TEST_P(mailbox_test, a_flush_leaves_a_message_that_only_looks_like_its_down) {
  struct like_a_down {
    down inside;
  };
  run([] {
    const pid child = spawn_detached([] { (void)receive<go>(); });
    monitor_ref watch = monitor(child, to_mailbox);
    send(self(), like_a_down{{.who = child, .reason = {}, .ref = watch.id()}});
    send(child, go{});
    while (mailbox_size() < 2) yield();
    EXPECT_FALSE(watch.demonitor_and_flush());
    EXPECT_TRUE(has<like_a_down>());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(mailbox_test, M7_demonitor_says_whether_the_monitor_was_there) {
  run([] {
    const pid child = spawn_detached([] { (void)receive<go>(); });
    monitor_ref first = monitor(child, to_mailbox);
    EXPECT_TRUE(first.demonitor());
    EXPECT_FALSE(first.demonitor());
    monitor_ref second = monitor(child, to_mailbox);
    send(child, go{});
    while (mailbox_size() == 0) yield();
    EXPECT_FALSE(second.demonitor_and_flush());
    EXPECT_EQ(mailbox_size(), 0U);
  });
}

TEST_P(mailbox_test, M8_a_monitor_by_name_tells_the_name) {
  run([] {
    const exit_reason x(atom("x"));
    const pid child = spawn_detached([&] {
      (void)receive<go>();
      exit(x);
    });
    ASSERT_TRUE(register_name("m8", child).has_value());
    const monitor_ref watch = monitor("m8", to_mailbox);
    EXPECT_EQ(send("m8", go{}), delivery::sent);
    const auto gone = take<down>();
    EXPECT_EQ(gone->ref, watch.id());
    EXPECT_EQ(gone->name, "m8");
    EXPECT_EQ(gone->who, child);
    EXPECT_EQ(gone->reason, x);
  });
}

TEST_P(mailbox_test, M9_a_message_comes_before_the_down_of_its_sender) {
  run([] {
    for (int round = 0; round < 200; ++round) {
      auto [child, watch] = spawn_monitor([parent = self()] {
        send(parent, go{});
        exit(exit_reason(atom("x")));
      });
      EXPECT_TRUE(receive([](any_message m) { return m.is<go>(); }));
      EXPECT_TRUE(receive(
          [&](any_message m) { return m.is<down>() && m.get_if<down>()->ref == watch.id(); }));
    }
  });
}

TEST_P(mailbox_test, M10_an_alias_for_a_reply_takes_one_and_ends_its_monitor) {
  run([] {
    const pid child = spawn_detached([] {
      const alias to = receive<alias>();
      send(to, 1);
      send(to, 2);
    });
    auto [watch, to] = monitor_with_alias(child, alias_use::reply_demonitor);
    send(child, to);
    EXPECT_EQ(receive<int>(), 1);
    (void)await_end(child);
    EXPECT_EQ(mailbox_size(), 0U) << "neither the second reply nor a down";
    EXPECT_EQ(send(to, 3), delivery::no_such_actor);
  });
}

TEST_P(mailbox_test, M12_what_is_sent_to_an_alias_taken_back_vanishes) {
  run([] {
    const alias mine = make_alias();
    EXPECT_EQ(send(mine, letter{'a'}), delivery::sent);
    EXPECT_EQ(send(mine, letter{'b'}), delivery::sent);
    EXPECT_TRUE(unalias(mine));
    EXPECT_FALSE(unalias(mine));
    EXPECT_EQ(send(mine, letter{'c'}), delivery::no_such_actor);
    EXPECT_EQ(letters_left(), "ab");
  });
}

TEST_P(mailbox_test, M13_a_reply_alias_takes_one_message) {
  run([] {
    const alias mine = make_alias(alias_use::reply);
    send(mine, letter{'1'});
    send(mine, letter{'2'});
    EXPECT_EQ(letters_left(), "1");
  });
}

TEST_P(mailbox_test, an_alias_made_with_a_monitor_ends_with_it) {
  run([] {
    const pid child = spawn_detached([] { (void)receive<go>(); });
    auto [watch, to] = monitor_with_alias(child, alias_use::any);
    EXPECT_EQ(send(to, 1), delivery::sent);
    EXPECT_EQ(send(to, 2), delivery::sent);
    EXPECT_TRUE(watch.demonitor());
    EXPECT_EQ(send(to, 3), delivery::no_such_actor);
    send(child, go{});
  });
}

}  // namespace
}  // namespace smarm
