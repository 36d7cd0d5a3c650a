// Goal: signals arrive as values, at every subscription, whatever threads have them blocked, and
// their former effect comes back.
// Method: the test sends signals to its own process.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/errors.hpp>
#include <smarm/runtime.hpp>
#include <smarm/signals.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "base/atomic.hpp"
#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::eventually;

// ThreadSanitizer holds a handler back while its thread sleeps in a futex. So under it the first
// thread, a scheduler, has the signals blocked, and the catcher gets them.
class signals_test : public test::actors_test {
 protected:
  signals_test() {
#ifdef SMARM_THREAD_SANITIZER
    sigset_t received;
    sigemptyset(&received);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&received, number);
    ::pthread_sigmask(SIG_BLOCK, &received, nullptr);
#endif
  }
};

SMARM_TEST_AT_1_2_8(signals_test);

// back_to_default discards what is pending, which SIG_IGN does, before it may kill us.
void back_to_default(int number) {
  ::signal(number, SIG_IGN);
  ::signal(number, SIG_DFL);
}

void send_to_self(int number) { ASSERT_EQ(::kill(::getpid(), number), 0); }

TEST_P(signals_test, a_signal_arrives_as_its_number) {
  run([] {
    signals received({SIGTERM, SIGINT});
    EXPECT_FALSE(received.try_recv().has_value());
    auto receiver = spawn([&] { return received.recv(); });
    for (int i = 0; i < 10; ++i) yield();
    send_to_self(SIGTERM);
    EXPECT_EQ(receiver.join().value(), SIGTERM);
    send_to_self(SIGINT);
    EXPECT_EQ(received.recv(), SIGINT);
    EXPECT_FALSE(received.recv_for(5ms).has_value());
  });
}

TEST_P(signals_test, every_subscription_gets_every_signal) {
  run([] {
    signals first({SIGUSR1});
    signals second({SIGUSR1, SIGUSR2});
    send_to_self(SIGUSR1);
    EXPECT_EQ(first.recv(), SIGUSR1);
    EXPECT_EQ(second.recv(), SIGUSR1);
    send_to_self(SIGUSR2);
    EXPECT_EQ(second.recv(), SIGUSR2);
    EXPECT_FALSE(first.recv_for(5ms).has_value());
  });
}

TEST_P(signals_test, the_former_effect_comes_back_with_the_last_subscription) {
  ASSERT_NE(::signal(SIGUSR1, SIG_IGN), SIG_ERR);
  run([] {
    {
      signals outer({SIGUSR1});
      {
        signals inner({SIGUSR1});
        send_to_self(SIGUSR1);
        EXPECT_EQ(inner.recv(), SIGUSR1);
      }
      EXPECT_EQ(outer.recv(), SIGUSR1);
      send_to_self(SIGUSR1);
      EXPECT_EQ(outer.recv(), SIGUSR1);
    }
    struct sigaction now{};
    ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
    send_to_self(SIGUSR1);  // ignored: the process lives
  });
  back_to_default(SIGUSR1);
}

TEST_P(signals_test, a_signal_arrives_where_every_other_thread_has_it_blocked) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  run([] {
    signals received({SIGTERM});
    for (int i = 0; i < 20; ++i) {
      send_to_self(SIGTERM);
      EXPECT_EQ(received.recv(), SIGTERM);
    }
    // Whoever receives them for us is there by now, and has to learn of another one.
    signals later({SIGUSR2});
    send_to_self(SIGUSR2);
    EXPECT_EQ(later.recv(), SIGUSR2);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_P(signals_test, a_thread_that_is_no_actor_receives_by_blocking) {
  signals received({SIGUSR1});
  std::atomic<int> got{0};
  std::thread receiver([&] { got = received.recv(); });
  send_to_self(SIGUSR1);
  receiver.join();
  EXPECT_EQ(got, SIGUSR1);
}

TEST_P(signals_test, a_receiver_can_be_stopped) {
  run([] {
    signals received({SIGUSR1});
    auto receiver = spawn([&] { return received.recv(); });
    for (int i = 0; i < 10; ++i) yield();
    receiver.request_stop();
    EXPECT_TRUE(receiver.join().error().is_stopped());
    send_to_self(SIGUSR1);
    EXPECT_EQ(received.recv(), SIGUSR1);
  });
}

TEST_P(signals_test, a_subscription_moves) {
  run([] {
    signals first({SIGUSR1});
    signals second = std::move(first);
    send_to_self(SIGUSR1);
    EXPECT_EQ(second.recv(), SIGUSR1);
    EXPECT_THROW((void)first.recv(), misuse);
    first = std::move(second);
    send_to_self(SIGUSR1);
    EXPECT_EQ(first.recv(), SIGUSR1);
  });
}

TEST_P(signals_test, what_cannot_be_received_is_refused) {
  EXPECT_THROW(signals({SIGKILL}), std::invalid_argument);
  EXPECT_THROW(signals({SIGSEGV}), std::invalid_argument);
  EXPECT_THROW(signals({0}), std::invalid_argument);
  EXPECT_THROW(signals({1'000}), std::invalid_argument);
  EXPECT_THROW(signals({32}), std::system_error);  // the C library's own
  std::vector<signals> many;
  EXPECT_THROW(
      for (;;) { many.emplace_back(std::initializer_list<int>{SIGUSR1}); }, std::system_error);
  EXPECT_EQ(many.size(), 64U);
}

TEST_P(signals_test, subscriptions_come_and_go_while_signals_rain) {
  ASSERT_NE(::signal(SIGUSR1, SIG_IGN), SIG_ERR);
  std::atomic<bool> done{false};
  std::thread rain([&] {
    while (!done) ::kill(::getpid(), SIGUSR1);
  });
  run([] {
    std::vector<join_handle<void>> actors;
    for (int i = 0; i < 4; ++i) {
      actors.push_back(spawn([] {
        for (std::int64_t round = 0; round < test::rounds(50, 5'000); ++round) {
          signals received({SIGUSR1});
          EXPECT_EQ(received.recv(), SIGUSR1);
        }
      }));
    }
    for (auto& actor : actors) EXPECT_TRUE(actor.join().has_value());
  });
  done = true;
  rain.join();
  back_to_default(SIGUSR1);
}

TEST_P(signals_test, waiting_for_a_signal_costs_no_processor_time) {
  run([] {
    signals received({SIGUSR1});
    auto receiver = spawn([&] { return received.recv(); });
    sleep_for(20ms);
    const auto before = test::cpu_time();
    sleep_for(200ms);
    EXPECT_LT(test::cpu_time() - before, 20ms);
    send_to_self(SIGUSR1);
    EXPECT_EQ(receiver.join().value(), SIGUSR1);
  });
}

}  // namespace
}  // namespace smarm
