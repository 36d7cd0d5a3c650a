// assert ends the process when the runtime finds one of its own invariants broken, and says in one
// line which one, where, with what values, and (if a higher layer registered it) who was running.
//
//   SMARM_ASSERT(tail - head <= capacity, "a run queue holds at most its capacity", tail, head);
//   smarm: broken invariant: a run queue holds at most its capacity [tail - head <= capacity] at
//   sched/run_queue.cpp:41: tail=9 head=0 (actor: 12.3 "worker")                  (on one line)
//
// Invariants
//   1. Always on: release builds check too. Only SMARM_ASSERT_DEBUG needs SMARM_DEBUG.
//   2. The failing path allocates nothing, takes no lock and writes by one system call, so it may
//      run with any lock held and on a nearly full stack.
// Bad input is never an assert: it is a result or an exception. A broken core cannot be repaired by
// its caller, hence the abort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace smarm::detail {

// assert_value is one named value of a failed assertion, in a form that prints without allocating.
struct assert_value {
  enum class kind : std::uint8_t { signed_integer, unsigned_integer, boolean, pointer, text };

  template <class T>
  constexpr assert_value(const char* name, const T& value) noexcept : name_(name) {
    using plain = std::remove_cvref_t<T>;
    if constexpr (std::is_same_v<plain, bool>) {
      kind_ = kind::boolean;
      unsigned_ = value ? 1 : 0;
    } else if constexpr (std::is_enum_v<plain>) {
      *this = assert_value(name, static_cast<std::underlying_type_t<plain>>(value));
    } else if constexpr (std::is_integral_v<plain> && std::is_signed_v<plain>) {
      kind_ = kind::signed_integer;
      signed_ = value;
    } else if constexpr (std::is_integral_v<plain>) {
      kind_ = kind::unsigned_integer;
      unsigned_ = value;
    } else if constexpr (std::is_convertible_v<const plain&, std::string_view>) {
      kind_ = kind::text;
      text_ = std::string_view(value);
    } else {
      static_assert(std::is_pointer_v<plain> || std::is_null_pointer_v<plain>,
                    "an asserted value is an integer, enum, bool, pointer or string");
      kind_ = kind::pointer;
      pointer_ = static_cast<const void*>(value);
    }
  }

  const char* name_;
  kind kind_{};
  std::int64_t signed_{};
  std::uint64_t unsigned_{};
  const void* pointer_{};
  std::string_view text_;
};

// assert_failed prints the line of a failed SMARM_ASSERT and aborts. Any thread.
[[noreturn, gnu::cold, gnu::noinline]] void assert_failed(
    const char* words, const char* condition, const char* file, int line,
    std::initializer_list<assert_value> values) noexcept;

// fatal prints `smarm: ` and the formatted text as one line to stderr and aborts. For conditions
// that end the process but are no broken invariant. Any thread; allocates nothing of its own.
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void fatal(const char* format,
                                                                             ...) noexcept;

// set_assert_context registers the function that says who was running, for the end of the line: it
// writes a short zero-terminated text, or an empty one for "nobody". It runs on the failing thread,
// may find any invariant broken, and must neither allocate nor lock. Null unregisters.
void set_assert_context(void (*describe)(char* buffer, std::size_t size)) noexcept;

}  // namespace smarm::detail

// Names each value by its own text: SMARM_DETAIL_VALUES(a, b) is {{"a", a}, {"b", b}}.
#define SMARM_DETAIL_VALUE(value) ::smarm::detail::assert_value(#value, value)
#define SMARM_DETAIL_VALUES_0()
#define SMARM_DETAIL_VALUES_1(a) SMARM_DETAIL_VALUE(a)
#define SMARM_DETAIL_VALUES_2(a, ...) SMARM_DETAIL_VALUE(a), SMARM_DETAIL_VALUES_1(__VA_ARGS__)
#define SMARM_DETAIL_VALUES_3(a, ...) SMARM_DETAIL_VALUE(a), SMARM_DETAIL_VALUES_2(__VA_ARGS__)
#define SMARM_DETAIL_VALUES_4(a, ...) SMARM_DETAIL_VALUE(a), SMARM_DETAIL_VALUES_3(__VA_ARGS__)
#define SMARM_DETAIL_VALUES_5(a, ...) SMARM_DETAIL_VALUE(a), SMARM_DETAIL_VALUES_4(__VA_ARGS__)
#define SMARM_DETAIL_VALUES_6(a, ...) SMARM_DETAIL_VALUE(a), SMARM_DETAIL_VALUES_5(__VA_ARGS__)
#define SMARM_DETAIL_PICK(a, b, c, d, e, f, chosen, ...) chosen
#define SMARM_DETAIL_VALUES(...)                                                             \
  SMARM_DETAIL_PICK(__VA_ARGS__ __VA_OPT__(, ) SMARM_DETAIL_VALUES_6, SMARM_DETAIL_VALUES_5, \
                    SMARM_DETAIL_VALUES_4, SMARM_DETAIL_VALUES_3, SMARM_DETAIL_VALUES_2,     \
                    SMARM_DETAIL_VALUES_1, SMARM_DETAIL_VALUES_0, )                          \
  (__VA_ARGS__)

// SMARM_ASSERT(condition, "the invariant in words", up to six values...) aborts with one line if
// the condition is false.
#define SMARM_ASSERT(condition, words, ...)                                 \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      ::smarm::detail::assert_failed(words, #condition, __FILE__, __LINE__, \
                                     {SMARM_DETAIL_VALUES(__VA_ARGS__)});   \
    }                                                                       \
  } while (false)

// SMARM_ASSERT_DEBUG is for checks too dear for release builds; there it does not even evaluate.
#ifdef SMARM_DEBUG
#define SMARM_ASSERT_DEBUG(condition, words, ...) \
  SMARM_ASSERT(condition, words __VA_OPT__(, ) __VA_ARGS__)
#else
#define SMARM_ASSERT_DEBUG(condition, words, ...) \
  do {                                            \
    if (false) {                                  \
      static_cast<void>(condition);               \
    }                                             \
  } while (false)
#endif
