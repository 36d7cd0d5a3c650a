// Goal: where memory for an actor cannot be had, the spawn says so or the actor ends with that as
// its reason; those that live go on, and what was taken comes back. Method: a process of its own
// whose address space is limited; it ends with a status that says what it saw.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/every_way_test.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMARM_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SMARM_TEST_SANITIZED 1
#endif
#endif

namespace smarm {
namespace {

using namespace std::chrono_literals;

using spawn_failure_death_test = test::actors_test;
SMARM_TEST_AT_1_2_8(spawn_failure_death_test);

// Leaves this process so many bytes of address space beyond what it has.
void limit_memory(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * static_cast<std::size_t>(getpagesize()) + more;
  setrlimit(RLIMIT_AS, &limit);
}

void lift_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

// verdict prints what went wrong and ends the process; the test looks for status 0.
void require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}

struct tally {
  int ran = 0;
  int without_stack = 0;
  int refused = 0;
  int other = 0;
};

void count_end(tally& sum, join_handle<int>& handle) {
  const auto end = handle.join();
  if (end.has_value()) {
    ++sum.ran;
    return;
  }
  try {
    std::rethrow_exception(end.error().exception());
  } catch (const std::system_error& e) {
    const bool named = std::strstr(e.what(), "no stack") != nullptr;  // there is no memory to copy
    ++(named ? sum.without_stack : sum.other);
  } catch (...) {
    ++sum.other;
  }
}

// Spawns actors that all live at the same time until there is no memory for more.
tally spawn_until_memory_ends(std::size_t stack_size) {
  tally sum;
  std::atomic<bool> go{false};
  std::vector<join_handle<int>> all;
  all.reserve(20'000);
  for (int i = 0; i < 20'000 && sum.refused < 10; ++i) {
    auto started = try_spawn({.name = "", .stack_size = stack_size}, [&] {
      while (!go.load()) sleep_for(1ms);
      return 1;
    });
    if (started.has_value()) {
      all.push_back(std::move(*started));
    } else {
      require(started.error() == std::errc::not_enough_memory, "the error says memory");
      ++sum.refused;
    }
    if (i % 16 == 0) yield();
    if (all.size() > 400 && all.back().has_ended()) break;  // no stack for it
  }
  go.store(true);
  for (auto& each : all) count_end(sum, each);
  return sum;
}

[[noreturn]] void starve(const config& how, std::size_t stack_size) {
  runtime ours(how);
  ours.run([&] {
    auto bystander = spawn([] {
      sleep_for(20ms);
      return 5;
    });
    yield();
    limit_memory(std::size_t{200} << 20);
    const tally sum = spawn_until_memory_ends(stack_size);
    std::fprintf(stderr, "ran %d, without a stack %d, refused %d, other %d\n", sum.ran,
                 sum.without_stack, sum.refused, sum.other);
    require(sum.other == 0, "nobody ended for another reason");
    require(sum.ran > 10, "those that had a stack ran to their end");
    require(sum.without_stack + sum.refused > 0, "somebody was told that there is no memory");
    require(bystander.join().value() == 5, "the others live");
    lift_limit();
    require(spawn([] { return 6; }).join().value() == 6, "afterwards all is well");
  });
  const runtime_counts left = ours.counts();
  require(left.actors == 0 && left.stacks_in_use == 0 && left.timers == 0, "nothing is left");
  std::_Exit(0);
}

TEST_P(spawn_failure_death_test, without_memory_for_stacks_spawns_fail_and_the_others_live) {
#if defined(SMARM_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more address space than any limit leaves";
#endif
  EXPECT_EXIT(starve(make_config(), std::size_t{1} << 20), ::testing::ExitedWithCode(0), "ran");
}

// Tells a channel when it is destroyed, and waits for the answer.
class asks_when_destroyed {
 public:
  asks_when_destroyed(sender<int> question, receiver<int>& answers)
      : question_(std::move(question)), answers_(&answers) {}
  asks_when_destroyed(asks_when_destroyed&& other) noexcept
      : question_(std::move(other.question_)), answers_(std::exchange(other.answers_, nullptr)) {}
  ~asks_when_destroyed() {
    if (answers_ == nullptr) return;
    (void)question_.send(1);
    (void)answers_->recv();
  }

 private:
  sender<int> question_;
  receiver<int>* answers_;
};

TEST_P(spawn_failure_death_test, functions_without_a_stack_are_destroyed_as_actors_that_may_park) {
#if defined(SMARM_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more address space than any limit leaves";
#endif
  EXPECT_EXIT(
      {
        run(make_config(), [] {
          limit_memory(std::size_t{100} << 20);
          auto [ask, asked] = channel<int>();
          auto [answer, answers] = channel<int>();
          tally sum;
          std::vector<join_handle<int>> all;
          for (int i = 0; i < 5; ++i) {
            all.push_back(spawn({.name = "huge", .stack_size = std::size_t{1} << 30},
                                [held = asks_when_destroyed(ask, answers)] { return 1; }));
          }
          all.front().request_stop();
          for (std::size_t i = 0; i < all.size(); ++i) {
            require(asked.recv().has_value(), "one asks after the other");
            sleep_for(1ms);  // the rest wait for the one stack meanwhile
            require(!asked.try_recv().has_value(), "one at a time");
            require(answer.send(1).has_value(), "it waits for the answer");
          }
          for (auto& each : all) count_end(sum, each);
          require(sum.without_stack == 5, "none had a stack");
        });
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(spawn_failure_death_test, a_stack_larger_than_memory_is_the_exit_reason_of_its_actor_alone) {
#if defined(SMARM_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more address space than any limit leaves";
#endif
  EXPECT_EXIT(
      {
        run(make_config(), [] {
          limit_memory(std::size_t{100} << 20);
          tally sum;
          auto huge = spawn({.name = "huge", .stack_size = std::size_t{1} << 30}, [] { return 1; });
          count_end(sum, huge);
          require(sum.without_stack == 1, "it has no stack");
          require(spawn([] { return 2; }).join().value() == 2, "an ordinary one has");
        });
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace smarm
