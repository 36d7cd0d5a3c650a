// run_life is the count by which a run ends: how many actors live, how many operations a driver has
// in hand, and whether the verdict has been spoken, in one word; and beside it how many foreign
// threads are about to make one of the actors runnable.
//
// Invariants
//   1. An actor is counted from spawn to the end of its exit, an operation from its start by a
//      living actor to its end.
//   2. The verdict closes the word by one compare-exchange from zero: at that moment no actor lived
//      and nothing was outstanding. A spawn from outside is counted before, and the run goes on, or
//      finds the word closed and is refused.
//   3. Pins outlast the rest: a foreign thread pins before it makes an actor runnable. If that
//      succeeded the actor lived, so the run had not ended, and its end waits until no pin is left.
//      If it failed, nothing but the pin was touched; so a late pin may come after the end.
//   4. A share holds a scheduler's spare counts: counted in the word, but of no actor. So a spawn
//   and
//      an end by a scheduler mostly touch nothing that is shared, and the word is never less than
//      what lives. A scheduler gives its spare counts back before it asks for the verdict.
// Threads: any; a share its scheduler's alone, but for spare.
//
// Why one word: with two, whoever reads both may be overtaken between the looks by an actor that is
// spawned from outside, starts an operation and ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/perturb.hpp"

namespace smarm::detail {

class run_life {
 public:
  enum class admission : std::uint8_t { admitted, full, ended };

  // admit counts a new actor, if no more than actors_max live then. `from_inside`: an actor of this
  // runtime spawns it.
  [[nodiscard]] admission admit(bool from_inside, std::size_t actors_max) noexcept {
    if (from_inside) {
      // relaxed: the spawner lives, so the count is not zero and cannot be closed.
      if (actors_of(word_.fetch_add(actor, relaxed)) < actors_max) return admission::admitted;
      word_.fetch_sub(actor, relaxed);  // relaxed: as above
      return admission::full;
    }
    std::uint64_t before = word_.load(relaxed);  // relaxed: the exchange validates it
    do {
      if ((before & closed) != 0) return admission::ended;
      if (actors_of(before) >= actors_max) return admission::full;
      perturb(perturb_point::verdict);
      // acquire: pairs with reopen: the core is at rest or running, not between.
    } while (!word_.compare_exchange_weak(before, before + actor, acquire, relaxed));
    return admission::admitted;
  }

  // discharge takes back an admit, or counts an actor out as the last act of its exit.
  void discharge() noexcept {
    perturb(perturb_point::verdict);
    // release: pairs with try_end: all that the actor did comes before the end of the run.
    const std::uint64_t before = word_.fetch_sub(actor, release);
    SMARM_ASSERT(actors_of(before) != 0, "an actor is counted out once", before);
  }

  void operation_started() noexcept {
    // relaxed: the actor that starts it lives, so the word is not zero.
    word_.fetch_add(operation, relaxed);
  }

  // operation_finished: true if that was all that kept the run going, and schedulers may sleep on
  // it: then the caller wakes them.
  [[nodiscard]] bool operation_finished() noexcept {
    perturb(perturb_point::verdict);
    // release: pairs with try_end, as discharge.
    return word_.fetch_sub(operation, release) == operation;
  }

  // may_end is a look: nothing keeps the run going, or the verdict has been spoken. Not final: an
  // actor may be spawned from outside.
  [[nodiscard]] bool may_end() const noexcept {
    return (word_.load(relaxed) & ~closed) == 0;  // relaxed: whoever acts on it calls try_end
  }

  // try_end speaks the verdict if nothing keeps the run going; true: the run is over.
  [[nodiscard]] bool try_end() noexcept {
    if (!may_end()) return false;
    perturb(perturb_point::verdict);
    std::uint64_t nobody = 0;
    // acquire, also where another scheduler was first: pairs with discharge and operation_finished,
    // whose release sequence every exchange of the word continues. Without it the end of the run
    // would not come after what the actors did.
    return word_.compare_exchange_strong(nobody, closed, acquire, acquire) || nobody == closed;
  }

  // close refuses spawns from outside from here on, whatever is still counted.
  void close() noexcept {
    // relaxed: whoever still uses a runtime that is being destroyed has a race of its own.
    word_.fetch_or(closed, relaxed);
  }
  // reopen: after a run, spawns from outside are admitted for the next one.
  void reopen() noexcept {
    word_.fetch_and(~closed, release);  // pairs with admit: it sees a core that is at rest
  }
  // reset is for a core that nobody uses.
  void reset() noexcept { word_.store(0, relaxed); }  // relaxed: as said

  [[nodiscard]] std::size_t actors() const noexcept {
    return actors_of(word_.load(relaxed));  // relaxed: a count
  }
  [[nodiscard]] std::size_t operations() const noexcept {
    return (word_.load(relaxed) & ~closed) / operation;  // relaxed: a count
  }

  // share is a scheduler's part in the count (invariant 4).
  class share {
   public:
    // LIMIT: a share takes and keeps spare counts only while less than half of actors_max is
    // counted, and none where those of all schedulers could be over a sixteenth of it: so a spawn
    // is refused early only where next to nothing is left.
    share(run_life& life, std::size_t actors_max, unsigned schedulers) noexcept
        : life_(life),
          actors_max_(actors_max),
          shared_max_(actors_max / 32 > std::size_t{2} * batch * schedulers ? actors_max / 2 : 0) {}

    // admit counts a new actor, which an actor of this scheduler spawns.
    [[nodiscard]] admission admit() noexcept {
      const std::uint32_t spare = spare_.load(relaxed);  // relaxed: own
      if (spare != 0) {
        spare_.store(spare - 1, relaxed);  // relaxed: read as a statistic
        return admission::admitted;
      }
      if (shared_max_ == 0) return life_.admit(true, actors_max_);
      // relaxed: as admit from inside.
      if (actors_of(life_.word_.fetch_add(batch, relaxed)) + batch <= shared_max_) {
        spare_.store(batch - 1, relaxed);  // relaxed: as above
        return admission::admitted;
      }
      life_.word_.fetch_sub(batch, relaxed);  // relaxed: as above
      return life_.admit(true, actors_max_);
    }

    // discharge counts out an actor that has ended on this scheduler.
    void discharge() noexcept {
      const std::uint32_t spare = spare_.load(relaxed);  // relaxed: own
      // relaxed: a limit that need not be exact.
      if (spare < 2 * batch && actors_of(life_.word_.load(relaxed)) <= shared_max_) {
        spare_.store(spare + 1, relaxed);  // relaxed: as in admit; give_back releases
        return;
      }
      life_.discharge();
      if (spare > batch) give_back(spare - batch);
    }

    // give_back takes the spare counts out of the word, for a scheduler that has no work.
    void give_back() noexcept {
      const std::uint32_t spare = spare_.load(relaxed);  // relaxed: own
      if (spare != 0) give_back(spare);
    }

    [[nodiscard]] std::size_t spare() const noexcept {
      return spare_.load(relaxed);  // relaxed: a statistic
    }

   private:
    static constexpr std::uint32_t batch = few_in_models(32, 2);

    void give_back(std::uint32_t count) noexcept {
      perturb(perturb_point::verdict);
      spare_.store(spare_.load(relaxed) - count, relaxed);  // relaxed: as in admit
      // release: pairs with try_end, as discharge, for all who were discharged into the share.
      life_.word_.fetch_sub(count, release);
    }

    run_life& life_;
    const std::size_t actors_max_;
    const std::size_t shared_max_;
    atomic<std::uint32_t> spare_{0};  // written by the scheduler, read as a statistic
  };

  // pin keeps the run from ending while a foreign thread makes one of its actors runnable.
  class pin {
   public:
    explicit pin(run_life& life) noexcept : pins_(life.pins_) {
      // relaxed: sequenced before the caller's release exchange on the slot, through which the end
      // of the run comes to see it (invariant 3).
      pins_.fetch_add(1, relaxed);
    }
    ~pin() {
      perturb(perturb_point::verdict);
      pins_.fetch_sub(1, release);  // pairs with is_pinned: we are through
    }
    pin(const pin&) = delete;
    pin& operator=(const pin&) = delete;

   private:
    atomic<std::uint64_t>& pins_;
  };
  [[nodiscard]] bool is_pinned() const noexcept {
    return pins_.load(acquire) != 0;  // pairs with ~pin
  }

 private:
  // Actors in the low half, operations above, the verdict on top.
  static constexpr std::uint64_t actor = 1;
  static constexpr std::uint64_t operation = std::uint64_t{1} << 32;
  static constexpr std::uint64_t closed = std::uint64_t{1} << 63;
  static constexpr std::size_t actors_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word);
  }

  alignas(64) atomic<std::uint64_t> word_{0};
  // Never reset: a late pin of a former life may still be on it.
  alignas(64) atomic<std::uint64_t> pins_{0};
};

}  // namespace smarm::detail
