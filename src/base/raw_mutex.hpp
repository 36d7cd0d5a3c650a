// raw_mutex is the runtime's own lock: a futex word of three states that blocks the thread, for the
// short critical sections inside the runtime.
//
// Invariants
//   1. free -> locked -> free without a system call while nobody waits. A thread that waits has
//      first set `contended`, and every unlock that finds it there wakes one.
//   2. It is a leaf: who holds one takes no second, and never parks the actor it runs for. Debug
//      builds count per thread and fail at the acquisition that breaks the rule; so there is no
//      lock order to keep, and no deadlock among these locks.
// Threads: any. The thread that locked unlocks.
// Why three states: with two, each unlock would have to call the kernel, or each waiter to poll
// (U. Drepper, "Futexes Are Tricky", mutex3).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace smarm::detail {

// held_raw_mutex_count is registered by the layer that owns the thread's state and returns the
// calling thread's count of held locks. While it is null nothing is counted. Set once, before
// threads exist.
inline int* (*held_raw_mutex_count)() noexcept = nullptr;

class raw_mutex {
 public:
  constexpr raw_mutex() noexcept = default;
  raw_mutex(const raw_mutex&) = delete;
  raw_mutex& operator=(const raw_mutex&) = delete;

  // lock takes the lock; blocks the thread while another has it.
  void lock() noexcept;

  // try_lock takes the lock if it is free and says whether it did. Never blocks.
  [[nodiscard]] bool try_lock() noexcept;

  // unlock gives the lock back and wakes one waiter.
  void unlock() noexcept;

 protected:
  enum state : std::uint32_t {
    free,       // nobody holds it
    locked,     // held, and nobody sleeps for it
    contended,  // held, and somebody may sleep for it: unlock must wake
  };

  [[nodiscard]] bool take_if_free() noexcept;
  void lock_slowly() noexcept;
  void wake_one() noexcept;
  void count_acquisition() noexcept;
  void count_release() noexcept;

  // What unlock does with the word.
  void release_word() noexcept;

  // Written by every locker and unlocker. Publishes what the lock protects.
  atomic<std::uint32_t> state_{free};
};

static_assert(sizeof(raw_mutex) == 4);

// outer_mutex is a raw_mutex that is no leaf: who holds one may take a raw_mutex, and allocate, but
// no second outer_mutex; nor may an actor park with one held. For what is cold and spans several
// slots.
class outer_mutex : private raw_mutex {
 public:
  void lock() noexcept {
    if (!take_if_free()) [[unlikely]] {
      lock_slowly();
    }
  }
  void unlock() noexcept { release_word(); }
};

// raw_guard holds a raw_mutex for a scope, also when an exception leaves it.
class [[nodiscard]] raw_guard {
 public:
  explicit raw_guard(raw_mutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  raw_guard(const raw_guard&) = delete;
  raw_guard& operator=(const raw_guard&) = delete;
  ~raw_guard() { mutex_.unlock(); }

 private:
  raw_mutex& mutex_;
};

inline bool raw_mutex::take_if_free() noexcept {
  std::uint32_t expected = free;
  // acquire pairs with unlock(): without it we could read what the last holder had not yet written.
  // Relaxed on failure: nothing is read on the strength of it.
  return state_.compare_exchange_strong(expected, locked, acquire, relaxed);
}

inline void raw_mutex::lock() noexcept {
#ifdef SMARM_DEBUG
  count_acquisition();
#endif
  if (!take_if_free()) [[unlikely]] {
    lock_slowly();
  }
}

inline bool raw_mutex::try_lock() noexcept {
  if (!take_if_free()) {
    return false;
  }
#ifdef SMARM_DEBUG
  count_acquisition();
#endif
  return true;
}

inline void raw_mutex::unlock() noexcept {
#ifdef SMARM_DEBUG
  count_release();
#endif
  release_word();
}

inline void raw_mutex::release_word() noexcept {
  // release pairs with take_if_free() and lock_slowly(): publishes the critical section.
  if (state_.exchange(free, release) == contended) [[unlikely]] {
    wake_one();
  }
}

}  // namespace smarm::detail
