// Goal: what C++ and the C library keep per thread is kept per fiber: exceptions being handled and
// in flight, errno, the rounding mode; also when a fiber goes on on another thread. And a stack
// walk ends at the entry. Method: fibers driven by hand; migration is a resume from a second
// thread, waited for by a join.
#include "fiber/fiber.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <cerrno>
#include <cfenv>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "fiber/fiber_fixture.hpp"

namespace smarm::detail {
namespace {

using test::adopted_thread;
using test::test_fiber;

class fibers : public testing::Test {
 protected:
  // on_another_thread resumes the fiber from a thread that ends right after.
  bool resume_elsewhere(test_fiber& subject) {
    bool goes_on = false;
    std::thread([&] {
      adopted_thread there;
      goes_on = subject.resume(there);
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
    }).join();
    return goes_on;
  }

  // disturb throws and catches on this thread while others are parked amid theirs.
  static void disturb() {
    try {
      throw std::string("disturbance");
    } catch (const std::string& text) {
      EXPECT_EQ(text, "disturbance");
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  }

  stack_pool pool;
  adopted_thread here;
};

TEST_F(fibers, parked_inside_a_handler_keep_their_own_current_exception) {
  const auto body = [](const char* name) {
    return [name](test_fiber& me) {
      try {
        throw std::runtime_error(name);
      } catch (const std::runtime_error& error) {
        const std::exception_ptr before = std::current_exception();
        me.park();
        EXPECT_STREQ(error.what(), name);
        EXPECT_EQ(std::current_exception(), before);
        me.park();
        EXPECT_EQ(std::current_exception(), before);
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    };
  };
  test_fiber one(pool, body("one"));
  test_fiber two(pool, body("two"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(one.resume(here));
    EXPECT_EQ(std::current_exception(), nullptr);
    disturb();
    EXPECT_TRUE(two.resume(here));
    disturb();
  }
  // Not in the order in which they were thrown, or a shared stack of exceptions would do.
  EXPECT_FALSE(one.resume(here));
  EXPECT_FALSE(two.resume(here));
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST_F(fibers, parked_in_a_destructor_during_unwinding_count_their_own_exceptions_in_flight) {
  struct parks_when_destroyed {
    test_fiber& me;
    ~parks_when_destroyed() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      me.park();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      // Throw and catch while unwinding, park inside of that too.
      try {
        throw 5;
      } catch (int number) {
        EXPECT_EQ(std::uncaught_exceptions(), 1);
        me.park();
        EXPECT_EQ(number, 5);
        EXPECT_EQ(std::uncaught_exceptions(), 1);
      }
    }
  };
  const auto body = [](test_fiber& me) {
    try {
      const parks_when_destroyed guard{me};
      throw std::runtime_error("unwinding");
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "unwinding");
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  };
  test_fiber one(pool, body);
  test_fiber two(pool, body);
  EXPECT_TRUE(one.resume(here));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  disturb();
  EXPECT_TRUE(two.resume(here));
  EXPECT_TRUE(resume_elsewhere(one));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_TRUE(two.resume(here));
  EXPECT_FALSE(one.resume(here));
  EXPECT_FALSE(resume_elsewhere(two));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(fibers, parked_in_nested_handlers_come_back_through_each) {
  test_fiber subject(pool, [](test_fiber& me) {
    try {
      throw 1;
    } catch (int outer) {
      try {
        throw std::string("two");
      } catch (const std::string& middle) {
        try {
          throw 3.0;
        } catch (double inner) {
          me.park();
          EXPECT_EQ(inner, 3.0);
        }
        me.park();
        EXPECT_EQ(middle, "two");
        EXPECT_NE(std::current_exception(), nullptr);
      }
      me.park();
      EXPECT_EQ(outer, 1);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  });
  EXPECT_TRUE(subject.resume(here));
  disturb();
  EXPECT_TRUE(resume_elsewhere(subject));
  disturb();
  EXPECT_TRUE(subject.resume(here));
  EXPECT_FALSE(resume_elsewhere(subject));
}

TEST_F(fibers, rethrow_what_they_caught_on_another_thread) {
  const thread_state* caught_on = nullptr;
  const thread_state* rethrown_on = nullptr;
  test_fiber subject(pool, [&](test_fiber& me) {
    try {
      try {
        throw std::runtime_error("far");
      } catch (...) {
        caught_on = &current_thread();
        me.park();
        rethrown_on = &current_thread();
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        throw;
      }
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "far");
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      me.park();
      EXPECT_STREQ(error.what(), "far");
    }
  });
  EXPECT_TRUE(subject.resume(here));
  EXPECT_TRUE(resume_elsewhere(subject));
  EXPECT_FALSE(subject.resume(here));
  EXPECT_NE(caught_on, rethrown_on);
}

[[gnu::noinline]] int throw_at_depth(int depth, test_fiber& me) {
  const std::string here_too = std::to_string(depth);  // Something to unwind.
  if (depth == 0) {
    me.park();
    throw std::out_of_range("bottom");
  }
  return throw_at_depth(depth - 1, me) + static_cast<int>(here_too.size());
}

TEST_F(fibers, throw_across_deep_frames_that_began_on_another_thread) {
  bool caught = false;
  test_fiber subject(pool, [&](test_fiber& me) {
    try {
      throw_at_depth(100, me);
    } catch (const std::out_of_range&) {
      caught = true;
    }
  });
  EXPECT_TRUE(resume_elsewhere(subject));
  EXPECT_FALSE(subject.resume(here));
  EXPECT_TRUE(caught);
}

TEST_F(fibers, keep_their_errno) {
  test_fiber subject(pool, [](test_fiber& me) {
    // Through a call, as the C library would: its address must not be kept across a park.
    const auto set = [](int value) { *current_thread().errno_location = value; };
    const auto get = [] { return *current_thread().errno_location; };
    EXPECT_EQ(get(), 0);
    set(EAGAIN);
    me.park();
    EXPECT_EQ(get(), EAGAIN);
    set(EPIPE);
    me.park();
    EXPECT_EQ(get(), EPIPE);
  });
  errno = ENOENT;
  EXPECT_TRUE(subject.resume(here));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_TRUE(resume_elsewhere(subject));
  errno = EDOM;
  EXPECT_FALSE(subject.resume(here));
  EXPECT_EQ(errno, EDOM);
}

TEST_F(fibers, keep_their_rounding_mode_on_whatever_thread) {
  test_fiber subject(pool, [](test_fiber& me) {
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    std::fesetround(FE_UPWARD);
    me.park();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  });
  EXPECT_TRUE(subject.resume(here));
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_FALSE(resume_elsewhere(subject));
}

// A function that a compiler would like to look up once.
[[gnu::noinline]] const thread_state* state_now() { return &current_thread(); }

TEST_F(fibers, see_the_state_of_the_thread_they_run_on_after_a_migration) {
  const thread_state* seen[4] = {};
  const thread_state* by_call[4] = {};
  const thread_state* of_other = nullptr;
  test_fiber subject(pool, [&](test_fiber& me) {
    for (int round = 0; round < 4; ++round) {
      seen[round] = &current_thread();
      by_call[round] = state_now();
      me.park();
    }
  });
  const thread_state* const of_here = &current_thread();
  EXPECT_TRUE(subject.resume(here));
  std::thread([&] {
    adopted_thread there;
    of_other = &current_thread();
    EXPECT_TRUE(subject.resume(there));
    EXPECT_TRUE(subject.resume(there));
  }).join();
  EXPECT_TRUE(subject.resume(here));
  EXPECT_FALSE(subject.resume(here));
  EXPECT_NE(of_here, of_other);
  const thread_state* const expected[4] = {of_here, of_other, of_other, of_here};
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(seen[round], expected[round]) << round;
    EXPECT_EQ(by_call[round], expected[round]) << round;
  }
}

struct walk {
  int frames = 0;
  std::uintptr_t last = 0;
};

_Unwind_Reason_Code count_frame(_Unwind_Context* context, void* argument) {
  auto& result = *static_cast<walk*>(argument);
  ++result.frames;
  result.last = _Unwind_GetIP(context);
  return result.frames < 1000 ? _URC_NO_REASON : _URC_FATAL_PHASE1_ERROR;
}

[[gnu::noinline]] int frame_pointers_up(stack_span stack) {
  int count = 0;
  auto* frame = static_cast<void**>(__builtin_frame_address(0));
  while (frame != nullptr) {
    EXPECT_GE(reinterpret_cast<std::byte*>(frame), stack.low);
    EXPECT_LT(reinterpret_cast<std::byte*>(frame), stack.top());
    if (++count > 1000) {
      return -1;
    }
    frame = static_cast<void**>(*frame);
  }
  return count;
}

TEST_F(fibers, end_a_stack_walk_of_either_kind_at_their_entry) {
  test_fiber subject(pool, [](test_fiber& me) {
    for (int round = 0; round < 2; ++round) {
      walk by_tables;
      EXPECT_EQ(_Unwind_Backtrace(count_frame, &by_tables), _URC_END_OF_STACK);
      EXPECT_GE(by_tables.frames, 3);
      EXPECT_LT(by_tables.frames, 20);
      void* addresses[64];
      EXPECT_LT(backtrace(addresses, 64), 20);
      EXPECT_GE(frame_pointers_up(me.stack()), 2);
      me.park();
    }
  });
  EXPECT_TRUE(subject.resume(here));
  EXPECT_TRUE(resume_elsewhere(subject));
  EXPECT_FALSE(subject.resume(here));
}

TEST_F(fibers, enter_the_next_fresh_one_in_place_when_they_end) {
  static fiber first, second, *home;
  static int order;
  order = 0;
  home = &here.native;
  first = fiber{};
  second = fiber{};
  first.stack = pool.acquire(stack_size_default).value();
  second.stack = first.stack;
  struct entries {
    static void one(void*, std::uintptr_t) {
      EXPECT_EQ(++order, 1);
      errno = EINVAL;
      leave_and_start_fiber(first, second, &two, &order, 9);
    }
    static void two(void* from, std::uintptr_t what) {
      EXPECT_EQ(from, &order);
      EXPECT_EQ(what, 9u);
      EXPECT_EQ(errno, 0);
      EXPECT_EQ(++order, 2);
      disturb();
      leave_fiber(second, *home, nullptr, 11);
    }
  };
  const switch_message got = start_fiber(here.native, first, &entries::one, nullptr, 0);
  EXPECT_EQ(got.what, 11u);
  EXPECT_EQ(order, 2);
  pool.release(first.stack);
}

TEST_F(fibers, that_end_with_an_exception_alive_are_a_broken_invariant) {
  test_fiber subject(pool, [&](test_fiber& me) {
    try {
      throw 1;
    } catch (int) {
      fiber nobody;
      EXPECT_DEATH(leave_fiber(nobody, here.native, nullptr, 0),
                   "a fiber ends with no exception alive");
      me.park();
    }
  });
  EXPECT_TRUE(subject.resume(here));
  EXPECT_FALSE(subject.resume(here));
}

TEST_F(fibers, run_by_the_thousand_and_interleaved) {
#if defined(SMARM_THREAD_SANITIZER)
  constexpr int count = 100;  // It keeps a large state per fiber.
#else
  constexpr int count = 2000;
#endif
  long sum = 0;
  std::vector<std::unique_ptr<test_fiber>> all;
  all.reserve(count);
  for (int index = 0; index < count; ++index) {
    all.push_back(std::make_unique<test_fiber>(pool, [&sum, index](test_fiber& me) {
      for (int round = 0; round < 3; ++round) {
        sum += index;
        me.park();
      }
    }));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& each : all) {
      EXPECT_TRUE(each->resume(here));
    }
  }
  for (auto& each : all) {
    EXPECT_FALSE(each->resume(here));
  }
  EXPECT_EQ(sum, 3L * count * (count - 1) / 2);
  EXPECT_EQ(pool.count().in_use, 0u);
}

}  // namespace
}  // namespace smarm::detail
