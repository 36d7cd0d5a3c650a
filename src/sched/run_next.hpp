// run_next is the place for the one actor that a scheduler runs next. It is its scheduler's, and
// seldom somebody else's: a thief takes from it what has been stuck for milliseconds.
//
// So the owner pays for the thief only with plain stores, by an asymmetric fence: it says that it
// is busy with the place, light fence, looks whether a thief is about; a thief says so, heavy
// fence, looks whether the owner is busy. Of two at the same moment one sees the other: the owner
// then takes by exchange, as the thief does, or the thief gives up, to come again in its time.
//
// Invariants
//   1. Only the owner fills it. Each actor that was put in comes out once, by the owner or a thief.
//   2. One thief at a time: who has the watcher's role (sched/coordinator.hpp).
// Threads: as said at each.
#pragma once

#include "base/asymmetric_fence.hpp"
#include "base/atomic.hpp"

namespace smarm::detail {

struct slot;

class run_next {
 public:
  // peek is a hint, for any thread; for the owner null is certain.
  [[nodiscard]] slot* peek() const noexcept {
    return next_.load(relaxed);  // relaxed: only the owner fills it; for others a hint
  }

  // fill puts an actor into the place. By the owner, who has seen it empty.
  void fill(slot& runnable) noexcept {
    next_.store(&runnable, release);  // pairs with steal's exchange: who takes it claims the actor
  }

  // swap puts `fresh` there, perhaps null, and gives what was there. By the owner; alone: nobody
  // steals.
  [[nodiscard]] slot* swap(slot* fresh, bool alone) noexcept {
    slot* taken = nullptr;
    if (alone) {
      taken = next_.load(relaxed);  // relaxed, both: nobody else has it
      next_.store(fresh, relaxed);
      return taken;
    }
    is_busy_.store(true, relaxed);  // relaxed: ordered by the fence
    fence_light();
    // acquire: pairs with the end of steal: what the thief took is there no more.
    if (has_thief_.load(acquire)) [[unlikely]] {
      taken = next_.exchange(fresh, release);  // release: as in fill; what it takes is its own
    } else {
      // relaxed, both: its own; and a thief takes what is there only behind the store below.
      taken = next_.load(relaxed);
      next_.store(fresh, relaxed);
    }
    is_busy_.store(false, release);  // pairs with steal: who sees it sees the place as it is now
    return taken;
  }

  // steal takes what is there, unless the owner is at it; null: nothing. By one thief at a time.
  [[nodiscard]] slot* steal() noexcept {
    if (peek() == nullptr) return nullptr;
    has_thief_.store(true, relaxed);  // relaxed: ordered by the fence
    slot* stolen = nullptr;
    // acquire, both: pairs with swap's release, and with that of fill.
    if (fence_heavy() && !is_busy_.load(acquire)) stolen = next_.exchange(nullptr, acquire);
    has_thief_.store(false, release);  // pairs with swap's look
    return stolen;
  }

 private:
  atomic<slot*> next_{nullptr};
  atomic<bool> is_busy_{false};    // the owner's word
  atomic<bool> has_thief_{false};  // the thief's
};

}  // namespace smarm::detail
