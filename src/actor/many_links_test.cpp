// A hundred thousand links on one actor: its end is told to all, and nobody else waits for that.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/semaphore.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::go;
using test::spawn_detached;

// Without the count of allocations: the pools keep some of what so many needed.
using many_links_test = test::run_fixture<unsigned, test::with_schedulers>;
SMARM_TEST_AT_1_2_8(many_links_test);

// The longest that a bystander went without a turn, in a machine that may be busy otherwise: a
// figure for the long run, a bound that only a stall breaks in the suite.
std::chrono::nanoseconds stall_max() { return test::soaking() ? 20ms : 1'000ms; }

TEST_P(many_links_test, the_end_of_an_actor_with_many_links_stalls_nobody) {
  run([] {
    const int peers = test::scaled(100'000);
    semaphore linked(0);
    std::atomic<int> told{0};
    const pid hub = spawn_detached([] {
      (void)receive<go>();
      exit(exit_reason(atom("hub")));
    });
    for (int i = 0; i < peers; ++i) {
      spawn_detached([&] {
        trap_exit(true);
        EXPECT_TRUE(link(hub).has_value());
        linked.release();
        if (receive<exit_signal>().reason.is("hub")) ++told;
        linked.release();
      });
    }
    for (int i = 0; i < peers; ++i) linked.acquire();
    std::atomic<bool> over{false};
    auto bystander = spawn([&] {
      auto longest = std::chrono::steady_clock::duration::zero();
      auto before = std::chrono::steady_clock::now();
      while (!over) {
        yield();
        const auto now = std::chrono::steady_clock::now();
        longest = std::max(longest, now - before);
        before = now;
      }
      return longest;
    });
    send(hub, go{});
    for (int i = 0; i < peers; ++i) linked.acquire();
    over = true;
    EXPECT_LT(bystander.join().value(), stall_max());
    EXPECT_EQ(told, peers);
  });
}

}  // namespace
}  // namespace smarm
