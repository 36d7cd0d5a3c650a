// The walk by rules, and the unwinder's, which makes them.
#include "sched/stack_walk.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>

#include "base/atomic.hpp"
#include "fiber/sanitizer.hpp"
#include "sched/scheduler.hpp"

namespace smarm::detail {

namespace {

#if defined(__x86_64__) && !defined(SMARM_ADDRESS_SANITIZER) && !defined(SMARM_THREAD_SANITIZER)
constexpr bool has_rules = true;
#else
constexpr bool has_rules = false;
#endif

#if defined(__aarch64__)
constexpr int frame_pointer_register = 29;
#else
constexpr int frame_pointer_register = 6;
#endif

using address = std::uintptr_t;
constexpr address word_size = sizeof(address);

enum class role : std::uint8_t {
  plain,
  throws,  // all deeper functions are the C++ runtime's
  ours,    // the actor's functions stand upon it
};

// What a frame's caller will find when this one returns to it.
struct frame_state {
  address pc;
  address sp;
  address bp;
};

// How to get from a frame to its caller; the distances are in words, from the stack pointer or from
// the frame pointer.
struct rule {
  std::uint64_t what : 2;       // a role
  std::uint64_t by_bp : 1;      // from where the distances are
  std::uint64_t leaves_bp : 1;  // the caller has the same frame pointer
  std::uint64_t next : 20;      // to the caller's stack pointer
  std::uint64_t pc : 20;        // to the return address
  std::uint64_t bp : 20;        // to the caller's frame pointer, where it is saved
};
static_assert(sizeof(rule) == sizeof(std::uint64_t));
constexpr address distance_max = (address{1} << 20) - 1;

// The rules that are known, in a table where a newer one takes an older one's place. A rule that
// was written by two threads at once is not found: the words do not fit together.
class rule_table {
 public:
  [[nodiscard]] std::optional<rule> find(address pc) const noexcept {
    const entry& place = places_[index_of(pc)];
    // relaxed: the words say all there is, and the test says whether they are of one rule
    const std::uint64_t bits = place.bits.load(relaxed);
    if ((place.test.load(relaxed) ^ bits) != pc) return std::nullopt;  // relaxed: as above
    return std::bit_cast<rule>(bits);
  }
  void keep(address pc, rule known) noexcept {
    entry& place = places_[index_of(pc)];
    const auto bits = std::bit_cast<std::uint64_t>(known);
    place.bits.store(bits, relaxed);       // relaxed: see find
    place.test.store(bits ^ pc, relaxed);  // relaxed: likewise
  }

 private:
  struct entry {
    atomic<std::uint64_t> bits{0};
    atomic<std::uint64_t> test{0};
  };
  static constexpr unsigned size_bits = 10;
  [[nodiscard]] static std::size_t index_of(address pc) noexcept {
    return (pc * 0x9E37'79B9'7F4A'7C15U) >> (64 - size_bits);
  }

  std::array<entry, std::size_t{1} << size_bits> places_{};
};

constinit rule_table rules;

// The words of one stack.
class stack_words {
 public:
  explicit stack_words(stack_span stack) noexcept
      : low_(reinterpret_cast<address>(stack.low)), high_(low_ + stack.size) {}

  [[nodiscard]] bool has(address where) const noexcept {
    return where >= low_ && where < high_ && where % word_size == 0;
  }
  // SAFETY: within the stack of the running actor, which is readable as a whole.
  [[nodiscard]] static address at(address where) noexcept {
    address value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(where), sizeof value);
    return value;
  }
  [[nodiscard]] bool is(address where, address value) const noexcept {
    return has(where) && at(where) == value;
  }

 private:
  address low_;
  address high_;
};

// The frames seen so far.
class collection {
 public:
  explicit collection(std::span<void*> into) noexcept : into_(into) {}

  // add takes the next frame, and says whether there is room for more.
  bool add(role what, address pc) noexcept {
    if (what == role::throws && !at_throw_) {
      at_throw_ = true;
      count_ = 0;
      return true;
    }
    // SAFETY: kept to be looked up and printed only.
    into_[count_++] = reinterpret_cast<void*>(pc);
    return count_ < into_.size();
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::span<void*> into_;
  std::size_t count_ = 0;
  bool at_throw_ = false;
};

// The walk by rules; nothing: one was missing or led astray.
[[maybe_unused]] std::optional<std::size_t> walk_by_rules(const stack_words& words, frame_state at,
                                                          std::span<void*> frames) noexcept {
  collection seen(frames);
  for (;;) {
    const std::optional<rule> known = rules.find(at.pc);
    if (!known) return std::nullopt;
    const auto what = static_cast<role>(known->what);
    if (what == role::ours || !seen.add(what, at.pc)) return seen.count();
    const address base = known->by_bp ? at.bp : at.sp;
    const address pc = base + known->pc * word_size;
    const address bp = base + known->bp * word_size;
    const address sp = base + known->next * word_size;
    if (sp <= at.sp || !words.has(pc) || !words.has(bp)) return std::nullopt;
    at = {words.at(pc), sp, known->leaves_bp ? at.bp : words.at(bp)};
  }
}

// Makes the rule by which one comes from a frame to its caller, if there is one so simple.
std::optional<rule> rule_between(const stack_words& words, const frame_state& from, role what,
                                 const frame_state& to) noexcept {
  if (to.sp <= from.sp || !words.has(from.sp)) return std::nullopt;
  rule made{};
  made.what = static_cast<std::uint64_t>(what);
  if (words.is(from.bp, to.bp) && words.is(from.bp + word_size, to.pc) && to.sp > from.bp) {
    const address next = (to.sp - from.bp) / word_size;
    if (next > distance_max) return std::nullopt;
    made.by_bp = 1;
    made.next = next;
    made.pc = 1;
    return made;
  }
  const address size = (to.sp - from.sp) / word_size;
  if (size > distance_max || !words.is(to.sp - word_size, to.pc)) return std::nullopt;
  made.next = size;
  made.pc = size - 1;
  made.leaves_bp = from.bp == to.bp ? 1 : 0;
  if (made.leaves_bp) return made;
  for (address i = size - 1; i > 0; --i) {
    if (!words.is(from.sp + (i - 1) * word_size, to.bp)) continue;
    made.bp = i - 1;
    return made;
  }
  return std::nullopt;
}

// ---- by the unwinder -------------------------------------------------------------------------

template <class F>
address address_of(F* function) noexcept {
  return reinterpret_cast<address>(function);
}

// Where throws begin. A tool that stands before the C++ runtime, as AddressSanitizer does, has
// functions of these names too, and the runtime's own are the next ones.
bool is_throw(address function) noexcept {
  static const std::array<address, 6> all{
      address_of(&abi::__cxa_throw),
      address_of(&abi::__cxa_rethrow),
      address_of(&std::rethrow_exception),
      reinterpret_cast<address>(dlsym(RTLD_NEXT, "__cxa_throw")),
      reinterpret_cast<address>(dlsym(RTLD_NEXT, "__cxa_rethrow")),
      reinterpret_cast<address>(
          dlsym(RTLD_NEXT, "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"))};
  return function != 0 && std::ranges::find(all, function) != all.end();
}

role role_of(address function) noexcept {
  if (scheduler::is_beneath_actor(function)) return role::ours;
  return is_throw(function) ? role::throws : role::plain;
}

struct unwinding {
  const stack_words& words;
  address first;  // the return address with which it begins
  collection seen;
  frame_state before = {};
  role what_before = role::plain;
  bool has_begun = false;
};

_Unwind_Reason_Code visit(_Unwind_Context* frame, void* argument) {
  auto& walk = *static_cast<unwinding*>(argument);
  const frame_state here{_Unwind_GetIP(frame), _Unwind_GetCFA(frame),
                         static_cast<address>(_Unwind_GetGR(frame, frame_pointer_register))};
  if (!walk.has_begun && here.pc != walk.first) return _URC_NO_REASON;  // our own
  if (has_rules && walk.has_begun) {
    const auto made = rule_between(walk.words, walk.before, walk.what_before, here);
    if (made) rules.keep(walk.before.pc, *made);
  }
  const role what = role_of(_Unwind_GetRegionStart(frame));
  walk.has_begun = true;
  walk.before = here;
  walk.what_before = what;
  if (what == role::ours) {
    rule end{};
    end.what = static_cast<std::uint64_t>(role::ours);
    if (has_rules) rules.keep(here.pc, end);
    return _URC_END_OF_STACK;  // anything but "no reason" ends it
  }
  return walk.seen.add(what, here.pc) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

[[gnu::noinline]] std::size_t walk_by_unwinder(const stack_words& words, address first,
                                               std::span<void*> frames) noexcept {
  unwinding walk{words, first, collection(frames)};
  _Unwind_Backtrace(&visit, &walk);
  return walk.seen.count();
}

}  // namespace

[[gnu::noinline]] std::size_t walk_stack(stack_span stack, std::span<void*> frames) noexcept {
  const stack_words words(stack);
  const auto first = reinterpret_cast<address>(__builtin_return_address(0));
  if constexpr (has_rules) {
    const auto frame = reinterpret_cast<address>(__builtin_frame_address(0));
    const frame_state caller{first, frame + 2 * word_size, words.at(frame)};
    if (const auto count = walk_by_rules(words, caller, frames)) return *count;
  }
  return walk_by_unwinder(words, first, frames);
}

}  // namespace smarm::detail
