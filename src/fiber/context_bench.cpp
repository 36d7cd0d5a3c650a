// What a switch costs: rings of 2, 8 and 32 stacks that pass control on, with the bare switch, with
// everything that a fiber carries, and, where Boost.Context is installed, with its jump_fcontext.
//
// Each is measured twice: called right from the loop, and from three calls down, as a runtime's
// park is called by an operation that a user's function called. The difference shows what a switch
// does to the processor's prediction of the returns that follow it.
// Method: the contestants run alternately in one process, a warm-up first, then the median of many
// short runs each; what is printed is the ratio of medians, because the machine's mood moves both.
// On x86-64 all three save and restore both floating-point control words, and storing MXCSR (about
// 18 cycles on the machines at hand) is the floor under every figure. Usage: context_bench [runs]
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.hpp"
#include "fiber/context.hpp"
#include "fiber/fiber.hpp"
#include "fiber/stack.hpp"

#ifdef SMARM_HAS_BOOST_CONTEXT
#include <boost/context/detail/fcontext.hpp>
#endif

namespace smarm::detail {
namespace {

constexpr int ring_max = 32;
constexpr std::uint64_t laps_per_run = 400'000;  // switches, whatever the ring

struct result {
  double bare_ns = 0;
  double fiber_ns = 0;
  double boost_ns = 0;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// deep calls `leaf` from three calls down, which all return after it.
template <int depth, class Leaf>
[[gnu::noinline]] void deep(const Leaf& leaf) {
  if constexpr (depth == 0) {
    leaf();
  } else {
    deep<depth - 1>(leaf);
  }
  asm volatile("" ::: "memory");  // Something to return to: no call above is a jump.
}

template <bool is_deep, class Leaf>
[[gnu::always_inline]] inline void call(const Leaf& leaf) {
  if constexpr (is_deep) {
    deep<2>(leaf);
  } else {
    leaf();
  }
}

// --- the bare switch ---------------------------------------------------------------------------

struct bare_ring {
  void* sp[ring_max];
  void* main_sp;
  int size;
  std::uint64_t left;
} bare;

template <bool is_deep>
void bare_member(void*, std::uintptr_t index) {
  const auto next = static_cast<int>(index + 1) % bare.size;
  for (;;) {
    void* const target = --bare.left == 0 ? bare.main_sp : bare.sp[next];
    call<is_deep>([&] { static_cast<void>(smarm_switch(&bare.sp[index], target, nullptr, 0)); });
  }
}

// --- the whole fiber ---------------------------------------------------------------------------

struct fiber_ring {
  fiber members[ring_max];
  fiber main;
  int size;
  std::uint64_t left;
} fibers;

template <bool is_deep>
void fiber_member(void*, std::uintptr_t index) {
  const auto next = static_cast<int>(index + 1) % fibers.size;
  for (;;) {
    fiber& target = --fibers.left == 0 ? fibers.main : fibers.members[next];
    call<is_deep>(
        [&] { static_cast<void>(switch_fiber(fibers.members[index], target, nullptr, 0)); });
  }
}

// --- Boost.Context -----------------------------------------------------------------------------

#ifdef SMARM_HAS_BOOST_CONTEXT
namespace boost_detail = boost::context::detail;

struct boost_ring {
  boost_detail::fcontext_t members[ring_max];
  boost_detail::fcontext_t main;
  int size;
  std::uint64_t left;
} boosts;

// jump_fcontext returns the context that jumped here; the ring keeps it for the next lap. The main
// context brings a message, the members none.
template <bool is_deep>
void boost_member(boost_detail::transfer_t came) {
  const auto index = static_cast<int>(reinterpret_cast<std::intptr_t>(came.data));
  const int next = (index + 1) % boosts.size;
  const int previous = (index + boosts.size - 1) % boosts.size;
  came = boost_detail::jump_fcontext(came.fctx, nullptr);
  for (;;) {
    if (came.data != nullptr) {
      boosts.main = came.fctx;
    } else {
      boosts.members[previous] = came.fctx;
    }
    const auto target = --boosts.left == 0 ? boosts.main : boosts.members[next];
    call<is_deep>([&] { came = boost_detail::jump_fcontext(target, nullptr); });
  }
}
#endif

template <bool is_deep>
class contest {
 public:
  contest(int size, stack_pool& pool) : size_(size) {
    for (int index = 0; index < 3 * size; ++index) {
      stacks_.push_back(pool.acquire(stack_size_default).value());
    }
    adopt_thread(fibers.main);
    bare.size = fibers.size = size;
    for (int index = 0; index < size; ++index) {
      start_bare(index);
      fibers.members[index] = fiber{};
      fibers.members[index].stack = stack_of(1, index);
      fibers.left = 1;
      static_cast<void>(start_fiber(fibers.main, fibers.members[index], &fiber_member<is_deep>,
                                    nullptr, static_cast<std::uintptr_t>(index)));
    }
#ifdef SMARM_HAS_BOOST_CONTEXT
    boosts.size = size;
    for (int index = 0; index < size; ++index) {
      const stack_span stack = stack_of(2, index);
      const auto fresh =
          boost_detail::make_fcontext(stack.top(), stack.size, &boost_member<is_deep>);
      boosts.members[index] =
          boost_detail::jump_fcontext(fresh, reinterpret_cast<void*>(std::intptr_t{index})).fctx;
    }
#endif
  }

  // The members never end; their stacks are simply taken back.
  void finish(stack_pool& pool) {
    for (const stack_span& stack : stacks_) {
      pool.release(stack);
    }
  }

  result measure(int runs) {
    std::vector<double> bare_runs, fiber_runs, boost_runs;
    for (int run = -runs / 10 - 1; run < runs; ++run) {
      const double bare_ns = time([&] {
        bare.left = laps_per_run;
        static_cast<void>(smarm_switch(&bare.main_sp, bare.sp[0], nullptr, 0));
      });
      const double fiber_ns = time([&] {
        fibers.left = laps_per_run;
        static_cast<void>(switch_fiber(fibers.main, fibers.members[0], nullptr, 0));
      });
      double boost_ns = 0;
#ifdef SMARM_HAS_BOOST_CONTEXT
      boost_ns = time([&] {
        boosts.left = laps_per_run;
        const auto came = boost_detail::jump_fcontext(boosts.members[0], this);
        boosts.members[(laps_per_run - 1) % static_cast<std::uint64_t>(size_)] = came.fctx;
      });
#endif
      if (run >= 0) {
        bare_runs.push_back(bare_ns);
        fiber_runs.push_back(fiber_ns);
        boost_runs.push_back(boost_ns);
      }
    }
    return {median(bare_runs), median(fiber_runs), median(boost_runs)};
  }

 private:
  void start_bare(int index) {
    bare.left = 1;
    static_cast<void>(smarm_start(&bare.main_sp, stack_of(0, index).top(), &bare_member<is_deep>,
                                  nullptr, static_cast<std::uintptr_t>(index)));
  }

  // Processor time and not the clock's: the thread may have lost its processor meanwhile.
  static std::int64_t cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * ns_per_second + now.tv_nsec;
  }

  template <class Work>
  static double time(const Work& work) {
    const std::int64_t before_ns = cpu_ns();
    work();
    return static_cast<double>(cpu_ns() - before_ns) / laps_per_run;
  }

  // The stacks of one contestant after the other.
  [[nodiscard]] stack_span stack_of(std::size_t contestant, int index) const {
    return stacks_[contestant * static_cast<std::size_t>(size_) + static_cast<std::size_t>(index)];
  }

  int size_;
  std::vector<stack_span> stacks_;
};

template <bool is_deep>
void run(int size, int runs) {
  stack_pool pool;
  contest<is_deep> contest(size, pool);
  const result got = contest.measure(runs);
  contest.finish(pool);
  std::printf("%4d  %-5s  %7.2f  %8.2f", size, is_deep ? "deep" : "flat", got.bare_ns,
              got.fiber_ns);
  if (got.boost_ns > 0) {
    std::printf("  %8.2f  %10.2f  %11.2f\n", got.boost_ns, got.bare_ns / got.boost_ns,
                got.fiber_ns / got.boost_ns);
  } else {
    std::printf("  (Boost.Context is not installed: no comparison)\n");
  }
}

}  // namespace
}  // namespace smarm::detail

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 51;
  std::printf("ring  calls  bare ns  fiber ns  boost ns  bare/boost  fiber/boost\n");
  for (const int size : {2, 8, 32}) {
    smarm::detail::run<false>(size, runs);
    smarm::detail::run<true>(size, runs);
  }
  return 0;
}
