// timers is the wheel of armed deadlines of one runtime.
//
// A hierarchical wheel: level L has 64 buckets of 2^(14 + 6L) ns, so level 0 resolves 16 us and
// nine levels span the clock. A timer lies in the bucket of the highest bit in which its tick
// differs from the wheel's present one; when time enters a bucket of an upper level its timers are
// dealt to the levels below. Deadlines are kept and compared in full nanoseconds; the wheel only
// orders them.
//
// Invariants
//   1. insert and cancel touch one list each: O(1). A cancelled timer is gone at once.
//   2. earliest_ is never later than the earliest armed deadline. Written under lock_, read by
//      everybody without it.
//   3. A node is touched by the wheel only while it is linked, under lock_; cancel returns when the
//      wheel is through with it, so it may live on the waiter's stack.
//   4. A standing timer is in the wheel at its wanted deadline or before it, or it is out and its
//      wait has been woken. standing_timer says how that holds without the lock.
// Threads: any, under lock_. Wakers are called outside it.
//
// Why not a heap: cancel is the common end of a timeout, and a heap pays log n cache misses for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "base/raw_mutex.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

// timer is one armed deadline and whom to wake at it.
class timer : public list_link {
 public:
  timer(std::int64_t deadline_ns, const waker& target) noexcept
      : timer(deadline_ns, target, kind::plain) {}

  [[nodiscard]] std::int64_t deadline_ns() const noexcept { return deadline_ns_; }

 private:
  friend class timers;
  friend class alarm;
  friend class standing_timer;
  enum class kind : std::uint8_t { plain, alarm, standing };

  timer(std::int64_t deadline_ns, const waker& target, kind of) noexcept
      : deadline_ns_(deadline_ns), target_(target), kind_(of) {}

  std::int64_t deadline_ns_;  // of a standing one: guarded by lock_
  waker target_;
  std::uint8_t level_ = 0;   // where it is linked: guarded by lock_
  std::uint8_t bucket_ = 0;  // likewise
  bool fired_ = false;       // guarded by lock_
  const kind kind_;
};

// standing_timer is one actor's timer for all its waits with a deadline, one after the other. It
// stays in the wheel when a wait has ended, since nearly every wait is woken long before its
// deadline, and the next one's is no earlier as a rule: so a wait costs an exchange, and the wheel
// and its lock see the timer again when the deadline that it stands at comes. Then it is moved to
// what is wanted by now, or it wakes its actor and is out.
//
// Who writes what. The owner writes wanted_ns_ and then, by an exchange, wait_: the ticket of the
// wait. The wheel, under its lock, reads both, decides, and settles it by an exchange on wait_ that
// fails where the owner has moved on to another wait: then it decides anew. So of the owner's
// exchange and the wheel's one comes first: the owner sees armed_ns_ as the wheel has moved it, or
// the wheel sees the new wait. What the wheel may read of two waits at once is the ticket of one
// and the wanted_ns_ of the next; then the one is over, its waker does nothing, and the next finds
// the timer out, or standing at its own deadline.
// Threads: the owner, but for the wheel.
class standing_timer final : public timer {
 public:
  // `first` is a wait of the owner's; any will do.
  explicit standing_timer(const waker& first) noexcept : timer(never_ns, first, kind::standing) {}

  // fires_by: it stands in the wheel and needs no lock to serve a wait until then. A hint, which
  // timers::want verifies.
  [[nodiscard]] bool fires_by(std::int64_t deadline_ns) const noexcept {
    // relaxed, both: a hint
    return (wait_.load(relaxed) & out) == 0 && armed_ns_.load(relaxed) <= deadline_ns;
  }
  // has_fired tells whether it has woken its actor from that wait.
  [[nodiscard]] bool has_fired(const waker& wait) const noexcept {
    // relaxed: who was woken by it has acquired what comes before the wake
    return wait_.load(relaxed) == (wait.ticket_ | out);
  }

 private:
  friend class timers;
  static constexpr std::uint64_t out = 1;  // it is not in the wheel; a ticket has a zero there

  atomic<std::uint64_t> wait_{out};           // the ticket of the latest wait, and `out`
  atomic<std::int64_t> wanted_ns_{never_ns};  // that wait's deadline, or already the next one's
  atomic<std::int64_t> armed_ns_{never_ns};   // deadline_ns_, for the owner. Written under lock_
};

// alarm is a timer that calls somebody instead of waking one. Counted by reference; the wheel holds
// one as long as it is armed.
class alarm : public timer {
 public:
  // on_expiry is called by the scheduler that sees the deadline pass. It must not park.
  virtual void on_expiry() noexcept = 0;
  // on_dropped is called instead where the run ends before.
  virtual void on_dropped() noexcept = 0;

  void add_reference() noexcept {
    references_.fetch_add(1, relaxed);  // relaxed: whoever copies a reference already holds one
  }
  void drop_reference() noexcept;

 protected:
  explicit alarm(std::int64_t deadline_ns) noexcept : timer(deadline_ns, {}, kind::alarm) {}
  virtual ~alarm() = default;

 private:
  atomic<std::uint32_t> references_{1};
};

class timers {
 public:
  timers() noexcept;

  // insert arms the timer; true: it is the earliest now.
  bool insert(timer& node) noexcept;

  // cancel disarms it; true: it had not fired.
  bool cancel(timer& node) noexcept;

  // want sets a standing timer to one more wait of its owner; true: it is the earliest now.
  bool want(standing_timer& node, const waker& wait, std::int64_t deadline_ns) noexcept;
  // retire takes it out, if it is in; then it may go.
  void retire(standing_timer& node) noexcept;

  // arm and disarm are insert and cancel for an alarm; the wheel's reference comes and goes.
  bool arm(alarm& node) noexcept {
    node.add_reference();
    return insert(node);
  }
  bool disarm(alarm& node) noexcept {
    if (!cancel(node)) return false;
    node.drop_reference();
    return true;
  }
  // is_armed tells whether it is still to come.
  [[nodiscard]] bool is_armed(const alarm& node) noexcept {
    const raw_guard guard(lock_);
    return !node.fired_;
  }
  // drop_alarms takes every alarm out without calling it: the run is over.
  void drop_alarms() noexcept;

  // fire_due wakes every timer whose deadline is `now_ns` or earlier, and returns how many.
  std::size_t fire_due(std::int64_t now_ns) noexcept;

  // earliest is the moment to look next: never_ns, or a point not later than the first deadline.
  [[nodiscard]] std::int64_t earliest() const noexcept {
    return earliest_.load(relaxed);  // relaxed: whoever sleeps on it orders itself by fences
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return size_.load(relaxed);  // relaxed: a statistic
  }

 private:
  static constexpr unsigned tick_shift = 14;
  static constexpr unsigned level_bits = 6;
  static constexpr unsigned levels = 9;
  static constexpr unsigned buckets = 1U << level_bits;
  static constexpr std::size_t scan_max = 32;

  struct level {
    std::uint64_t occupied = 0;  // bit b: bucket b is not empty
    std::array<intrusive_list<timer>, buckets> bucket;
  };

  // All of these: lock_ held.
  bool add(timer& node) noexcept;
  void remove(timer& node) noexcept;
  [[nodiscard]] bool expire(standing_timer& node, std::int64_t now_ns, waker& whom) noexcept;
  void link(timer& node) noexcept;
  void unlink(timer& node) noexcept;
  struct due_timer {
    waker target;
    alarm* call;  // in its place, where it is an alarm
  };
  std::size_t take_due(std::int64_t now_ns, due_timer* out, std::size_t room) noexcept;
  bool cascade(std::int64_t now_ns) noexcept;
  void refresh_earliest() noexcept;

  raw_mutex lock_;          // leaf; guards everything below
  std::uint64_t now_tick_;  // the wheel's present; no armed timer lies before its bucket
  std::array<level, levels> levels_;
  atomic<std::int64_t> earliest_{never_ns};
  atomic<std::size_t> size_{0};
};

}  // namespace smarm::detail
