// Goal: very many actors are only more of the same: each is spawned, hears a message, is stopped,
// and the memory of all comes back; they do not split the address space into as many mappings; and
// schedulers in great number cost nothing while nothing happens. Method: a hundred thousand parked
// actors (fewer in slow builds), in the long form (SMARM_SOAK) a million; the kernel's figures for
// memory and mappings.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "fiber/sanitizer.hpp"
#include "tests/support/actors_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;

// Not actors_test, which counts allocations: slots are kept.
using scale_test = test::run_fixture<unsigned, test::with_schedulers>;
SMARM_TEST_AT_1_2_8(scale_test);

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int mappings() {
  std::ifstream in("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

// ThreadSanitizer keeps half a megabyte for each actor.
#if defined(SMARM_THREAD_SANITIZER)
constexpr int few = 1'000;
constexpr bool sanitized = true;
#elif defined(SMARM_ADDRESS_SANITIZER)
constexpr int few = 2'000;
constexpr bool sanitized = true;
#elif defined(SMARM_DEBUG)
// Each park changes the scheduler here, and the stress runs have this too.
constexpr int few = 10'000;
constexpr bool sanitized = false;
#else
constexpr int few = 100'000;
constexpr bool sanitized = false;
#endif

struct member {
  join_handle<void> handle;
  sender<int> to;
};

// member_of starts an actor that passes on what it hears, and never ends by itself.
member member_of(sender<int> heard) {
  auto [tx, rx] = channel<int>();
  return {spawn([rx = std::move(rx), heard = std::move(heard)]() mutable {
            for (;;) heard.send(rx.recv().value());
          }),
          std::move(tx)};
}

TEST_P(scale_test, very_many_parked_actors_hear_a_message_and_leave_nothing) {
  const int count = std::getenv("SMARM_SOAK") != nullptr ? 10 * few : few;
  run([&] {
    const int mappings_before = mappings();
    const std::int64_t memory_before = resident_bytes();
    auto [heard, answers] = channel<int>();
    std::vector<member> all;
    all.reserve(count);
    for (int i = 0; i < count; ++i) all.push_back(member_of(heard));
    for (member& each : all) each.to.send(1);
    for (int i = 0; i < count; ++i) ASSERT_EQ(answers.recv().value(), 1);
    const std::int64_t each = (resident_bytes() - memory_before) / count;
    RecordProperty("bytes_an_actor", std::to_string(each));
    RecordProperty("mappings", std::to_string(mappings()));
    if (!sanitized) {
      EXPECT_LE(each, 6'000) << "a page of stack, and what an actor is";
      EXPECT_LE(mappings() - mappings_before, 60) << "guards split none, and slabs join";
    }
    for (member& each_one : all) each_one.handle.request_stop();
    for (member& each_one : all) EXPECT_TRUE(each_one.handle.join().error().is_stopped());
    all.clear();
  });
}

// All but one have nothing to do, and sleep.
TEST(scale, a_hundred_and_twenty_eight_schedulers_cost_nothing_while_nothing_happens) {
  run({.schedulers = 128}, [] {
    sleep_for(50ms);  // those that begin look around first
    const std::clock_t before = std::clock();
    sleep_for(300ms);
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    EXPECT_LT(used, 0.1);
  });
}

}  // namespace
}  // namespace smarm
