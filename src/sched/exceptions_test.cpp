// Goal: an actor's exceptions are its own. Parking inside a catch, inside a destructor while an
// exception is in flight, nested, and rethrowing after a move to another scheduler leave
// std::current_exception and std::uncaught_exceptions as they were, whatever other actors throw on
// the same threads meanwhile. Method: actors that check their own state at every step, among noisy
// ones; AddressSanitizer sees an exception that was freed under its owner.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <ios>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::scaled;

// Other actors that throw and catch all the time, on every scheduler, around each test's root.
class exceptions_test : public test::actors_test {
 protected:
  template <class F>
  static void run_among_noise(F&& root) {
    run([&] {
      std::atomic<bool> over{false};
      std::vector<join_handle<void>> noise;
      for (int i = 0; i < 4; ++i) noise.push_back(spawn([&] { make_noise(over); }));
      root();
      over.store(true);
      for (auto& each : noise) {
        EXPECT_TRUE(each.join().has_value());
      }
    });
  }

 private:
  static void make_noise(const std::atomic<bool>& over) {
    while (!over.load()) {
      try {
        throw std::runtime_error("noise");
      } catch (const std::runtime_error&) {
        yield();
      }
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
      sleep_for(20us);
    }
  }
};
SMARM_TEST_AT_1_2_8(exceptions_test);

// change_place parks in such a way that the actor may come back on another scheduler.
void change_place(int how) {
  if (how % 3 == 0) {
    yield();
  } else if (how % 3 == 1) {
    sleep_for(30us);
  } else {
    (void)spawn([] { yield(); }).join();
  }
}

std::string what_of(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST_P(exceptions_test, an_actor_that_parks_in_a_handler_keeps_the_exception_it_handles) {
  run_among_noise([] {
    for (int i = 0; i < scaled(200); ++i) {
      const std::string text = "mine " + std::to_string(i);
      try {
        throw std::runtime_error(text);
      } catch (const std::runtime_error& e) {
        const std::exception_ptr before = std::current_exception();
        change_place(i);
        ASSERT_EQ(std::current_exception(), before);
        ASSERT_EQ(e.what(), text);
        ASSERT_EQ(std::uncaught_exceptions(), 0);
      }
      ASSERT_EQ(std::current_exception(), nullptr);
    }
  });
}

TEST_P(exceptions_test, an_exception_is_rethrown_after_a_park) {
  run_among_noise([] {
    for (int i = 0; i < scaled(200); ++i) {
      int caught = 0;
      try {
        try {
          throw i;
        } catch (...) {
          change_place(i);
          throw;
        }
      } catch (const int& value) {
        change_place(i + 1);
        caught = value + 1;
      }
      ASSERT_EQ(caught, i + 1);
    }
  });
}

TEST_P(exceptions_test, a_destructor_that_parks_while_an_exception_is_in_flight_sees_it_in_flight) {
  struct parks {
    int how;
    ~parks() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      change_place(how);
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      try {
        throw std::logic_error("within");
      } catch (const std::logic_error& e) {
        EXPECT_EQ(std::uncaught_exceptions(), 1);
        change_place(how + 1);
        EXPECT_STREQ(e.what(), "within");
      }
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  run_among_noise([] {
    for (int i = 0; i < scaled(100); ++i) {
      try {
        const parks first{i};
        const parks second{i + 1};
        throw std::runtime_error("outer");
      } catch (const std::runtime_error& e) {
        ASSERT_STREQ(e.what(), "outer");
        ASSERT_EQ(std::uncaught_exceptions(), 0);
      }
    }
  });
}

TEST_P(exceptions_test, nested_handlers_each_keep_their_own) {
  struct nest {
    static void dig(int depth, int how) {
      const std::string text = "level " + std::to_string(depth);
      try {
        throw std::runtime_error(text);
      } catch (const std::runtime_error& e) {
        change_place(how + depth);
        if (depth > 0) dig(depth - 1, how);
        change_place(how + depth + 1);
        EXPECT_EQ(e.what(), text);
        EXPECT_EQ(what_of(std::current_exception()), text);
      }
    }
  };
  run_among_noise([] {
    for (int i = 0; i < scaled(50); ++i) nest::dig(5, i);
    EXPECT_EQ(std::current_exception(), nullptr);
  });
}

TEST_P(exceptions_test, many_actors_handle_many_exceptions_at_once) {
  run([] {
    std::vector<join_handle<int>> all;
    for (int i = 0; i < 40; ++i) {
      all.push_back(spawn([i] {
        int sum = 0;
        for (int j = 0; j < scaled(50); ++j) {
          try {
            throw i * 1000 + j;
          } catch (const int& value) {
            change_place(j);
            sum += value == i * 1000 + j ? 1 : 0;
          }
        }
        return sum;
      }));
    }
    for (auto& each : all) {
      EXPECT_EQ(each.join().value(), scaled(50));
    }
  });
}

TEST_P(exceptions_test, an_exception_pointer_travels_between_actors_and_threads) {
  std::exception_ptr outside;
  run([&] {
    auto failed = spawn([]() -> int { throw std::runtime_error("far from home"); }).join();
    outside = failed.error().exception();
    EXPECT_EQ(what_of(outside), "far from home");
  });
  EXPECT_EQ(what_of(outside), "far from home");
}

TEST_P(exceptions_test,
       uncaught_exceptions_is_zero_at_the_start_of_an_actor_spawned_while_unwinding) {
  struct spawner {
    std::atomic<int>& seen;
    ~spawner() {
      seen = spawn([] { return std::uncaught_exceptions(); }).join().value();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  run([] {
    std::atomic<int> seen{-1};
    try {
      const spawner at_the_end{seen};
      throw 1;
    } catch (int) {
      EXPECT_EQ(seen.load(), 0);
    }
  });
}

TEST_P(exceptions_test, a_stopped_actor_unwinds_with_exactly_one_exception_in_flight) {
  struct counts {
    std::atomic<int>& seen;
    ~counts() {
      seen = std::uncaught_exceptions();
      sleep_for(20us);
      EXPECT_EQ(std::uncaught_exceptions(), seen.load());
    }
  };
  run_among_noise([] {
    for (int i = 0; i < scaled(50); ++i) {
      std::atomic<int> seen{-1};
      std::atomic<bool> begun{false};
      auto victim = spawn([&] {
        const counts at_the_end{seen};
        begun.store(true);
        if (i % 2 == 0) sleep_for(1h);
        try {
          throw std::runtime_error("handled while stopped");
        } catch (const std::runtime_error&) {
          sleep_for(1h);
        }
      });
      while (!begun.load()) yield();
      victim.request_stop();
      ASSERT_TRUE(victim.join().error().is_stopped());
      ASSERT_EQ(seen.load(), 1);
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
}

// ---- what else of the thread an actor takes along
// ------------------------------------------------

// Compilers hold that a function stays on its thread and keep the address of errno across a call
// that may park; a call they cannot see through reads it anew, as the system's own calls do.
int read_errno() { return errno; }
void write_errno(int value) { errno = value; }
int (*volatile read_errno_now)() = &read_errno;
void (*volatile write_errno_now)(int) = &write_errno;

TEST_P(exceptions_test, errno_stays_with_the_actor) {
  run([] {
    std::vector<join_handle<void>> all;
    for (int i = 1; i <= 20; ++i) {
      all.push_back(spawn([i] {
        for (int j = 0; j < scaled(100); ++j) {
          write_errno_now(i);
          change_place(j % 2);
          ASSERT_EQ(read_errno_now(), i);
        }
      }));
    }
    for (auto& each : all) {
      EXPECT_TRUE(each.join().has_value());
    }
  });
}

// An iostream catches whatever its buffer throws and only sets badbit: the stop that was swallowed
// there has to come back at the next stop point.
TEST_P(exceptions_test, a_stop_swallowed_by_an_iostream_ends_the_actor_at_its_next_park) {
  class parking_buffer : public std::streambuf {
   public:
    std::atomic<bool> parked{false};

   protected:
    int overflow(int) override {
      parked.store(true);
      sleep_for(1h);
      return 0;
    }
  };
  run([] {
    parking_buffer buffer;
    std::atomic<bool> went_on{false};
    auto writer = spawn([&] {
      std::ostream out(&buffer);
      out << "text" << std::flush;
      EXPECT_TRUE(out.bad());
      went_on.store(true);
      yield();
      ADD_FAILURE() << "outlived its stop";
    });
    while (!buffer.parked.load()) yield();
    writer.request_stop();
    EXPECT_TRUE(writer.join().error().is_stopped());
    EXPECT_TRUE(went_on.load());
  });
}

// ---- migration
// -----------------------------------------------------------------------------------

thread_local int mark_of_this_thread;
int* address_of_mark() { return &mark_of_this_thread; }
int* (*volatile address_of_mark_now)() = &address_of_mark;

// count_moves parks two hundred times and counts how often the actor came back on another thread.
int count_moves() {
  int moved = 0;
  for (int i = 0; i < 200; ++i) {
    const int* const kept = address_of_mark_now();
    change_place(i);
    if (address_of_mark_now() != kept) ++moved;
  }
  return moved;
}

TEST_P(exceptions_test, debug_builds_move_an_actor_at_its_parks_so_that_a_kept_thread_local_shows) {
  runtime ours(make_config());
  int moves = 0;
#ifdef SMARM_DEBUG
  // At nearly each park, but for a crowded machine, where the other scheduler seldom comes in time.
  const int wanted = schedulers() > 1 ? 50 : 0;
#else
  const int wanted = 0;
#endif
  ours.run([&] {
    const auto until = std::chrono::steady_clock::now() + 30s;
    do moves += count_moves();
    while (moves < wanted && std::chrono::steady_clock::now() < until);
  });
  EXPECT_GE(moves, wanted);
  EXPECT_GE(ours.counts().migrations, static_cast<std::uint64_t>(moves));
  if (schedulers() == 1) {
    EXPECT_EQ(ours.counts().migrations, 0U);
  }
}

}  // namespace
}  // namespace smarm
