// wait_queue is a set of sleeping threads in one location of the graph; futex and
// condition_variable stand on it.
//
// Its accesses are `system`: they order each other and what a futex looks at under its lock, as the
// kernel does, and they synchronise nothing in the program: a wake-up makes nobody see anything.
// Who sleeps reads the very write that woke him, so each wake-up is one execution and not several.
#pragma once

#include <bit>
#include <cstdint>

#include "model/time.hpp"

namespace model {

enum class wait_result : std::uint8_t { woken, value_changed, timed_out, spurious };

namespace detail {

class wait_queue {
 public:
  wait_queue(engine& e, std::uint32_t location, std::uint32_t site)
      : engine_(e), location_(location), site_(site) {}

  // lock keeps others from the queue until add() or leave().
  void lock() {
    waiting_ = change([](state s) { return state{s.waiting, 0, 1}; }).waiting;
  }
  // leave undoes lock().
  void leave() { put({waiting_, 0, 0}); }
  // add undoes lock() and puts the caller into the queue.
  void add() { put({static_cast<std::uint16_t>(waiting_ | self()), 0, 0}); }
  // enter puts the caller into the queue in one step.
  void enter() {
    const std::uint16_t me = self();
    change([me](state s) { return state{static_cast<std::uint16_t>(s.waiting | me), 0, 0}; });
  }

  // sleep waits to be woken. Precondition: the caller is in the queue.
  [[nodiscard]] wait_result sleep(std::int64_t deadline, const std::source_location& where) {
    const bool timed = deadline != never;
    const bool can_wake_early = engine_.self().spurious < engine_.wishes().spurious;
    const std::uint64_t ways = 1U + timed + can_wake_early;
    const std::uint64_t way = ways > 1 ? choose_way(ways) : 0;
    if (way == 0) {
      await_wake(timed);
      return wait_result::woken;
    }
    const std::uint16_t me = self();
    const bool times_out = timed && way == 1;
    if (times_out) sleep_until(deadline, where);
    const state before =
        change([me](state s) { return state{static_cast<std::uint16_t>(s.waiting & ~me), 0, 0}; });
    // Whom somebody woke before he could leave is woken: that execution is seen elsewhere.
    engine_.assume((before.waiting & me) != 0);
    if (!times_out) ++engine_.self().spurious;
    return times_out ? wait_result::timed_out : wait_result::spurious;
  }

  // wake wakes `count` sleepers, or all if there are fewer; any of them, in one execution each.
  std::size_t wake(std::size_t count) {
    const state before = change([count](state s) {
      const auto sleepers = static_cast<std::size_t>(std::popcount(s.waiting));
      return sleepers <= count ? state{0, s.waiting, 0} : state{s.waiting, 0, 1};
    });
    const auto sleepers = static_cast<std::size_t>(std::popcount(before.waiting));
    if (sleepers <= count) return sleepers;
    const std::uint16_t chosen = choose_sleepers(before.waiting, count);
    put({static_cast<std::uint16_t>(before.waiting & ~chosen), chosen, 0});
    return count;
  }

 private:
  struct state {
    std::uint16_t waiting = 0;  // a bit per thread
    std::uint16_t woken = 0;    // by the write that made this state
    std::uint16_t locked = 0;
  };

  [[nodiscard]] std::uint16_t self() const {
    return static_cast<std::uint16_t>(1U << engine_.thread());
  }

  [[nodiscard]] access base(event_kind kind) const {
    access a;
    a.kind = kind;
    a.system = true;
    a.location = location_;
    a.site = site_;
    return a;
  }

  template <class Change>
  state change(Change make) {
    const auto bytes = [&make](value v) { return to_value(make(from_value<state>(v))); };
    const auto is_free = [](value v) { return from_value<state>(v).locked == 0; };
    access a = base(event_kind::update);
    a.modify = bytes;
    a.accepts = is_free;
    return from_value<state>(engine_.perform(a).read);
  }

  void put(state s) {
    access a = base(event_kind::store);
    a.operand = to_value(s);
    engine_.perform(a);
  }

  void await_wake(bool timed) {
    const std::uint16_t me = self();
    const auto is_mine = [me](value v) { return (from_value<state>(v).woken & me) != 0; };
    access a = base(event_kind::load);
    a.accepts = is_mine;
    a.timed = timed;
    a.sticky = true;
    engine_.perform(a);
  }

  [[nodiscard]] std::uint64_t choose_way(std::uint64_t ways) {
    access a;
    a.kind = event_kind::choose;
    a.alternatives = ways;
    a.site = site_;
    return engine_.perform(a).read.low;
  }

  // choose_sleepers picks one of the subsets of `count` members.
  [[nodiscard]] std::uint16_t choose_sleepers(std::uint16_t from, std::size_t count) {
    std::vector<std::uint16_t> subsets;
    for (unsigned s = 1; s <= from; ++s)
      if ((s & ~unsigned{from}) == 0 && static_cast<std::size_t>(std::popcount(s)) == count)
        subsets.push_back(static_cast<std::uint16_t>(s));
    if (subsets.empty()) return 0;
    return subsets[choose_way(subsets.size())];
  }

  engine& engine_;
  std::uint32_t location_;
  std::uint32_t site_;
  std::uint16_t waiting_ = 0;
};

}  // namespace detail
}  // namespace model
