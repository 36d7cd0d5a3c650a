// Goal: stacks are guarded under both kinds of guard, reused while warm, given back after a burst,
// and their exhaustion is an error that leaves nothing behind.
// Method: one pool per test; touching guards and using up memory happens in child processes;
// residency is read from the kernel by mincore.
#include "fiber/stack.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fiber/sanitizer.hpp"

namespace smarm::detail {
namespace {

// Every test of this suite runs with each kind of guard that works here.
class stacks : public testing::TestWithParam<guard_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == guard_kind::guard_marker && probe_guard_kind() != guard_kind::guard_marker) {
      GTEST_SKIP() << "this kernel has no guard markers";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(with, stacks,
                         testing::Values(guard_kind::guard_marker, guard_kind::no_access),
                         [](const auto& info) {
                           return info.param == guard_kind::guard_marker ? "guard_marker"
                                                                         : "no_access";
                         });

std::size_t resident_pages(stack_span stack) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(nominal_stack_size(stack) / page);
  const std::size_t usable = nominal_stack_size(stack) - guard_size_below(stack);
  EXPECT_EQ(mincore(stack.low, usable, pages.data()), 0);
  std::size_t count = 0;
  for (std::size_t index = 0; index < usable / page; ++index) {
    count += pages[index] & 1;
  }
  return count;
}

void use_whole(stack_span stack) { std::memset(stack.low, 0x5A, stack.size); }

std::size_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    ++count;
  }
  return count;
}

TEST_P(stacks, are_usable_from_top_to_low_and_sized_as_asked) {
  stack_pool pool(GetParam());
  EXPECT_EQ(pool.guards(), GetParam());
  for (const std::size_t size :
       {std::size_t{1}, stack_size_min, stack_size_default, std::size_t{100'000},
        std::size_t{1} << 20, std::size_t{9} << 20}) {
    const auto stack = pool.acquire(size);
    ASSERT_TRUE(stack.has_value()) << size;
    EXPECT_GE(nominal_stack_size(*stack), size);
    EXPECT_EQ(nominal_stack_size(*stack) & (nominal_stack_size(*stack) - 1), 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stack->top()) % 64, 0u);
    use_whole(*stack);
    pool.release(*stack);
  }
}

TEST_P(stacks, fault_right_below_their_low_end) {
  stack_pool pool(GetParam());
  for (const std::size_t size : {stack_size_default, std::size_t{1} << 20}) {
    const stack_span stack = pool.acquire(size).value();
    *static_cast<volatile std::byte*>(stack.low) = std::byte{1};
    EXPECT_DEATH(*static_cast<volatile std::byte*>(stack.low - 1) = std::byte{1}, "");
    EXPECT_DEATH(
        *static_cast<volatile std::byte*>(stack.low - guard_size_below(stack)) = std::byte{1}, "");
    pool.release(stack);
  }
}

TEST_P(stacks, are_still_guarded_after_their_memory_was_given_back) {
  stack_pool pool(GetParam());
  const stack_span keeps_the_slab = pool.acquire(stack_size_default).value();
  const stack_span stack = pool.acquire(stack_size_default).value();
  use_whole(stack);
  pool.release(stack);
  pool.trim();
  EXPECT_EQ(pool.count().cached, 0u);
  EXPECT_EQ(pool.count().slabs, 1u);
  stack_span again = pool.acquire(stack_size_default).value();
  ASSERT_EQ(again.low, stack.low);
  EXPECT_EQ(resident_pages(again), 0u);
  EXPECT_DEATH(*static_cast<volatile std::byte*>(again.low - 1) = std::byte{1}, "");
  use_whole(again);
  pool.release(again);
  pool.release(keeps_the_slab);
}

TEST_P(stacks, of_a_class_are_distinct_and_do_not_overlap) {
  stack_pool pool(GetParam());
  std::vector<stack_span> all;
  std::set<std::byte*> ends;
  for (int index = 0; index < 300; ++index) {
    all.push_back(pool.acquire(stack_size_default).value());
    *all.back().low = std::byte{1};
    EXPECT_TRUE(ends.insert(all.back().low).second);
  }
  for (auto low = ends.begin(); std::next(low) != ends.end(); ++low) {
    EXPECT_GE(*std::next(low) - *low, static_cast<std::ptrdiff_t>(stack_size_default));
  }
  const stack_pool::counters counters = pool.count();
  EXPECT_EQ(counters.in_use, 300u);
  EXPECT_EQ(counters.slabs, 5u);
  EXPECT_EQ(counters.mapped_bytes, stack_size_default * 64 * 5);
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
  EXPECT_EQ(pool.count().in_use, 0u);
  EXPECT_EQ(pool.count().cached, 300u);
}

TEST_P(stacks, are_reused_before_fresh_ones_are_made) {
  stack_pool pool(GetParam());
  std::set<std::byte*> first;
  std::vector<stack_span> all;
  for (int index = 0; index < 40; ++index) {
    all.push_back(pool.acquire(stack_size_default).value());
    first.insert(all.back().low);
  }
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
  all.clear();
  for (int index = 0; index < 40; ++index) {
    all.push_back(pool.acquire(stack_size_default).value());
    EXPECT_TRUE(first.contains(all.back().low));
  }
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
}

TEST_P(stacks, of_a_burst_are_given_back_by_halves_as_time_goes_by) {
  stack_pool pool(GetParam());
  std::vector<stack_span> burst;
  for (int index = 0; index < 1024; ++index) {
    burst.push_back(pool.acquire(stack_size_default).value());
    *burst.back().low = std::byte{1};
  }
  std::int64_t now_ns = monotonic_ns() + 10 * ns_per_second;
  pool.decay(now_ns);
  for (const stack_span& stack : burst) {
    pool.release(stack);
  }
  EXPECT_GE(pool.count().cached, 1000u);
  EXPECT_EQ(pool.count().slabs, 16u);
  std::size_t slabs_before = 16;
  int epochs = 0;
  // Each call returns when it wants the next; when it wants none, all is given back.
  for (std::int64_t due_ns = now_ns; due_ns != never_ns; ++epochs) {
    ASSERT_LT(epochs, 40);
    now_ns = std::max(now_ns, due_ns);
    due_ns = pool.decay(now_ns);
    EXPECT_LE(pool.count().slabs, slabs_before);
    EXPECT_GE(pool.count().slabs * 2 + 1, slabs_before) << "half at a time, not all at once";
    slabs_before = pool.count().slabs;
  }
  EXPECT_GE(epochs, 10);
  EXPECT_EQ(pool.count().cached, 0u);
  EXPECT_EQ(pool.count().mapped_bytes, 0u);
}

TEST_P(stacks, are_all_given_back_by_trim_but_for_those_in_use) {
  stack_pool pool(GetParam());
  std::vector<stack_span> all;
  for (int index = 0; index < 200; ++index) {
    all.push_back(pool.acquire(stack_size_default).value());
    *all.back().low = std::byte{1};
  }
  const stack_span kept = all.back();
  *kept.low = std::byte{7};
  all.pop_back();
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
  pool.trim();
  EXPECT_EQ(pool.count().in_use, 1u);
  EXPECT_EQ(pool.count().cached, 0u);
  EXPECT_EQ(pool.count().slabs, 1u);
  EXPECT_EQ(*kept.low, std::byte{7});
  pool.release(kept);
  pool.trim();
  EXPECT_EQ(pool.count().slabs, 0u);
}

// use_up_address_space takes stacks until there are none, twice, and exits with 0 if all was in
// order: what the first round gave back must be there for the second.
[[noreturn]] void use_up_address_space(guard_kind guards) {
  std::size_t got[2] = {0, 0};
  stack_pool pool(guards);
  std::vector<stack_span> all;
  all.reserve(100'000);
  const rlim_t limit_bytes = rlim_t{512} << 20;
  const rlimit limit{limit_bytes, limit_bytes};
  setrlimit(RLIMIT_AS, &limit);
  bool clean = true;
  for (std::size_t& count : got) {
    auto stack = pool.acquire(stack_size_default);
    while (stack) {
      *stack->low = std::byte{1};
      all.push_back(*stack);
      stack = pool.acquire(stack_size_default);
    }
    clean = clean && stack.error() == std::errc::not_enough_memory;
    count = all.size();
    clean = clean && pool.count().in_use == count;
    for (const stack_span& each : all) {
      pool.release(each);
    }
    all.clear();
    pool.trim();
    clean = clean && pool.count().mapped_bytes == 0 && pool.count().in_use == 0;
  }
  _exit(clean && got[0] > 1000 && got[0] == got[1] ? 0 : 1);
}

TEST_P(stacks, beyond_the_address_space_are_an_error_and_nothing_leaks) {
#if defined(SMARM_ADDRESS_SANITIZER) || defined(SMARM_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's shadow is larger than any limit";
#endif
  EXPECT_EXIT(use_up_address_space(GetParam()), testing::ExitedWithCode(0), "");
}

TEST(stack_pool, refuses_absurd_sizes_with_an_error) {
  stack_pool pool;
  EXPECT_EQ(pool.acquire(stack_size_max + 1).error(), std::errc::invalid_argument);
  EXPECT_EQ(pool.acquire(SIZE_MAX).error(), std::errc::invalid_argument);
  EXPECT_EQ(pool.count().slabs, 0u);
}

TEST(stack_pool, catches_a_double_release_and_a_foreign_stack) {
  stack_pool pool;
  const stack_span stack = pool.acquire(stack_size_default).value();
  const stack_span other = pool.acquire(stack_size_default).value();
  pool.release(stack);
  EXPECT_DEATH(pool.release(stack), "a stack is released once");
  std::byte memory[64];
  EXPECT_DEATH(pool.release({memory, stack.size}), "goes back to the pool that it came from");
  pool.release(other);
}

TEST(stack_pool, that_ends_before_its_last_stack_is_a_broken_invariant) {
  EXPECT_DEATH(
      {
        stack_pool pool;
        const auto kept = pool.acquire(stack_size_default);
        EXPECT_TRUE(kept.has_value());
      },
      "a stack pool ends after its last stack.*in_use=1");
}

TEST(stack_pool, needs_few_mappings_for_many_stacks_with_guard_markers) {
#if defined(SMARM_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer's shadow has mappings of its own";
#endif
  if (probe_guard_kind() != guard_kind::guard_marker) {
    GTEST_SKIP() << "this kernel has no guard markers";
  }
  stack_pool pool;
  std::vector<stack_span> all(10'000);
  const std::size_t before = mapping_count();
  for (stack_span& stack : all) {
    stack = pool.acquire(stack_size_default).value();
    *stack.low = std::byte{1};
  }
  EXPECT_LT(mapping_count(), before + 32);
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
}

TEST(stack_pool, colours_the_tops_so_that_neighbours_do_not_share_cache_sets) {
  stack_pool pool;
  std::vector<stack_span> all;
  std::set<std::uintptr_t> offsets;
  for (int index = 0; index < 64; ++index) {
    all.push_back(pool.acquire(stack_size_default).value());
    offsets.insert(reinterpret_cast<std::uintptr_t>(all.back().top()) % 4096);
  }
  EXPECT_EQ(offsets.size(), 8u);
  for (const stack_span& stack : all) {
    pool.release(stack);
  }
}

TEST(stack_pool, leaves_errno_alone) {
  stack_pool pool;
  errno = 77;
  EXPECT_FALSE(pool.acquire(SIZE_MAX).has_value());
  const stack_span stack = pool.acquire(stack_size_default).value();
  pool.release(stack);
  pool.trim();
  EXPECT_EQ(errno, 77);
}

TEST(stack_pool, serves_threads_that_pass_stacks_around) {
  stack_pool pool;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&pool, index] {
      stack_cache cache(pool);
      std::vector<stack_span> held;
      for (int round = 0; round < 20'000; ++round) {
        if (held.size() < 100 && round % 3 != 0) {
          held.push_back(cache.acquire().value());
          *held.back().low = static_cast<std::byte>(index);
        } else if (!held.empty()) {
          ASSERT_EQ(*held.back().low, static_cast<std::byte>(index)) << "two owners";
          cache.release(held.back());
          held.pop_back();
        }
        if (round % 5000 == 0) {
          pool.trim();
        }
      }
      for (const stack_span& stack : held) {
        cache.release(stack);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(pool.count().in_use, 0u);
}

TEST(stack_cache, hands_out_last_what_came_first_and_trades_by_half) {
  stack_pool pool;
  stack_cache cache(pool);
  const stack_span one = cache.acquire().value();
  EXPECT_EQ(cache.size(), stack_cache::capacity / 2 - 1);
  const stack_span two = cache.acquire().value();
  cache.release(one);
  cache.release(two);
  EXPECT_EQ(cache.acquire()->low, two.low);
  EXPECT_EQ(cache.acquire()->low, one.low);
  std::vector<stack_span> many{one, two};
  while (many.size() < 3 * stack_cache::capacity) {
    many.push_back(cache.acquire().value());
  }
  for (const stack_span& stack : many) {
    cache.release(stack);
    EXPECT_LE(cache.size(), stack_cache::capacity);
  }
  EXPECT_EQ(cache.acquire()->low, many.back().low);
  cache.release(many.back());
  cache.flush();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(pool.count().in_use, 0u);
}

}  // namespace
}  // namespace smarm::detail
