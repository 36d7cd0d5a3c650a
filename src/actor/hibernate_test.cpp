// Goal: who hibernates waits for a message as others do (Y3 and Y4 are the names in OTP's probe),
// and the memory of its stack that it does not use is the system's meanwhile. Method: actors that
// have called deeply, and the kernel's word on which of their pages there are.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <smarm/deadline.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/server.hpp>
#include <smarm/this_server.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::go;
using test::has;
using test::long_enough;
using test::take;

using hibernate_test = test::actors_test;
SMARM_TEST_AT_1_2_8(hibernate_test);

TEST_P(hibernate_test, Y3_hibernate_wakes_on_a_message) {
  run([] {
    std::atomic<bool> woke = false;
    auto sleeper = spawn([&] {
      EXPECT_TRUE(hibernate());
      woke = true;
      EXPECT_EQ(mailbox_size(), 1U);
      EXPECT_TRUE(has<go>());
    });
    sleep_for(1ms);
    EXPECT_FALSE(woke);
    send(sleeper.id(), go{});
    EXPECT_TRUE(sleeper.join().has_value());
    EXPECT_TRUE(woke);
  });
}

TEST_P(hibernate_test, Y4_hibernate_returns_at_once_where_a_message_is_queued) {
  run([] {
    send(self(), go{});
    EXPECT_TRUE(hibernate());
    EXPECT_TRUE(hibernate(deadline::from_ns(0)));
    // Also one that a receive has passed over.
    EXPECT_FALSE(has<int>());
    EXPECT_TRUE(hibernate());
    EXPECT_TRUE(has<go>());
  });
}

TEST_P(hibernate_test, it_gives_up_at_the_deadline_and_can_be_stopped) {
  run([] {
    EXPECT_FALSE(hibernate(deadline::from_ns(0)));
    EXPECT_FALSE(hibernate(1ms));
    auto sleeper = spawn([] { (void)hibernate(); });
    sleep_for(1ms);
    sleeper.request_stop();
    EXPECT_TRUE(sleeper.join().error().is_stopped());
  });
  EXPECT_THROW((void)hibernate(), misuse);
}

// ---- memory ----------------------------------------------------------------------------------

constexpr std::size_t deep = std::size_t{40} << 10;

std::uintptr_t page_of(std::uintptr_t address) {
  const auto page = static_cast<std::uintptr_t>(::getpagesize());
  return address / page * page;
}

// Touches so much of the stack beyond the caller's frame; where that begins.
[[gnu::noinline]] std::uintptr_t call_deeply() {
  // Neither an array nor of a size that the compiler knows: AddressSanitizer would put it
  // elsewhere.
  const volatile std::size_t size = deep;
  auto* const place = static_cast<volatile char*>(__builtin_alloca(size));
  for (std::size_t i = 0; i < deep; i += 512) place[i] = 1;
  return reinterpret_cast<std::uintptr_t>(place);
}

// How many bytes from there on, of those that call_deeply has touched, are in memory. The part
// nearest to the frames that are in use is left out.
std::size_t resident_at(std::uintptr_t deepest) {
  const auto page = static_cast<std::size_t>(::getpagesize());
  const std::uintptr_t begin = page_of(deepest + page - 1);
  const std::size_t size = deep - 4 * page;
  std::vector<unsigned char> pages((size + page - 1) / page);
  // SAFETY: asked about, not touched; the actor lives.
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), size, pages.data()), 0);
  std::size_t there = 0;
  for (const unsigned char each : pages) there += (each & 1) != 0 ? page : 0;
  return there;
}

std::size_t resident_at(const std::vector<std::uintptr_t>& all) {
  std::size_t sum = 0;
  for (const std::uintptr_t each : all) sum += resident_at(each);
  return sum;
}

struct at {
  std::uintptr_t deepest;
};

// Starts actors that call deeply and then wait; where their stacks' deep ends are.
template <class Wait>
std::vector<std::uintptr_t> start_deep_ones(int count, std::vector<join_handle<void>>& handles,
                                            Wait wait) {
  std::vector<std::uintptr_t> all;
  for (int i = 0; i < count; ++i) {
    handles.push_back(spawn([top = self(), wait] {
      send(top, at{call_deeply()});
      wait();
    }));
    all.push_back(take<at>()->deepest);
  }
  return all;
}

void await_given_back(const std::vector<std::uintptr_t>& all) {
  const deadline until(long_enough);
  while (resident_at(all) > 0) {
    ASSERT_FALSE(until.has_passed()) << resident_at(all) << " bytes stay in memory";
    yield();
  }
}

TEST_P(hibernate_test, the_memory_of_many_stacks_goes_back_while_they_hibernate) {
  run([] {
    constexpr int count = 200;
    std::vector<join_handle<void>> handles;
    const auto plain = start_deep_ones(count, handles, [] { (void)receive<go>(); });
    const auto hibernating = start_deep_ones(count, handles, [] {
      (void)hibernate();
      (void)receive<go>();
      EXPECT_NE(call_deeply(), 0U);  // and can be used again
    });
    await_given_back(hibernating);
    EXPECT_GE(resident_at(plain), count * (deep / 2));
    for (const auto& each : handles) send(each.id(), go{});
    for (auto& each : handles) {
      EXPECT_TRUE(each.join().has_value());
    }
  });
}

struct sleepy {
  struct work {
    using reply = std::uintptr_t;
  };
  struct nap {
    using reply = std::uintptr_t;
  };
  int naps = 0;

  std::uintptr_t handle(work) { return call_deeply(); }
  std::uintptr_t handle(nap) {
    ++naps;
    this_server::hibernate();
    return call_deeply();
  }
};

TEST_P(hibernate_test, a_server_hibernates_when_its_handler_says_so_and_wakes_on_a_call) {
  run([] {
    const auto server = start_server<sleepy>().value();
    for (int i = 0; i < 3; ++i) {
      const std::vector deepest{server.call(sleepy::nap{}).value()};
      await_given_back(deepest);
    }
    // Once: after another message it waits as others do.
    const std::uintptr_t touched = server.call(sleepy::work{}).value();
    EXPECT_EQ(server.get_state()->naps, 3);
    EXPECT_GE(resident_at(touched), deep / 2);
    EXPECT_TRUE(server.stop().has_value());
  });
  EXPECT_THROW(this_server::hibernate(), misuse);
}

TEST_P(hibernate_test, a_server_that_hibernates_is_told_of_its_timeout) {
  struct timed {
    pid tell;
    void init(starting&) {
      this_server::set_timeout(1ms);
      this_server::hibernate();
    }
    void handle(timeout) { send(tell, go{}); }
  };
  run([] {
    const auto server = start_server<timed>({}, self()).value();
    EXPECT_TRUE(take<go>().has_value());
    EXPECT_TRUE(server.stop().has_value());
  });
}

}  // namespace
}  // namespace smarm
