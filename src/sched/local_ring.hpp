// local_ring holds runnable actors of one scheduler: its owner pushes with two plain stores,
// anybody takes from the other end by an exchange.
//
// Positions count up for ever; what stands at head_ <= p < tail_ is queued, in the entry p modulo
// the capacity.
//
// Invariants
//   1. Only the owner writes entries and moves tail_; head_ is moved by whoever takes, past what it
//      has taken, by one compare-exchange.
//   2. An entry is written again only when head_ has gone past it. Whoever takes reads entries
//      first and exchanges then; if the exchange fails, what it has read means nothing.
//   3. An entry that is taken to another ring is in neither between the exchange and the store of
//      the other tail_; the thief runs one and has the others seen (picker).
// Threads: push, pop_alone and steal_from: the owner. pop, take_half, looks_empty: any.
// Source: the run queues of Go (runtime/proc.go) and Tokio; positions of 64 bits instead of 32, so
// that no thread can be preempted for a whole turn of them.
#pragma once

#include <array>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/perturb.hpp"

namespace smarm::detail {

struct slot;

template <std::uint32_t Capacity>
class local_ring {
 public:
  static_assert((Capacity & (Capacity - 1)) == 0 && Capacity >= 2);

  // push puts an actor at the end; false: the ring is full.
  [[nodiscard]] bool push(slot& runnable) noexcept {
    const std::uint64_t tail = tail_.load(relaxed);  // relaxed: own
    // acquire: pairs with the exchange of whoever took what stood in this entry (invariant 2).
    if (tail - head_.load(acquire) == Capacity) return false;
    perturb(perturb_point::queue_push);
    at(tail).store(&runnable, relaxed);  // relaxed: published by tail_
    tail_.store(tail + 1, release);      // pairs with take_half's and pop's acquire
    return true;
  }

  // pop takes the oldest; null: there is none.
  [[nodiscard]] slot* pop() noexcept {
    std::uint64_t head = head_.load(relaxed);  // relaxed: the exchange validates it
    for (;;) {
      // acquire: pairs with push: the entries below are written.
      if (static_cast<std::int64_t>(tail_.load(acquire) - head) <= 0) return nullptr;
      slot* const first = at(head).load(relaxed);  // relaxed: behind the acquire
      perturb(perturb_point::queue_pop);
      // release: the entry has been read; pairs with push. relaxed on failure: looks again.
      if (head_.compare_exchange_weak(head, head + 1, release, relaxed)) return first;
    }
  }

  // pop_alone is pop where no other thread takes from this ring, ever.
  [[nodiscard]] slot* pop_alone() noexcept {
    const std::uint64_t head = head_.load(relaxed);   // relaxed, all: nobody else is there
    if (tail_.load(relaxed) == head) return nullptr;  // relaxed: as above
    head_.store(head + 1, relaxed);                   // relaxed: as above
    return at(head).load(relaxed);                    // relaxed: as above
  }

  // take_half takes the oldest half, rounded up, and hands each to `put(index, actor)`, from 0 on,
  // which may begin again where another was faster; how many they are.
  template <class Put>
  [[nodiscard]] std::uint32_t take_half(Put put) noexcept {
    std::uint64_t head = head_.load(relaxed);  // relaxed: as in pop
    for (;;) {
      const auto queued = static_cast<std::int64_t>(tail_.load(acquire) - head);  // as in pop
      if (queued <= 0) return 0;
      // More than fit: head was old.
      if (queued > Capacity) {
        head = head_.load(relaxed);  // relaxed: as in pop
        continue;
      }
      const auto count = static_cast<std::uint32_t>(queued - queued / 2);
      for (std::uint32_t i = 0; i < count; ++i) put(i, at(head + i).load(relaxed));  // as in pop
      perturb(perturb_point::steal);
      // Both orders as in pop.
      if (head_.compare_exchange_weak(head, head + count, release, relaxed)) return count;
    }
  }

  // steal_from takes half of what another ring has into this one, which is empty, and of that the
  // oldest; null: there was nothing. By the owner of this ring.
  [[nodiscard]] slot* steal_from(local_ring& other, std::uint32_t& taken) noexcept {
    const std::uint64_t tail = tail_.load(relaxed);   // relaxed: own
    if (head_.load(acquire) != tail) return nullptr;  // acquire: as in push
    slot* first = nullptr;
    // relaxed: as in push. Nobody else takes what tail_ does not cover yet.
    taken = other.take_half([&](std::uint32_t i, slot* found) {
      if (i == 0) {
        first = found;
      } else {
        at(tail + i - 1).store(found, relaxed);
      }
    });
    if (taken == 0) return nullptr;
    tail_.store(tail + taken - 1, release);  // as in push
    return first;
  }

  // looks_empty: false only if something was queued at some moment of the call. What push has
  // published before a fence it does not miss behind one.
  [[nodiscard]] bool looks_empty() const noexcept {
    // relaxed, both: behind the fence of whoever must not miss anything (coordinator).
    const std::uint64_t head = head_.load(relaxed);
    return static_cast<std::int64_t>(tail_.load(relaxed) - head) <= 0;  // relaxed: as above
  }

 private:
  [[nodiscard]] atomic<slot*>& at(std::uint64_t position) noexcept {
    return entries_[position % Capacity];
  }

  // On one line: the owner has both at each turn, others come seldom.
  alignas(64) atomic<std::uint64_t> head_{0};
  atomic<std::uint64_t> tail_{0};
  alignas(64) std::array<atomic<slot*>, Capacity> entries_{};
};

}  // namespace smarm::detail
