// mutex_core is the lock inside smarm::mutex.
//
// Unlocking frees the lock and invites the first waiter to try for it, so that whoever runs goes on
// without a switch for each critical section. An invited waiter that finds the lock taken goes back
// to the front; when it has waited for longer than handover_after_ns the next unlock hands it the
// lock without freeing it in between.
//
// Invariants
//   1. Of word_, `locked` belongs to the holder, who clears it or hands it on; anybody sets it
//   where
//      it is clear. `waiting` and `invited` change under lock_ alone.
//   2. `waiting` is set exactly while the list is not empty.
//   3. `invited` is set exactly while one waiter is off the list to try for the lock. It takes the
//      lock, goes back into the list, or leaves; each clears the bit, and who leaves a free lock
//      with others waiting invites the next.
//   4. The lock is free with `waiting` set only while `invited` is set or an unlock is under way:
//   no
//      waiter is forgotten.
// Threads: any.
// Why not always hand over: each critical section would then cost a switch (a convoy), a hundred
// times what it costs to let the running actor in again. Why hand over at all: without, an actor
// that locks in a loop shuts the others out for good.
#pragma once

#include <cstdint>

#include <smarm/deadline.hpp>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "sync/wait_list.hpp"

namespace smarm::detail {

class mutex_core {
 public:
  mutex_core() noexcept = default;
  mutex_core(const mutex_core&) = delete;
  mutex_core& operator=(const mutex_core&) = delete;
  ~mutex_core();

  // try_lock takes the lock if it is free. Never parks.
  [[nodiscard]] bool try_lock() noexcept;
  // lock_slowly parks until the lock is the caller's or the deadline passes (false). A stop point
  // while parked.
  [[nodiscard]] bool lock_slowly(deadline until);
  // lock_through_stop is lock that no stop refuses. Parks.
  void lock_through_stop() noexcept;
  // unlock: the caller holds the lock. Never parks.
  void unlock() noexcept;

  // The holder, for the checks of debug builds.
  void set_holder() noexcept;
  void clear_holder() noexcept;
  [[nodiscard]] bool is_held_by_caller() const noexcept;

 private:
  static constexpr std::uint32_t locked = 1;   // somebody holds it
  static constexpr std::uint32_t waiting = 2;  // the list is not empty
  static constexpr std::uint32_t invited = 4;  // a woken waiter is on its way

  struct lock_waiter : waiter {
    std::int64_t since_ns = 0;
  };
  enum class step : std::uint8_t { taken, enlisted, left };

  template <class Park>
  bool wait_for_lock(Park park_once);
  [[nodiscard]] step take_or_enlist(lock_waiter& me, bool again, bool may_wait) noexcept;
  [[nodiscard]] step after_wake(lock_waiter& me, bool timed_out) noexcept;
  void leave(lock_waiter& me) noexcept;
  void spin() noexcept;
  [[nodiscard]] bool pass_on() noexcept;
  [[nodiscard]] waker invite_first() noexcept;
  void drop_waiting_if_none() noexcept;

  // Publishes what the lock protects, from unlock to the next taker.
  atomic<std::uint32_t> word_{0};
  raw_mutex lock_;  // leaf; guards the list and the bits of invariant 1
  wait_list waiters_;
  atomic<std::uint64_t> holder_{0};  // debug builds: who holds it
};

}  // namespace smarm::detail
