// select: over channels, oneshots, monitors, the mailbox and time.
#include <array>
#include <thread>
#include <vector>

#include <smarm/select.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::go;
using test::spawn_detached;
using test::wait_for_ever;

using select_test = test::actors_test;
SMARM_TEST_AT_1_2_8(select_test);

template <class T>
using received = std::expected<T, recv_error>;

TEST_P(select_test, takes_from_the_channel_that_has_something_and_leaves_the_others) {
  run([] {
    auto [tx_a, rx_a] = channel<int>();
    auto [tx_b, rx_b] = channel<int>();
    (void)tx_b.send(7);
    const auto pick = [&] {
      return select(on(rx_a, [](received<int> v) { return v.value(); }),
                    on(rx_b, [](received<int> v) { return v.value() + 100; }));
    };
    EXPECT_EQ(pick(), 107);
    (void)tx_a.send(8);
    EXPECT_EQ(pick(), 8);
    EXPECT_EQ(rx_a.size() + rx_b.size(), 0U);
  });
}

TEST_P(select_test, waits_until_one_of_them_speaks) {
  run([] {
    auto [tx_a, rx_a] = channel<int>();
    auto [tx_b, rx_b] = channel<int>(1);
    auto [once, reply] = oneshot<int>();
    auto worker = spawn_detached([tx = tx_a, parent = self()] {
      (void)receive<go>();
      (void)tx.send(1);
      (void)receive<go>();
      send(parent, 3);
    });
    std::vector<int> seen;
    const auto wait = [&] {
      select(on(rx_a, [&](received<int> v) { seen.push_back(v.value()); }),
             on(rx_b, [&](received<int> v) { seen.push_back(v.value()); }),
             on(reply, [&](received<int> v) { seen.push_back(v.value()); }),
             on_message([&](int v) { seen.push_back(v); }));
    };
    send(worker, go{});
    wait();
    auto answerer = spawn([once = std::move(once)]() mutable { (void)once.send(2); });
    wait();
    (void)answerer.join();
    EXPECT_FALSE(reply) << "a oneshot is empty once it was received";
    send(worker, go{});
    EXPECT_THROW(wait(), misuse) << "an empty receiver cannot be waited for";
    EXPECT_EQ(receive<int>(), 3);
    EXPECT_EQ(seen, (std::vector{1, 2}));
  });
}

TEST_P(select_test, gives_up_at_its_deadline_and_loses_nothing) {
  run([] {
    auto [tx, rx] = channel<int>();
    const auto wait = [&](deadline until) {
      return select(on(rx, [](received<int> v) { return v.value(); }),
                    on_message([](int v) { return v; }), after(until, [] { return -1; }));
    };
    EXPECT_EQ(wait(0ms), -1);
    EXPECT_EQ(wait(1ms), -1);
    (void)tx.send(4);
    EXPECT_EQ(wait(0ms), 4);
    send(self(), 5);
    EXPECT_EQ(wait(1h), 5);
  });
}

TEST_P(select_test, an_ended_channel_is_ready_with_closed) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto closer = spawn([tx = std::move(tx)] { yield(); });
    const recv_error why = select(on(rx, [](received<int> v) { return v.error(); }),
                                  on_message([](go) { return recv_error::empty; }));
    EXPECT_EQ(why, recv_error::closed);
    (void)closer.join();
  });
}

TEST_P(select_test, a_monitor_and_the_mailbox_stand_in_one_select) {
  run([] {
    auto child = spawn([] { (void)receive<go>(); });
    auto watch = monitor(child.id());
    const auto wait = [&] {
      return select(on(watch, [](down gone) { return gone.reason.message(); }),
                    on_message(when([](const int& n) { return n > 1; },
                                    [](int n) { return std::to_string(n); }),
                               [](std::string s) { return s; }));
    };
    send(self(), 1);
    send(self(), 2);
    EXPECT_EQ(wait(), "2");
    send(self(), std::string("text"));
    EXPECT_EQ(wait(), "text");
    send(child.id(), go{});
    EXPECT_EQ(wait(), "normal");
    EXPECT_EQ(receive<int>(), 1) << "what no handler accepts stays";
    (void)child.join();
  });
}

TEST_P(select_test, none_of_several_that_are_always_ready_is_passed_over) {
  run([] {
    constexpr int turns = 300;
    auto [tx_a, rx_a] = channel<int>();
    auto [tx_b, rx_b] = channel<int>();
    for (int i = 0; i < turns; ++i) {
      (void)tx_a.send(i);
      (void)tx_b.send(i);
      send(self(), i);
    }
    std::array<int, 3> taken{};
    for (int i = 0; i < turns; ++i) {
      ++taken[select(on(rx_a, [](received<int>) { return 0U; }),
                     on(rx_b, [](received<int>) { return 1U; }),
                     on_message([](int) { return 2U; }))];
    }
    for (const int each : taken) EXPECT_GT(each, turns / 12);
  });
}

TEST_P(select_test, a_stop_ends_it_and_every_source_can_be_used_again) {
  run([] {
    auto [tx, rx] = channel<int>();
    auto waiting =
        spawn([rx = &rx] { select(on(*rx, [](received<int>) {}), on_message([](int) {})); });
    for (int i = 0; i < 10; ++i) yield();
    waiting.request_stop();
    EXPECT_TRUE(waiting.join().error().is_stopped());
    (void)tx.send(1);
    EXPECT_EQ(rx.recv().value(), 1);
  });
}

TEST_P(select_test, one_thing_twice_is_misuse) {
  run([] {
    auto [tx, rx] = channel<int>();
    EXPECT_THROW(select(on(rx, [](received<int>) {}), on(rx, [](received<int>) {})), misuse);
    EXPECT_THROW(select(on_message([](int) {}), on_message([](go) {})), misuse);
  });
}

TEST_P(select_test, a_thread_that_is_no_actor_selects_over_channels) {
  auto [tx, rx] = channel<int>();
  auto [tx_b, rx_b] = channel<int>();
  run([&] { (void)spawn([&] { (void)tx.send(9); }); });
  EXPECT_EQ(select(on(rx, [](received<int> v) { return v.value(); }),
                   on(rx_b, [](received<int>) { return 0; })),
            9);
}

// Everything that is sent on any way is received once, whoever sends and whenever.
TEST_P(select_test, a_storm_over_all_sources_loses_nothing) {
  run([] {
    constexpr int each = 2'000;
    auto [tx_a, rx_a] = channel<int>();
    auto [tx_b, rx_b] = channel<int>(4);
    const pid me = self();
    auto rng = test::make_rng();
    const auto seed = rng();
    auto first = spawn([tx = tx_a] {
      for (int i = 1; i <= each; ++i) (void)tx.send(i);
    });
    auto second = spawn([tx = tx_b] {
      for (int i = 1; i <= each; ++i) (void)tx.send(i);
    });
    auto third = spawn([me, seed] {
      for (int i = 1; i <= each; ++i) {
        send(me, i);
        if ((static_cast<std::uint64_t>(i) * seed) % 7 == 0) yield();
      }
    });
    std::array<int, 3> last{};
    const auto take = [&](std::size_t from, int number) {
      EXPECT_EQ(number, last[from] + 1);
      last[from] = number;
    };
    for (int i = 0; i < 3 * each; ++i) {
      select(on(rx_a, [&](received<int> v) { take(0, v.value()); }),
             on(rx_b, [&](received<int> v) { take(1, v.value()); }),
             on_message([&](int v) { take(2, v); }), after(test::long_enough, [] { FAIL(); }));
    }
    (void)first.join();
    (void)second.join();
    (void)third.join();
  });
}

}  // namespace
}  // namespace smarm
