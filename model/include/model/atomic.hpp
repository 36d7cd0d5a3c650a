// atomic<T> has the members of std::atomic<T>, and the checker decides what they return.
//
// It is as large as a T and lies where the code under test puts it; the value itself is in the
// execution graph. Outside of a run it is a plain variable: what it then holds is the initial value
// in each run. Every member takes the place of the call as its last argument, for reports and
// mutations; nobody passes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>

#include "model/time.hpp"
#include "model/touch.hpp"

namespace model {

namespace detail {

// failure_of derives the failure order that the one-order forms of compare_exchange have.
[[nodiscard]] constexpr std::memory_order failure_of(std::memory_order success) noexcept {
  if (success == std::memory_order_acq_rel) return std::memory_order_acquire;
  if (success == std::memory_order_release) return std::memory_order_relaxed;
  return success;
}

// The type of the difference in fetch_add: std::ptrdiff_t for pointers, as in std::atomic.
template <class T>
using difference_of = std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>;

}  // namespace detail

template <storable T>
class atomic {
  using here = std::source_location;
  using difference = detail::difference_of<T>;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr atomic(here where = detail::call_site()) noexcept : atomic(T{}, where) {}
  constexpr atomic(T first, here where = detail::call_site()) noexcept  // NOLINT
      : stored_(first) {
    if (!std::is_constant_evaluated()) detail::constructed(this, to_value(first), where);
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  constexpr ~atomic() {
    if (!std::is_constant_evaluated()) detail::destroyed(this);
  }

  [[nodiscard]] bool is_lock_free() const noexcept { return true; }

  T load(std::memory_order o = std::memory_order_seq_cst, here where = here::current()) const {
    if (engine::current() == nullptr) return stored_;
    access a;
    a.kind = event_kind::load;
    a.success = to_order(o);
    return from_value<T>(detail::touch(this, a, sizeof(T), "load", where).read);
  }

  void store(T desired, std::memory_order o = std::memory_order_seq_cst,
             here where = here::current()) {
    if (engine::current() == nullptr) {
      stored_ = desired;
      return;
    }
    access a;
    a.kind = event_kind::store;
    a.success = to_order(o);
    a.operand = to_value(desired);
    detail::touch(this, a, sizeof(T), "store", where);
  }

  T exchange(T desired, std::memory_order o = std::memory_order_seq_cst,
             here where = here::current()) {
    return update("exchange", o, where, [desired](T) { return desired; });
  }
  T fetch_add(difference d, std::memory_order o = std::memory_order_seq_cst,
              here where = here::current()) {
    return update("fetch_add", o, where, [d](T v) { return static_cast<T>(v + d); });
  }
  T fetch_sub(difference d, std::memory_order o = std::memory_order_seq_cst,
              here where = here::current()) {
    return update("fetch_sub", o, where, [d](T v) { return static_cast<T>(v - d); });
  }
  T fetch_and(T m, std::memory_order o = std::memory_order_seq_cst, here where = here::current())
    requires std::is_integral_v<T>
  {
    return update("fetch_and", o, where, [m](T v) { return static_cast<T>(v & m); });
  }
  T fetch_or(T m, std::memory_order o = std::memory_order_seq_cst, here where = here::current())
    requires std::is_integral_v<T>
  {
    return update("fetch_or", o, where, [m](T v) { return static_cast<T>(v | m); });
  }
  T fetch_xor(T m, std::memory_order o = std::memory_order_seq_cst, here where = here::current())
    requires std::is_integral_v<T>
  {
    return update("fetch_xor", o, where, [m](T v) { return static_cast<T>(v ^ m); });
  }

  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure, here where = here::current()) {
    return compare("compare_exchange_strong", false, expected, desired, success, failure, where);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order o = std::memory_order_seq_cst,
                               here where = here::current()) {
    return compare("compare_exchange_strong", false, expected, desired, o, detail::failure_of(o),
                   where);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure, here where = here::current()) {
    return compare("compare_exchange_weak", true, expected, desired, success, failure, where);
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order o = std::memory_order_seq_cst,
                             here where = here::current()) {
    return compare("compare_exchange_weak", true, expected, desired, o, detail::failure_of(o),
                   where);
  }

  // await waits until the predicate holds of a value, as a loop around load would; one event.
  template <class Predicate>
  T await(Predicate accepts, std::memory_order o, here where = here::current()) const {
    return wait_load(accepts, o, false, where);
  }

  // await_update is an update that waits until the predicate holds of what it reads: a lock.
  template <class Predicate, class Function>
  T await_update(Predicate accepts, Function make, std::memory_order o,
                 here where = here::current()) {
    return wait_update(accepts, make, o, false, where);
  }

  // await_until and await_update_until are the same with a deadline in virtual time: without a
  // value where it has passed, in an execution of its own whatever is there to be read, and time
  // is then not before the deadline. With `never` they wait as those without a deadline do.
  template <class Predicate>
  std::optional<T> await_until(std::int64_t deadline, Predicate accepts, std::memory_order o,
                               here where = here::current()) const {
    if (gives_up(deadline, where)) return std::nullopt;
    return wait_load(accepts, o, deadline != never, where);
  }
  template <class Predicate, class Function>
  std::optional<T> await_update_until(std::int64_t deadline, Predicate accepts, Function make,
                                      std::memory_order o, here where = here::current()) {
    if (gives_up(deadline, where)) return std::nullopt;
    return wait_update(accepts, make, o, deadline != never, where);
  }

  // std::atomic's operators; all of them are seq_cst.
  operator T() const { return load(); }  // NOLINT(google-explicit-constructor)
  T operator=(T desired) {               // NOLINT(misc-unconventional-assign-operator)
    store(desired);
    return desired;
  }
  T operator++() { return static_cast<T>(fetch_add(1) + 1); }
  T operator--() { return static_cast<T>(fetch_sub(1) - 1); }
  T operator++(int) { return fetch_add(1); }
  T operator--(int) { return fetch_sub(1); }
  T operator+=(difference d) { return static_cast<T>(fetch_add(d) + d); }
  T operator-=(difference d) { return static_cast<T>(fetch_sub(d) - d); }

 private:
  // gives_up: this execution is one in which the deadline passes first.
  static bool gives_up(std::int64_t deadline, const here& where) {
    if (deadline == never || choose(2, where) == 0) return false;
    sleep_until(deadline, where);
    return true;
  }

  template <class Predicate>
  T wait_load(Predicate& accepts, std::memory_order o, bool timed, const here& where) const {
    const auto test = [&accepts](value v) { return static_cast<bool>(accepts(from_value<T>(v))); };
    access a;
    a.kind = event_kind::load;
    a.success = to_order(o);
    a.accepts = test;
    a.timed = timed;
    return from_value<T>(detail::touch(this, a, sizeof(T), "await", where).read);
  }

  template <class Predicate, class Function>
  T wait_update(Predicate& accepts, Function& make, std::memory_order o, bool timed,
                const here& where) {
    const auto test = [&accepts](value v) { return static_cast<bool>(accepts(from_value<T>(v))); };
    const auto bytes = [&make](value v) { return to_value<T>(make(from_value<T>(v))); };
    access a;
    a.kind = event_kind::update;
    a.success = to_order(o);
    a.accepts = test;
    a.modify = bytes;
    a.timed = timed;
    return from_value<T>(detail::touch(this, a, sizeof(T), "await_update", where).read);
  }

  template <class Function>
  T update(const char* what, std::memory_order o, const here& where, Function make) {
    if (engine::current() == nullptr) {
      const T old = stored_;
      stored_ = make(old);
      return old;
    }
    const auto bytes = [&make](value v) { return to_value<T>(make(from_value<T>(v))); };
    access a;
    a.kind = event_kind::update;
    a.success = to_order(o);
    a.modify = bytes;
    return from_value<T>(detail::touch(this, a, sizeof(T), what, where).read);
  }

  bool compare(const char* what, bool weak, T& expected, T desired, std::memory_order success,
               std::memory_order failure, const here& where) {
    engine* e = engine::current();
    if (e == nullptr) {
      const bool same = to_value(stored_) == to_value(expected);
      (same ? stored_ : expected) = same ? desired : stored_;
      return same;
    }
    access a;
    a.kind = event_kind::cas;
    a.success = to_order(success);
    a.failure = to_order(failure);
    // What the thread has met before is in the graph before this event, so a repetition and a
    // revisit of it ask the same.
    const options& wished = e->wishes();
    const bool may_fail = weak && e->self().weak_failures < wished.weak_failures;
    a.weak_max = may_fail ? wished.weak_failures_in_all : 0;
    a.expected = to_value(expected);
    a.operand = to_value(desired);
    const step s = detail::touch(this, a, sizeof(T), what, where);
    if (s.spurious) ++e->self().weak_failures;
    if (!s.succeeded) expected = from_value<T>(s.read);
    return s.succeeded;
  }

  T stored_;
};

}  // namespace model
