// Goal: the bare switch keeps what the calling convention says is the callee's, carries its
// message, enters fresh stacks aligned and with default floating-point control, and can leave for
// good. Method: two contexts on plain memory, without anything of fiber.hpp; with the moves that
// are called, with those that are inline, and with both kinds on one stack each.
#include <gtest/gtest.h>
#include <unwind.h>

#include <cfenv>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <vector>

#include "fiber/context_inline.hpp"
#include "fiber/sanitizer.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// These tests switch without telling a sanitizer, which is what fiber.hpp is for.
#if !defined(SMARM_ADDRESS_SANITIZER) && !defined(SMARM_THREAD_SANITIZER)

namespace smarm::detail {
namespace {

struct bare_stack {
  alignas(64) std::byte memory[32768];
  void* top() { return memory + sizeof memory; }
};

// Two sides of one conversation; tests run one at a time.
void* main_sp;
void* other_sp;

struct called {
  static switch_message go(void** save_sp, void* to_sp, void* from, std::uintptr_t what) {
    return smarm_switch(save_sp, to_sp, from, what);
  }
  static switch_message start(void** save_sp, void* top, fiber_entry entry, void* from,
                              std::uintptr_t what) {
    return smarm_start(save_sp, top, entry, from, what);
  }
  [[noreturn]] static void leave(void* to_sp, void* from, std::uintptr_t what) {
    smarm_leave(to_sp, from, what);
  }
  [[noreturn]] static void leave_start(void* top, fiber_entry entry, void* from,
                                       std::uintptr_t what) {
    smarm_leave_start(top, entry, from, what);
  }
};

struct inlined {
  [[gnu::always_inline]] static switch_message go(void** save_sp, void* to_sp, void* from,
                                                  std::uintptr_t what) {
    return switch_inline(save_sp, to_sp, from, what);
  }
  [[gnu::always_inline]] static switch_message start(void** save_sp, void* top, fiber_entry entry,
                                                     void* from, std::uintptr_t what) {
    return start_inline(save_sp, top, entry, from, what);
  }
  [[noreturn, gnu::always_inline]] static void leave(void* to_sp, void* from, std::uintptr_t what) {
    leave_inline(to_sp, from, what);
  }
  [[noreturn, gnu::always_inline]] static void leave_start(void* top, fiber_entry entry, void* from,
                                                           std::uintptr_t what) {
    leave_start_inline(top, entry, from, what);
  }
};

// What the test's own stack does, and what the other one does.
template <class Main, class Other>
struct moves {
  [[gnu::always_inline]] static switch_message to_main(std::uintptr_t what, void* from = nullptr) {
    return Other::go(&other_sp, main_sp, from, what);
  }
  [[gnu::always_inline]] static switch_message to_other(std::uintptr_t what, void* from = nullptr) {
    return Main::go(&main_sp, other_sp, from, what);
  }
  [[gnu::always_inline]] static switch_message start(void* top, fiber_entry entry, void* from,
                                                     std::uintptr_t what) {
    return Main::start(&main_sp, top, entry, from, what);
  }
  [[noreturn, gnu::always_inline]] static void end(void* from, std::uintptr_t what) {
    Other::leave(main_sp, from, what);
  }
  [[noreturn, gnu::always_inline]] static void end_by(void* top, fiber_entry entry, void* from,
                                                      std::uintptr_t what) {
    Other::leave_start(top, entry, from, what);
  }
};

template <class Moves>
class context : public testing::Test {};
using all_moves = testing::Types<moves<called, called>, moves<inlined, inlined>,
                                 moves<called, inlined>, moves<inlined, called>>;
TYPED_TEST_SUITE(context, all_moves);

TYPED_TEST(context, carries_two_words_each_way) {
  bare_stack stack;
  int cookie = 0;
  const auto entry = [](void* from, std::uintptr_t what) {
    switch_message got = TypeParam::to_main(what + 1, from);
    got = TypeParam::to_main(got.what * 2, got.from);
    TypeParam::end(got.from, got.what * 3);
  };
  switch_message got = TypeParam::start(stack.top(), entry, &cookie, 41);
  EXPECT_EQ(got.from, &cookie);
  EXPECT_EQ(got.what, 42u);
  got = TypeParam::to_other(10, &stack);
  EXPECT_EQ(got.from, &stack);
  EXPECT_EQ(got.what, 20u);
  int other_cookie = 0;
  got = TypeParam::to_other(7, &other_cookie);
  EXPECT_EQ(got.from, &other_cookie);
  EXPECT_EQ(got.what, 21u);
}

TYPED_TEST(context, enters_a_fresh_stack_aligned_whatever_its_top) {
  for (std::size_t off = 0; off < 33; ++off) {
    bare_stack stack;
    const auto entry = [](void*, std::uintptr_t) {
      alignas(16) volatile char small[16];
      alignas(32) volatile char large[64];
      small[0] = 1;
      large[0] = 1;
      const auto odd = reinterpret_cast<std::uintptr_t>(&small) % 16 +
                       reinterpret_cast<std::uintptr_t>(&large) % 32 +
                       reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16;
      TypeParam::end(nullptr, odd);
    };
    const switch_message got =
        TypeParam::start(stack.memory + sizeof stack.memory - off, entry, nullptr, 0);
    EXPECT_EQ(got.what, 0u) << "top off by " << off;
  }
}

TYPED_TEST(context, keeps_the_registers_that_belong_to_the_callee) {
  bare_stack stack;
  const auto entry = [](void*, std::uintptr_t) {
    for (std::uintptr_t round = 1;; ++round) {
#if defined(__x86_64__)
      asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
#endif
      static_cast<void>(TypeParam::to_main(round));
    }
  };
  static_cast<void>(TypeParam::start(stack.top(), entry, nullptr, 0));
  // More live values than there are registers to keep them in.
  std::uintptr_t sum = 0;
  std::uintptr_t values[12];
  for (std::uintptr_t index = 0; index < 12; ++index) {
    values[index] = index * 1000;
  }
  double fraction = 0.5;
  for (int round = 0; round < 1000; ++round) {
    const std::uintptr_t what = TypeParam::to_other(0).what;
    for (std::uintptr_t& value : values) {
      value += what;
    }
    fraction *= 1.0009765625;
  }
  double expected_fraction = 0.5;
  for (int round = 0; round < 1000; ++round) {
    expected_fraction *= 1.0009765625;
  }
  for (std::uintptr_t index = 0; index < 12; ++index) {
    sum += values[index] - index * 1000;
  }
  EXPECT_EQ(sum, 12u * (1001u * 1002u / 2 - 1));
  EXPECT_EQ(fraction, expected_fraction);
}

TYPED_TEST(context, a_fresh_entry_may_take_the_very_stack_of_the_one_that_leaves) {
  static bare_stack stack;
  static int generation;
  generation = 0;
  struct chain {
    static void entry(void* from, std::uintptr_t what) {
      // Overwrite what an earlier generation left.
      volatile char frame[512];
      std::memset(const_cast<char*>(frame), generation, sizeof frame);
      if (++generation < 100) {
        TypeParam::end_by(stack.top(), &entry, from, what + 1);
      }
      TypeParam::end(from, what);
    }
  };
  int cookie = 0;
  const switch_message got = TypeParam::start(stack.top(), &chain::entry, &cookie, 1);
  EXPECT_EQ(got.from, &cookie);
  EXPECT_EQ(got.what, 100u);
  EXPECT_EQ(generation, 100);
}

_Unwind_Reason_Code count_frame(_Unwind_Context*, void* count) {
  return ++*static_cast<int*>(count) < 1000 ? _URC_NO_REASON : _URC_FATAL_PHASE1_ERROR;
}

TYPED_TEST(context, a_stack_walk_ends_at_the_entry_whatever_lies_above_the_top) {
  bare_stack stack;
  // What a walker that goes on would take for return addresses.
  constexpr std::size_t above = 4096;
  for (std::size_t offset = sizeof stack.memory - above; offset < sizeof stack.memory;
       offset += sizeof(void*)) {
    const auto address = reinterpret_cast<std::uintptr_t>(&count_frame) + 4;
    std::memcpy(stack.memory + offset, &address, sizeof address);
  }
  const auto entry = [](void*, std::uintptr_t) {
    int frames = 0;
    const bool ended = _Unwind_Backtrace(count_frame, &frames) == _URC_END_OF_STACK;
    TypeParam::end(nullptr, ended ? static_cast<std::uintptr_t>(frames) : 1000);
  };
  const switch_message got =
      TypeParam::start(stack.memory + sizeof stack.memory - above, entry, nullptr, 0);
  // The entry, which is a lambda behind a function pointer and perhaps folded with its like behind
  // a wrapper, and the mark that ends the walk.
  EXPECT_GE(got.what, 2u);
  EXPECT_LE(got.what, 4u);
}

TYPED_TEST(context, the_rounding_mode_belongs_to_a_context_and_starts_at_the_default) {
  bare_stack stack;
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const auto entry = [](void*, std::uintptr_t) {
    const int at_start = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    static_cast<void>(TypeParam::to_main(static_cast<std::uintptr_t>(at_start)));
    TypeParam::end(nullptr, static_cast<std::uintptr_t>(std::fegetround()));
  };
  switch_message got = TypeParam::start(stack.top(), entry, nullptr, 0);
  EXPECT_EQ(got.what, static_cast<std::uintptr_t>(FE_TONEAREST));
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_DOWNWARD);
  got = TypeParam::to_other(0);
  EXPECT_EQ(got.what, static_cast<std::uintptr_t>(FE_TOWARDZERO));
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)

// A profiler's view: a trap behind each instruction, whose handler walks the stack.
volatile int walks;
volatile int walks_without_end;
void walk_at_each_step(int) {
  int frames = 0;
  walks = walks + 1;
  if (_Unwind_Backtrace(count_frame, &frames) != _URC_END_OF_STACK) {
    walks_without_end = walks_without_end + 1;
  }
}
[[gnu::always_inline]] inline void trap_each_step(bool on) {
  if (on) {
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
  } else {
    asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
  }
}

TYPED_TEST(context, a_stack_walk_ends_at_each_step_of_a_move) {
  static bare_stack stack;
  int frames = 0;
  ASSERT_EQ(_Unwind_Backtrace(count_frame, &frames), _URC_END_OF_STACK);  // what it loads, it has
  struct sigaction how = {};
  struct sigaction before = {};
  how.sa_handler = &walk_at_each_step;
  ASSERT_EQ(sigaction(SIGTRAP, &how, &before), 0);
  walks = 0;
  walks_without_end = 0;
  const auto entry = [](void*, std::uintptr_t) {
    static_cast<void>(TypeParam::to_main(1));
    TypeParam::end(nullptr, 2);
  };
  trap_each_step(true);
  const std::uintptr_t first = TypeParam::start(stack.top(), entry, nullptr, 0).what;
  const std::uintptr_t second = TypeParam::to_other(0).what;
  trap_each_step(false);
  ASSERT_EQ(sigaction(SIGTRAP, &before, nullptr), 0);
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(second, 2U);
  EXPECT_GT(walks, 50);
  EXPECT_EQ(walks_without_end, 0);
}

unsigned short control_word() {
  unsigned short word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}

TYPED_TEST(context, control_words_start_at_their_defaults_and_do_not_leak) {
  bare_stack stack;
  const unsigned int before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
  const auto entry = [](void*, std::uintptr_t) {
    const std::uintptr_t at_start = _mm_getcsr() | std::uintptr_t{control_word()} << 32;
    const unsigned short single_precision = 0x007F;
    asm volatile("fldcw %0" ::"m"(single_precision));
    static_cast<void>(TypeParam::to_main(at_start));
    TypeParam::end(nullptr, control_word());
  };
  switch_message got = TypeParam::start(stack.top(), entry, nullptr, 0);
  EXPECT_EQ(got.what & 0xFFFF'FFFF, 0x1F80u);
  EXPECT_EQ(got.what >> 32, 0x037Fu);
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
  EXPECT_EQ(control_word(), 0x037F);
  got = TypeParam::to_other(0);
  EXPECT_EQ(got.what, 0x007Fu);
  EXPECT_EQ(control_word(), 0x037F);
  _mm_setcsr(before);
}
#endif

}  // namespace
}  // namespace smarm::detail

#endif
