// local_ring holds runnable actors of one scheduler: its owner pushes with two plain stores,
// anybody takes from the other end by an exchange, and the owner alone also from its own end.
//
// Positions count up, modulo 2^16; what stands at head <= p < tail is queued, in the entry p modulo
// the capacity. head_ holds the position in its low 16 bits and, above, how often it was exchanged.
//
// Invariants
//   1. Only the owner writes entries and moves tail_. Whoever takes exchanges head_, from what it
//      read before it looked at tail_ and entries, and so that no two values of it are the same:
//      past what it has taken, or, the owner taking the newest, in place.
//   2. An entry is written again only when an exchange of head_ has taken it. Whoever takes reads
//      entries first and exchanges then; if the exchange fails, what it has read means nothing.
//   3. The owner that takes the newest lowers tail_ first and exchanges then. Who read head_ before
//      that exchange fails; who reads it after sees the lower tail_; who exchanged before is seen
//      by the owner, who puts tail_ back if the newest has gone.
//   4. An entry that is taken to another ring is in neither between the exchange and the store of
//      the other tail_; the thief runs one and has the others seen (picker).
// Threads: push, pop_newest, the *_alone and steal_from: the owner. pop, take_half, looks_empty:
// any.
// Source: the run queues of Go (runtime/proc.go) and Tokio, which take the oldest only; the count
// in head_ is what lets the owner take the newest beside thieves that take many at once. It has 48
// bits, so that no thread can be preempted for a whole turn of it.
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
  static_assert((Capacity & (Capacity - 1)) == 0 && Capacity >= 2 && Capacity <= 1U << 14);

  // push puts an actor at the end; false: the ring is full.
  [[nodiscard]] bool push(slot& runnable) noexcept {
    const position tail = tail_.load(relaxed);  // relaxed: own
    // acquire: pairs with the exchange of whoever took what stood in this entry (invariant 2).
    if (queued(head_.load(acquire), tail) == Capacity) return false;
    perturb(perturb_point::queue_push);
    at(tail).store(&runnable, relaxed);  // relaxed: published by tail_
    tail_.store(after(tail), release);   // pairs with take_half's and pop's acquire
    return true;
  }

  // pop takes the oldest; null: there is none.
  [[nodiscard]] slot* pop() noexcept {
    std::uint64_t head = head_.load(acquire);  // pairs with pop_newest: tail_ is as low as it says
    for (;;) {
      // acquire: pairs with push: the entries below are written.
      if (queued(head, tail_.load(acquire)) <= 0) return nullptr;
      slot* const first = at(position_of(head)).load(relaxed);  // relaxed: behind the acquire
      perturb(perturb_point::queue_pop);
      // release: the entry has been read; pairs with push. acquire on failure: as above.
      if (head_.compare_exchange_weak(head, advanced(head, 1), release, acquire)) return first;
    }
  }

  // pop_newest takes what was pushed last; null: there is nothing.
  [[nodiscard]] slot* pop_newest() noexcept {
    const position tail = tail_.load(relaxed);  // relaxed: own
    std::uint64_t head = head_.load(relaxed);   // relaxed: the exchange validates it
    if (position_of(head) == tail) return nullptr;
    const auto newest = static_cast<position>(tail - 1);
    // release: as in push, for the entries below: a plain store ends the release sequence of those
    // before it.
    tail_.store(newest, release);
    perturb(perturb_point::queue_pop);
    // release: who sees the exchange sees the lower tail_ (invariant 3). relaxed on failure: what
    // thieves took they took by this word.
    while (!head_.compare_exchange_weak(head, advanced(head, 0), release, relaxed)) {
      if (position_of(head) != tail) continue;
      // relaxed: there is nothing left, so whoever sees this takes nothing by it.
      tail_.store(tail, relaxed);
      return nullptr;
    }
    return at(newest).load(relaxed);  // relaxed: own
  }

  // pop_alone and pop_newest_alone do so where no other thread takes from this ring, ever.
  [[nodiscard]] slot* pop_alone() noexcept {
    const std::uint64_t head = head_.load(relaxed);  // relaxed, all: nobody else is there
    if (tail_.load(relaxed) == position_of(head)) return nullptr;  // relaxed: as above
    head_.store(advanced(head, 1), relaxed);                       // relaxed: as above
    return at(position_of(head)).load(relaxed);                    // relaxed: as above
  }
  [[nodiscard]] slot* pop_newest_alone() noexcept {
    const position tail = tail_.load(relaxed);                     // relaxed, all: as pop_alone
    if (position_of(head_.load(relaxed)) == tail) return nullptr;  // relaxed: as above
    const auto newest = static_cast<position>(tail - 1);
    tail_.store(newest, relaxed);     // relaxed: as above
    return at(newest).load(relaxed);  // relaxed: as above
  }

  // take_half takes the oldest half, rounded up, and hands each to `put(index, actor)`, from 0 on,
  // which may begin again where another was faster; how many they are.
  template <class Put>
  [[nodiscard]] std::uint32_t take_half(Put put) noexcept {
    std::uint64_t head = head_.load(acquire);  // as in pop
    for (;;) {
      const int here = queued(head, tail_.load(acquire));  // acquire: as in pop
      if (here <= 0) return 0;
      // More than fit: head was old.
      if (here > static_cast<int>(Capacity)) {
        head = head_.load(acquire);  // as in pop
        continue;
      }
      const auto count = static_cast<position>(here - here / 2);
      for (position i = 0; i < count; ++i) {
        // relaxed: as in pop
        put(i, at(static_cast<position>(position_of(head) + i)).load(relaxed));
      }
      perturb(perturb_point::steal);
      // Both orders as in pop.
      if (head_.compare_exchange_weak(head, advanced(head, count), release, acquire)) return count;
    }
  }

  // steal_from takes half of what another ring has into this one, which is empty, and of that the
  // oldest; null: there was nothing. By the owner of this ring.
  [[nodiscard]] slot* steal_from(local_ring& other, std::uint32_t& taken) noexcept {
    const position tail = tail_.load(relaxed);                     // relaxed: own
    if (position_of(head_.load(acquire)) != tail) return nullptr;  // acquire: as in push
    slot* first = nullptr;
    // relaxed: as in push. Nobody else takes what tail_ does not cover yet.
    taken = other.take_half([&](std::uint32_t i, slot* found) {
      if (i == 0) {
        first = found;
      } else {
        at(static_cast<position>(tail + i - 1)).store(found, relaxed);
      }
    });
    if (taken == 0) return nullptr;
    tail_.store(static_cast<position>(tail + taken - 1), release);  // as in push
    return first;
  }

  // size is how many are queued. By the owner; thieves may be taking some of them.
  [[nodiscard]] std::uint32_t size() const noexcept {
    // relaxed, both: a hint
    const int here = queued(head_.load(relaxed), tail_.load(relaxed));
    return here < 0 ? 0 : static_cast<std::uint32_t>(here);
  }

  // looks_empty: false only if something was queued at some moment of the call. What push has
  // published before a fence it does not miss behind one, unless 2^15 more are pushed between its
  // two looks: each of those has woken somebody.
  [[nodiscard]] bool looks_empty() const noexcept {
    // relaxed, both: behind the fence of whoever must not miss anything (coordinator).
    const std::uint64_t head = head_.load(relaxed);
    return queued(head, tail_.load(relaxed)) <= 0;  // relaxed: as above
  }

 private:
  using position = std::uint16_t;
  static constexpr unsigned position_bits = 16;

  [[nodiscard]] static constexpr position position_of(std::uint64_t head) noexcept {
    return static_cast<position>(head);
  }
  [[nodiscard]] static constexpr position after(position last) noexcept {
    return static_cast<position>(last + 1);
  }
  // advanced is head_ after an exchange that takes `count` of the oldest.
  [[nodiscard]] static constexpr std::uint64_t advanced(std::uint64_t head,
                                                        position count) noexcept {
    return (((head >> position_bits) + 1) << position_bits) |
           static_cast<position>(position_of(head) + count);
  }
  // queued is how many entries lie between the two, if both are of the same moment.
  [[nodiscard]] static constexpr int queued(std::uint64_t head, position tail) noexcept {
    return static_cast<std::int16_t>(static_cast<position>(tail - position_of(head)));
  }
  [[nodiscard]] atomic<slot*>& at(position where) noexcept { return entries_[where % Capacity]; }

  // On one line: the owner has both at each turn, others come seldom.
  alignas(64) atomic<std::uint64_t> head_{0};
  atomic<position> tail_{0};
  alignas(64) std::array<atomic<slot*>, Capacity> entries_{};
};

}  // namespace smarm::detail
