// Goal: the reason of an actor that an exception ended has the stack of the throw, and no other
// reason has one; what the actor does meanwhile, in handlers and destructors, does not disturb it.
// Method: functions of names that are looked for in the text; processes of their own where memory
// is used up.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "base/captured_stack.hpp"
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

// With names that a program exports, so that they are found with and without debug information.
// Their namespace is left out of the text where one was inlined.
namespace thrown_frames {

[[gnu::noinline]] void deepest(int number) {
  if (number >= 0) throw std::runtime_error("from the depth");
}

[[gnu::noinline]] int middle(int number) {
  deepest(number);
  return number + 1;  // no tail call
}

[[gnu::noinline]] int throws_again(int number) {
  try {
    return middle(number);
  } catch (const std::exception&) {
    yield();
    throw;
  }
}

[[gnu::noinline]] void throws_kept(const std::exception_ptr& kept) {
  if (kept != nullptr) std::rethrow_exception(kept);
}

[[gnu::noinline]] int throws_another(int number) {
  try {
    return middle(number);
  } catch (const std::exception&) {
    if (number >= 0) throw std::logic_error("from the handler");
    return 0;
  }
}

[[gnu::noinline]] int asks_too_far(const std::vector<int>& few, std::size_t where) {
  return few.at(where) + 1;
}

[[gnu::noinline]] int recurses(int depth) {
  // Twice, and through a volatile: the optimizer must make no loop of it.
  volatile int step = 1;
  if (depth == 0) return middle(0);
  return recurses(depth - step) + recurses(depth - step);
}

}  // namespace thrown_frames

namespace {

using namespace std::chrono_literals;
using thrown_frames::middle;

using thrown_test = test::actors_test;
SMARM_TEST_AT_1_2_8(thrown_test);
using thrown_death_test = test::actors_test;
SMARM_TEST_AT_1_2_8(thrown_death_test);

template <class F>
exit_reason reason_of(F f, spawn_options options = {}) {
  auto outcome = spawn(std::move(options), std::move(f)).join();
  return outcome ? exit_reason::normal() : outcome.error();
}

// Where in the text the first line stands that has this in it.
std::size_t line_of(const std::string& text, const std::string& what) {
  const std::size_t found = text.find(what);
  if (found == std::string::npos) return found;
  return static_cast<std::size_t>(
      std::count(text.begin(), text.begin() + static_cast<long>(found), '\n'));
}

TEST_P(thrown_test, an_error_has_the_stack_of_its_throw_the_deepest_function_first) {
  run([] {
    const exit_reason why = reason_of([] { (void)middle(1); });
    ASSERT_TRUE(why.is_error());
    const std::string text = why.stack_text();
    EXPECT_EQ(line_of(text, "deepest"), 0U) << text;
    EXPECT_EQ(line_of(text, "middle"), 1U) << text;
    EXPECT_EQ(text.find("__cxa_throw"), std::string::npos) << text;
    EXPECT_EQ(text.find("actor_main"), std::string::npos) << text;
    EXPECT_EQ(text.back(), '\n');
  });
}

TEST_P(thrown_test, an_error_thrown_again_has_the_stack_of_that) {
  run([] {
    const exit_reason again = reason_of([] { (void)thrown_frames::throws_again(1); });
    EXPECT_EQ(line_of(again.stack_text(), "throws_again"), 0U) << again.stack_text();
    const exit_reason kept = reason_of([&] { thrown_frames::throws_kept(again.exception()); });
    EXPECT_EQ(line_of(kept.stack_text(), "throws_kept"), 0U) << kept.stack_text();
    EXPECT_EQ(kept.exception(), again.exception());
  });
}

TEST_P(thrown_test, an_error_thrown_by_a_handler_has_the_handlers_stack) {
  run([] {
    const exit_reason why = reason_of([] { (void)thrown_frames::throws_another(1); });
    EXPECT_EQ(why.text(), "from the handler");
    EXPECT_EQ(line_of(why.stack_text(), "throws_another"), 0U) << why.stack_text();
    EXPECT_EQ(why.stack_text().find("deepest"), std::string::npos) << why.stack_text();
  });
}

TEST_P(thrown_test, an_error_of_the_standard_library_names_who_called_it) {
  run([] {
    const exit_reason why =
        reason_of([] { (void)thrown_frames::asks_too_far(std::vector<int>{1, 2}, 7); });
    EXPECT_NE(why.stack_text().find("asks_too_far"), std::string::npos) << why.stack_text();
  });
}

// Between the throw and the actor's end destructors run, which may throw, catch and park.
TEST_P(thrown_test, what_destructors_do_during_the_unwind_leaves_the_stack_alone) {
  struct busy {
    ~busy() {
      try {
        (void)thrown_frames::throws_another(2);
      } catch (const std::logic_error&) {
        sleep_for(20us);
      }
      const exit_reason within = reason_of([] { throw std::logic_error("a child's"); });
      EXPECT_TRUE(within.is_error());
    }
  };
  run([] {
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 20; ++i) {
      all.push_back(spawn([i] {
        const busy at_the_end;
        (void)middle(i);
      }));
    }
    for (auto& each : all) {
      const exit_reason why = each.join().error();
      EXPECT_EQ(why.text(), "from the depth");
      ASSERT_FALSE(why.stack().empty());
      EXPECT_EQ(line_of(why.stack_text(), "deepest"), 0U) << why.stack_text();
    }
  });
}

TEST_P(thrown_test, nobody_but_an_error_has_a_stack) {
  run([] {
    EXPECT_TRUE(reason_of([] {}).stack().empty());
    EXPECT_TRUE(reason_of([] {
                  try {
                    (void)middle(1);
                  } catch (const std::exception&) {
                  }
                })
                    .stack()
                    .empty());
    const exit_reason left = reason_of([] { throw exit_request{exit_reason(atom("enough"))}; });
    EXPECT_TRUE(left.is("enough"));
    EXPECT_TRUE(left.stack().empty());
    EXPECT_EQ(left.stack_text(), "");

    auto stopped = spawn([] { sleep_for(1h); });
    stopped.request_stop();
    EXPECT_TRUE(stopped.join().error().stack().empty());
  });
}

TEST_P(thrown_test, a_stop_while_an_exception_is_handled_has_no_stack) {
  run([] {
    auto victim = spawn([] {
      try {
        (void)middle(1);
      } catch (const std::exception&) {
        sleep_for(1h);
      }
    });
    yield();
    victim.request_stop();
    const exit_reason why = victim.join().error();
    EXPECT_TRUE(why.is_stopped());
    EXPECT_TRUE(why.stack().empty());
  });
}

TEST_P(thrown_test, the_deepest_frames_of_a_long_stack_are_kept) {
  run([] {
    const exit_reason why = reason_of([] { (void)thrown_frames::recurses(100); });
    EXPECT_EQ(why.stack().size(), detail::captured_stack::frames_max);
    EXPECT_EQ(line_of(why.stack_text(), "deepest"), 0U) << why.stack_text();
  });
}

TEST_P(thrown_test, the_smallest_stack_has_room_for_it) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      const exit_reason why = reason_of([] { (void)middle(1); }, {.stack_size = 16 << 10});
      EXPECT_EQ(line_of(why.stack_text(), "deepest"), 0U) << why.stack_text();
    }
  });
}

TEST_P(thrown_test, an_actor_of_the_smallest_stack_can_have_the_text) {
  run([] {
    const exit_reason why = reason_of([] { (void)middle(1); });
    const auto asked =
        spawn({.stack_size = 16 << 10}, [&] { return why.stack_text(); }).join().value();
    EXPECT_EQ(line_of(asked, "deepest"), 0U) << asked;
  });
}

TEST_P(thrown_test, a_reason_equals_one_of_the_same_exception_whatever_their_stacks) {
  run([] {
    const exit_reason with = reason_of([] { (void)middle(1); });
    const exit_reason without = exit_reason::error(with.exception());
    ASSERT_FALSE(with.stack().empty());
    EXPECT_TRUE(without.stack().empty());
    EXPECT_EQ(with, without);
    EXPECT_EQ(with.to_term(), without.to_term());
    EXPECT_EQ(with.message(), without.message());
    EXPECT_EQ(with.type_name(), "std::runtime_error");
    exit_reason copy = with;
    exit_reason moved = std::move(copy);
    EXPECT_EQ(moved, with);
    EXPECT_TRUE(std::ranges::equal(moved.stack(), with.stack()));
    EXPECT_NE(with, reason_of([] { (void)middle(1); }));
  });
}

// An exception that is none of C++, as a library of another language may raise.
TEST_P(thrown_test, an_exception_of_another_language_is_an_error_without_a_stack) {
  static const auto raise = [] {
    auto* const foreign = new _Unwind_Exception{};
    foreign->exception_class = 0x736d61726d000000;  // "smarm"
    foreign->exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception* gone) { delete gone; };
    _Unwind_RaiseException(foreign);
  };
  run([] {
    const exit_reason why = reason_of([] { raise(); });
    EXPECT_TRUE(why.is_error());
    EXPECT_TRUE(why.stack().empty());
    EXPECT_EQ(why.exception(), nullptr);
    EXPECT_EQ(why.message(), "failed: an exception of another language");
  });
}

// ---- without memory --------------------------------------------------------------------------

void require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}

// Not by its name: what nobody uses a compiler need not allocate.
void* (*volatile allocate)(std::size_t) = &std::malloc;

[[noreturn]] void throw_without_memory(const config& how) {
  run(how, [] {
    const auto without = std::logic_error("made before");
    auto failing = spawn([&] {
      std::size_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      rlimit limit{};
      getrlimit(RLIMIT_AS, &limit);
      const rlimit before = limit;
      limit.rlim_cur = pages * static_cast<std::size_t>(getpagesize());
      setrlimit(RLIMIT_AS, &limit);
      // Nothing is left of any size.
      for (std::size_t size = std::size_t{1} << 20; size >= 16;
           size = size > 1024 ? size / 2 : size - 16) {
        while (allocate(size) != nullptr) {
        }
      }
      struct lifts {
        rlimit before;
        ~lifts() { setrlimit(RLIMIT_AS, &before); }
      } const at_the_end{before};
      throw without;
    });
    const auto outcome = failing.join();
    require(!outcome, "it failed");
    require(outcome.error().is_error(), "by an exception");
    require(outcome.error().stack().empty(), "whose stack found no memory");
    require(outcome.error().text() == "made before", "and which is there all the same");
  });
  std::_Exit(0);
}

TEST_P(thrown_death_test, without_memory_for_the_stack_the_exception_alone_is_the_reason) {
#if defined(SMARM_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more address space than any limit leaves";
#endif
  EXPECT_EXIT(throw_without_memory(make_config()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace smarm
