// run_queue holds the runnable actors of a runtime: one of three shapes, chosen by config.
//
//   locked   one ring under a lock: strict first come, first served.
//   mpmc     one lock-free ring (D. Vyukov's bounded queue) with a cell for every actor.
//   striped  as many locked rings as schedulers may run at a time: a scheduler pushes to its CPU's
//            and pops from it first, then from the others; every fairness_tick-th pop begins at
//            another.
//
// Invariants
//   1. An actor stands in the queue at most once (slot_state), so no more than the reserved number
//      of entries exist and push never fails and never allocates.
//   2. What push has published before a fence, looks_empty after a fence does not miss.
// Threads: push and pop by anybody; `stripe` is what home_stripe said of late, or any number for a
// foreign thread. reserve by spawn only.
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

namespace smarm::detail {

struct slot;

// locked_ring is a first-in first-out ring of actors under a lock.
class locked_ring {
 public:
  void push(slot& runnable) noexcept;
  [[nodiscard]] slot* pop() noexcept;
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
  // `parallel` is how many schedulers may run at a time: so many stripes, rounded up to a power of
  // two, keep them apart; more would only be more to look through.
  run_queue(run_queue_kind kind, unsigned parallel, std::size_t max_actors);

  // home_stripe is the stripe of the CPU that the caller runs on at present.
  [[nodiscard]] unsigned home_stripe() const noexcept;

  void push(unsigned stripe, slot& runnable) noexcept;
  [[nodiscard]] slot* pop(unsigned stripe, std::uint32_t tick) noexcept;

  // looks_empty: false only if an entry was there at some moment of the call.
  [[nodiscard]] bool looks_empty() const noexcept;

  // reserve makes room for so many actors. Throws std::bad_alloc and then changes nothing.
  void reserve(std::size_t actors) {
    // acquire: pairs with grow's release: the room below that number exists.
    if (actors > reserved_.load(acquire)) grow(actors);
  }

 private:
  static constexpr std::uint32_t fairness_tick = 61;

  struct alignas(64) padded_ring {
    locked_ring ring;
  };

  void grow(std::size_t actors);
  [[nodiscard]] slot* pop_striped(unsigned stripe, std::uint32_t tick) noexcept;

  run_queue_kind kind_;
  unsigned stripe_count_;                       // a power of two
  std::unique_ptr<padded_ring[]> stripes_;      // locked uses the first
  std::unique_ptr<std::uint16_t[]> cpu_ranks_;  // striped: the CPUs we may use, counted; constant
  mpmc_ring ring_;
  // How many actors there is room for. Written under grow_lock_, read by spawn.
  atomic<std::size_t> reserved_{0};
  // Guards growth. No leaf: its holder allocates and takes the rings' locks. Never held at a park.
  std::mutex grow_lock_;
};

}  // namespace smarm::detail
