// run_queue holds the runnable actors of a runtime: one of four shapes, chosen by config.
//
//   local    a lock-free ring a scheduler (local_ring), to which only that one pushes, and two
//            shared ones under a lock: the injector, for what comes from outside and for those of a
//            full ring that have run, and the overflow, for those of it that have not. A scheduler
//            takes from its own ring, then a batch from the injector or the overflow, then half of
//            what another has; every fairness_tick-th pop begins at these or at another's. It may
//            also ask for the newest of its own, or for a single one from a place that it names.
//   locked   one ring under a lock: strict first come, first served.
//   mpmc     one lock-free ring (D. Vyukov's bounded queue) with a cell for every actor.
//   striped  as many locked rings as schedulers may run at a time: a scheduler pushes to its CPU's
//            and pops from it first, then from the others; every fairness_tick-th pop begins at
//            another.
//
// Invariants
//   1. An actor stands in the queue at most once (slot_state), so no more than the reserved number
//      of entries exist and push never fails and never allocates.
//   2. What push has published before a fence, looks_empty after a fence does not miss; what a pop
//      moves besides, it says.
// Threads: push and pop by schedulers, `home` is what home_of said to this one of late, but pop
// also by whoever is alone with the queue; push_from_outside by anybody; reserve by spawn only.
// Why a stripe belongs to a CPU and not to a scheduler: where more schedulers are configured than
// CPUs, those that happen to be awake may share one by their numbers and wait for each other's
// lock, a fifth of a yield's time.
// Why a switch over three members and not a virtual call: this is the hottest call of the runtime,
// and the branch is the same every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <smarm/config.hpp>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "sched/local_ring.hpp"

namespace smarm::detail {

struct slot;

// locked_ring is a first-in first-out ring of actors under a lock.
class locked_ring {
 public:
  void push(slot& runnable) noexcept;
  void push_all(slot* const* runnable, std::size_t count) noexcept;
  [[nodiscard]] slot* pop() noexcept;
  // pop_some takes up to `max` into `out`; how many they are.
  [[nodiscard]] std::size_t pop_some(slot** out, std::size_t max) noexcept;
  [[nodiscard]] bool looks_empty() const noexcept {
    return size_.load(relaxed) == 0;  // relaxed: behind a fence where it matters (coordinator)
  }
  // reserve makes room for `capacity` entries, a power of two. Throws std::bad_alloc.
  void reserve(std::size_t capacity);

 private:
  raw_mutex lock_;  // leaf; guards the three below and writes of size_
  std::unique_ptr<slot*[]> entries_;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  // Written under lock_; read without it so that a look at an empty queue touches one line.
  atomic<std::size_t> size_{0};
};

// mpmc_ring is a bounded queue for many producers and consumers without a lock.
class mpmc_ring {
 public:
  // init makes room for `capacity` entries, a power of two, once. Throws std::bad_alloc.
  void init(std::size_t capacity);
  void push(slot& runnable) noexcept;
  [[nodiscard]] slot* pop() noexcept;
  [[nodiscard]] bool looks_empty() const noexcept;

 private:
  // A cell of turn 2t is empty and waits for the push of lap t; of turn 2t + 1 it is full.
  struct cell {
    atomic<std::uint64_t> turn;
    slot* entry;
  };
  class unmap {
   public:
    unmap() noexcept {}
    explicit unmap(std::size_t bytes) noexcept : bytes_(bytes) {}
    void operator()(cell* cells) const noexcept;

   private:
    std::size_t bytes_ = 0;
  };
  [[nodiscard]] std::uint64_t lap_of(std::uint64_t position) const noexcept {
    return position >> shift_;
  }

  std::unique_ptr<cell[], unmap> cells_;
  std::uint64_t mask_ = 0;
  unsigned shift_ = 0;
  alignas(64) atomic<std::uint64_t> tail_{0};  // next position to push; moved by pushers
  alignas(64) atomic<std::uint64_t> head_{0};  // next position to pop; moved by poppers
};

class run_queue {
 public:
  // popped is an actor and whether others were moved along, from where a scheduler that is about to
  // sleep has looked to where it has not: then whoever popped sees to it that one looks again.
  struct popped {
    slot* first = nullptr;
    bool moved = false;
  };

  // `parallel` is how many of the schedulers may run at a time: so many stripes, rounded up to a
  // power of two, keep them apart; more would only be more to look through.
  run_queue(run_queue_kind kind, unsigned schedulers, unsigned parallel, std::size_t max_actors);

  // home_of is where a scheduler pushes to at present: its own ring, or the stripe of its CPU.
  [[nodiscard]] unsigned home_of(unsigned scheduler) const noexcept;

  // push: true: the actor is what pop_newest would give.
  bool push(unsigned home, slot& runnable) noexcept;
  void push_from_outside(slot& runnable) noexcept;
  [[nodiscard]] popped pop(unsigned home, std::uint32_t tick) noexcept;

  // For who prefers the newest; only where push has said that there is one. None moves more than
  // what it takes, and null: there is none there.
  [[nodiscard]] slot* pop_newest(unsigned home) noexcept {
    return local_count_ == 1 ? locals_[home].pop_newest_alone() : locals_[home].pop_newest();
  }
  // pop_older takes the own ring's oldest, where there is another than the `newest` ones.
  [[nodiscard]] slot* pop_older(unsigned home, std::uint32_t newest) noexcept {
    return locals_[home].size() > newest ? pop_oldest(home) : nullptr;
  }
  [[nodiscard]] slot* pop_injector() noexcept { return stripes_[0].ring.pop(); }
  // pop_in_turn takes one of the overflow, of another scheduler's ring, or the own ring's oldest.
  [[nodiscard]] slot* pop_in_turn(unsigned home, std::uint32_t turn) noexcept;

  // looks_empty: false only if an entry was there at some moment of the call.
  [[nodiscard]] bool looks_empty() const noexcept;
  // home_looks_empty is a hint: whether what is pushed at `home` would be next there.
  [[nodiscard]] bool home_looks_empty(unsigned home) const noexcept {
    return kind_ == run_queue_kind::local ? locals_[home].looks_empty() : looks_empty();
  }

  // reserve makes room for so many actors. Throws std::bad_alloc and then changes nothing.
  void reserve(std::size_t actors) {
    // acquire: pairs with grow's release: the room below that number exists.
    if (actors > reserved_.load(acquire)) grow(actors);
  }

 private:
  static constexpr std::uint32_t fairness_tick = 61;
  static constexpr std::uint32_t local_capacity = few_in_models(256, 4);
  // What a scheduler takes of the injector at once: about as many as it pops between two looks
  // there, so that who waits there does not wait much longer than who is in a ring.
  static constexpr std::size_t batch = few_in_models(local_capacity / 4, 2);
  using own_ring = local_ring<local_capacity>;

  struct alignas(64) padded_ring {
    locked_ring ring;
  };

  void grow(std::size_t actors);
  void push_shared(unsigned stripe, slot& runnable) noexcept;
  [[nodiscard]] slot* pop_shared(unsigned stripe, std::uint32_t tick) noexcept;
  [[nodiscard]] slot* pop_striped(unsigned stripe, std::uint32_t tick) noexcept;
  bool push_local(unsigned home, slot& runnable) noexcept;
  void spill(unsigned home, slot& runnable) noexcept;
  [[nodiscard]] slot* pop_oldest(unsigned home) noexcept {
    return local_count_ == 1 ? locals_[home].pop_alone() : locals_[home].pop();
  }
  [[nodiscard]] popped pop_fairly(unsigned home, std::uint32_t turn) noexcept;
  [[nodiscard]] popped pop_batch(unsigned home, locked_ring& from) noexcept;
  [[nodiscard]] popped pop_elsewhere(unsigned home) noexcept;

  run_queue_kind kind_;
  unsigned stripe_count_;                   // a power of two
  unsigned local_count_;                    // local: one a scheduler; else 0
  std::unique_ptr<padded_ring[]> stripes_;  // locked and the injector are the first
  locked_ring overflow_;                    // local only
  std::unique_ptr<own_ring[]> locals_;
  std::unique_ptr<std::uint16_t[]> cpu_ranks_;  // striped: the CPUs we may use, counted; constant
  mpmc_ring ring_;
  // How many actors there is room for. Written under grow_lock_, read by spawn.
  atomic<std::size_t> reserved_{0};
  // Guards growth. No leaf: its holder allocates and takes the rings' locks. Never held at a park.
  std::mutex grow_lock_;
};

inline bool run_queue::push_local(unsigned home, slot& runnable) noexcept {
  if (locals_[home].push(runnable)) [[likely]]
    return true;
  spill(home, runnable);
  return false;
}

inline bool run_queue::push(unsigned home, slot& runnable) noexcept {
  if (kind_ == run_queue_kind::local) [[likely]]
    return push_local(home, runnable);
  push_shared(home, runnable);
  return false;
}

// An actor in the ring of a scheduler that computes on must not wait for it while the others are
// kept busy by their own.
inline run_queue::popped run_queue::pop(unsigned home, std::uint32_t tick) noexcept {
  if (kind_ != run_queue_kind::local) [[unlikely]]
    return {pop_shared(home, tick)};
  if (tick % fairness_tick == 0) [[unlikely]] {
    if (const popped found = pop_fairly(home, tick / fairness_tick); found.first != nullptr) {
      return found;
    }
  }
  if (slot* const next = pop_oldest(home)) [[likely]]
    return {next};
  return pop_elsewhere(home);
}

}  // namespace smarm::detail
