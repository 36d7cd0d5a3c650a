// slot_state is the one word that says what an actor is doing and who may touch it, and beside it
// which actor of the slot was asked to stop.
//
//   bits 63..36 generation   which actor of the slot this is; 0 is nobody's
//   bits 35..6  wait epoch   which wait of that actor is the open one
//   bits 5..3   flags        done; shielded from stop; (stop requested: in copies)
//   bits 2..0   state        run_state
//
//               publish_queued        try_claim          set_done, reclaim
//     vacant ------------------> queued -------> running -----------------> vacant, generation + 1
//                                 ^  ^            |   ^ |
//                     yield_return|  |            |   | | unpark (this epoch)
//                                 +--|------------+   | v
//                                 |  |            |  notified
//       unpark / stop: epoch + 1  |  | park_return|   |
//                                 |  +------------|---+ park_return: a wake came first
//                                 |               v
//                                 +------------ parked
//
// Invariants
//   1. Only the functions below write the word, and each asserts the state it starts from.
//   2. An actor stands in a run queue exactly while its state is queued: whoever makes it queued
//      enqueues it, once.
//   3. A wait is (generation, epoch). Whoever ends it (a wake, a stop, a wake that came before the
//      park) moves the epoch on, so every other copy of its waker is stale from then on.
//   4. A generation is used once. When they are used up the slot is retired, so a pid is unique.
//   5. From set_done on nobody finds the actor, though its result's destructor may still run, and
//      even park, on its stack: it is shielded then.
//   6. A word that is vacant, queued or notified is written by one only: whoever took the actor
//   from
//      a queue, or runs it. Others write it where it is running (unpark: notified) or parked
//      (unpark, request_stop: queued). So claiming, yielding and taking a wake are plain stores.
//   7. stopped_ only grows, so a late stop of an actor that has ended cannot undo one of the next.
//   8. No lost stop: request_stop writes stopped_ and then reads the word, park_return writes the
//      word and then reads stopped_, all four in one order (seq_cst): one of the two sees the
//      other, and if both do, the exchange on the word lets one of them enqueue.
// Threads: the state's owner calls publish_queued, try_claim, yield_return, park_return, set_done,
// reclaim, begin_wait and the shield; anybody calls unpark, request_stop and reads the status.
//
// Why one word: every race between park, wake, exit and reuse is then one compare-exchange on one
// location, which gives these events a single order for all threads. Why the stop is not in it: it
// is the one thing that may come to an actor in any state, and with it in the word each claim and
// each yield had to be an exchange.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/perturb.hpp"
#include "sched/slot_word.hpp"

namespace smarm::detail {

class slot_state {
 public:
  // What a transition leaves the caller to do.
  enum class unparked : std::uint8_t {
    must_enqueue,  // it was parked and is queued now: the caller enqueues it
    noted,         // it is still on its stack and will see the wake instead of parking
    stale,         // that wait is over; nothing happened
  };
  enum class park_end : std::uint8_t {
    parked,        // it waits; its stack may run elsewhere at once
    must_enqueue,  // a wake or a stop came first; it is queued now: the caller enqueues it
  };
  enum class stop_result : std::uint8_t { no_such_actor, requested, must_enqueue };

  // status: a snapshot for cold paths and assertions. Any thread.
  // acquire: pairs with publish_queued, so that who finds the generation alive sees its fields.
  [[nodiscard]] slot_word status() const noexcept { return with_stop(word_.load(acquire)); }

  // is_open: the wait has not ended yet. A hint, but for its acquire, which is that of status.
  [[nodiscard]] bool is_open(std::uint64_t ticket) const noexcept {
    return slot_word(word_.load(acquire)).ticket() == ticket;
  }

  // is_live tells whether the actor of that generation lives; total over forged generations.
  [[nodiscard]] bool is_live(std::uint32_t generation) const noexcept {
    return status().is_live_as(generation);
  }

  // is_live_since: as is_live; true: the exit will see what the caller stored (seq_cst) before.
  [[nodiscard]] bool is_live_since(std::uint32_t generation) const noexcept {
    // seq_cst: pairs with set_done, see sched/exit_hook.hpp
    return slot_word(word_.load(seq_cst)).is_live_as(generation);
  }

  // publish_queued brings a vacant slot's next actor to life. Its fields have been written.
  void publish_queued() noexcept;
  // try_claim takes a queued actor for running it.
  void try_claim() noexcept;
  // yield_return puts a running actor, whose context has been saved, back to queued.
  void yield_return() noexcept;
  // park_return parks a running actor whose context has been saved, unless it was woken or, being
  // unshielded, asked to stop meanwhile.
  [[nodiscard]] park_end park_return() noexcept;
  // set_done hides a running actor whose function has ended from everybody, and shields it.
  void set_done() noexcept;
  // reclaim makes the slot of a done actor, still running, vacant for the next generation; false:
  // generations are used up, retire it.
  [[nodiscard]] bool reclaim() noexcept;

  // begin_wait returns the ticket of a new wait. `opened` says that this actor has opened the
  // present epoch before without its wait having been ended by a wake.
  [[nodiscard]] std::uint64_t begin_wait(bool opened) noexcept;
  // consume_notification takes a wake that has come before the park; false: none has.
  [[nodiscard]] bool consume_notification() noexcept;
  // peek is the owner's own look: is a stop pending, has a wake come.
  [[nodiscard]] slot_word peek() const noexcept {
    return with_stop(word_.load(relaxed));  // relaxed: own word; park_return decides for good
  }
  // stop_is_pending: the owner's look whether it has to end: asked to stop and unshielded.
  [[nodiscard]] bool stop_is_pending() const noexcept {
    const slot_word now(word_.load(relaxed));  // relaxed: as peek
    return is_stopped(now.generation()) && !now.is_shielded();
  }
  void set_shield() noexcept {
    perturb(perturb_point::shield);
    // relaxed: request_stop's exchange on the same word sees the shield or is seen by it, and
    // looks only at an actor that has parked since.
    word_.fetch_or(slot_word::shield_flag, relaxed);
  }
  void clear_shield() noexcept {
    perturb(perturb_point::shield);
    word_.fetch_and(~slot_word::shield_flag, relaxed);  // relaxed: as in set_shield
  }

  // unpark ends the wait `ticket`. Any thread.
  [[nodiscard]] unparked unpark(std::uint64_t ticket) noexcept;
  // request_stop sets the sticky stop of that generation and ends its wait if it is parked
  // unshielded. Any thread.
  [[nodiscard]] stop_result request_stop(std::uint32_t generation) noexcept;

 private:
  [[nodiscard]] bool is_stopped(std::uint32_t generation) const noexcept {
    // relaxed: a stop that comes now is seen at the next look; one that has woken the actor was
    // published by the word (request_stop), which it has read.
    return stopped_.load(relaxed) == generation;
  }
  [[nodiscard]] slot_word with_stop(std::uint64_t bits) const noexcept {
    const slot_word now(bits);
    return is_stopped(now.generation()) ? now.with_stop() : now;
  }
  // set writes the word where nobody else does (invariant 6). release: passes on what
  // publish_queued has published to whoever finds the actor alive, as an exchange would.
  void set(slot_word next) noexcept { word_.store(next.bits(), release); }

  atomic<std::uint64_t> word_{slot_word::make(1, run_state::vacant).bits()};
  atomic<std::uint32_t> stopped_{0};  // the latest generation that was asked to stop
};

inline void slot_state::publish_queued() noexcept {
  perturb(perturb_point::publish);
  const slot_word old(word_.load(relaxed));  // relaxed: vacant, so nobody else writes it
  SMARM_ASSERT(old.state() == run_state::vacant, "only a vacant slot is published", old.bits());
  // release: publishes the fields of the new actor to whoever finds it alive (status, unpark,
  // request_stop) or claims it. Without it they read the fields of the actor before.
  word_.store(slot_word::make(old.generation(), run_state::queued).bits(), release);
}

inline void slot_state::try_claim() noexcept {
  perturb(perturb_point::claim);
  // relaxed: whoever pops an actor comes after whoever pushed it, by the queue's or run-next's own
  // orders, and so after what made the stack or closure resumable and what the waker wrote.
  const slot_word old(word_.load(relaxed));
  SMARM_ASSERT(old.state() == run_state::queued, "only a queued actor is claimed", old.bits());
  set(old.with_state(run_state::running));
}

inline void slot_state::yield_return() noexcept {
  // relaxed: own word. A wake that is noted between this and the store is for a wait that the actor
  // has left, and is dropped as one that was noted before.
  const slot_word old(word_.load(relaxed));
  SMARM_ASSERT(old.state() == run_state::running || old.state() == run_state::notified,
               "only a running actor yields", old.bits());
  perturb(perturb_point::yield);
  set(old.with_state(run_state::queued));
}

[[gnu::always_inline]] inline slot_state::park_end slot_state::park_return() noexcept {
  // acquire, also where the exchange fails: pairs with unpark that has noted a wake: what the waker
  // wrote goes on to who claims.
  std::uint64_t bits = word_.load(acquire);
  slot_word parked(bits);
  do {
    const slot_word old(bits);
    if (old.state() == run_state::notified) {
      set(old.next_epoch().with_state(run_state::queued));
      return park_end::must_enqueue;
    }
    SMARM_ASSERT(old.state() == run_state::running, "only a running actor parks", old.bits());
    parked = old.with_state(run_state::parked);
    perturb(perturb_point::park);
    // release: publishes the saved context; pairs with unpark (acquire), whose queue hands it on.
    // seq_cst: before the look at stopped_ (invariant 8).
  } while (!word_.compare_exchange_weak(bits, parked.bits(), seq_cst, acquire));
  // From here on the actor may run elsewhere, end, and leave its slot to another.
  // seq_cst: invariant 8.
  if (stopped_.load(seq_cst) != parked.generation() || parked.is_shielded()) [[likely]]
    return park_end::parked;
  bits = parked.bits();
  const slot_word next = parked.next_epoch().with_state(run_state::queued);
  // relaxed, both: what was saved goes with the queue; on failure somebody else has ended the wait.
  return word_.compare_exchange_strong(bits, next.bits(), relaxed, relaxed) ? park_end::must_enqueue
                                                                            : park_end::parked;
}

inline void slot_state::set_done() noexcept {
  perturb(perturb_point::end);
  // seq_cst: pairs with is_live_since, see sched/exit_hook.hpp. What the exit does goes through the
  // joiner's cell; request_stop's exchange sees this or comes before it.
  const slot_word old(word_.fetch_or(slot_word::done_flag | slot_word::shield_flag, seq_cst));
  SMARM_ASSERT(old.state() == run_state::running || old.state() == run_state::notified,
               "only a running actor ends", old.bits());
}

inline bool slot_state::reclaim() noexcept {
  const slot_word old(word_.load(relaxed));  // relaxed: own word
  SMARM_ASSERT((old.bits() & slot_word::done_flag) != 0, "only a done actor is reclaimed",
               old.bits());
  const bool used_up = old.generation() == slot_word::generation_max;
  const std::uint32_t next = used_up ? 0 : old.generation() + 1;
  perturb(perturb_point::end);
  // A store and no exchange: the one write that may still race is a late waker's running ->
  // notified, which is then lost as it should be, or fails on the new generation.
  // release: the next publish may be another thread's; its free list orders the rest.
  word_.store(slot_word::make(next, run_state::vacant).bits(), release);
  return !used_up;
}

inline std::uint64_t slot_state::begin_wait(bool opened) noexcept {
  std::uint64_t bits = word_.load(relaxed);  // relaxed: own epoch; only stop and wakes move it
  if (!opened) return slot_word(bits).ticket();
  for (;;) {
    const slot_word old(bits);
    const slot_word next = old.next_epoch().with_state(run_state::running);
    perturb(perturb_point::begin_wait);
    // relaxed: the ticket is published by the lock or exchange that publishes the registration.
    if (word_.compare_exchange_weak(bits, next.bits(), relaxed, relaxed)) return next.ticket();
  }
}

inline bool slot_state::consume_notification() noexcept {
  // acquire: pairs with unpark's release: what the waker wrote is visible after the wait.
  const slot_word old(word_.load(acquire));
  if (old.state() != run_state::notified) return false;
  perturb(perturb_point::notified);
  set(old.next_epoch().with_state(run_state::running));
  return true;
}

inline slot_state::unparked slot_state::unpark(std::uint64_t ticket) noexcept {
  std::uint64_t bits = word_.load(relaxed);  // relaxed: the exchange below validates it
  for (;;) {
    const slot_word old(bits);
    if (old.ticket() != ticket) return unparked::stale;
    const bool parked = old.state() == run_state::parked;
    if (!parked && old.state() != run_state::running) return unparked::stale;
    const slot_word next = parked ? old.next_epoch().with_state(run_state::queued)
                                  : old.with_state(run_state::notified);
    perturb(perturb_point::unpark);
    // release: what the waker wrote before; pairs with consume_notification and park_return.
    // acquire: pairs with park_return, so that the enqueuer may read the saved context.
    if (word_.compare_exchange_weak(bits, next.bits(), acq_rel, relaxed)) {
      return parked ? unparked::must_enqueue : unparked::noted;
    }
  }
}

inline slot_state::stop_result slot_state::request_stop(std::uint32_t generation) noexcept {
  if (!is_live(generation)) return stop_result::no_such_actor;
  std::uint32_t latest = stopped_.load(relaxed);  // relaxed: the exchange below validates it
  do {
    if (latest > generation) return stop_result::no_such_actor;
    perturb(perturb_point::stop);
    // seq_cst: invariant 8. Also where it was asked before: whoever asks again may rely on it.
  } while (!stopped_.compare_exchange_weak(latest, generation, seq_cst, relaxed));
  std::uint64_t bits = word_.load(seq_cst);  // seq_cst: invariant 8
  for (;;) {
    const slot_word old(bits);
    if (!old.is_live_as(generation) || old.state() != run_state::parked || old.is_shielded()) {
      return stop_result::requested;
    }
    perturb(perturb_point::stop);
    // relaxed: what was read has been acquired, and the queue passes on what the stopper wrote.
    // acquire on failure: pairs with park_return, so that the enqueuer may read the saved context.
    if (word_.compare_exchange_weak(bits, old.next_epoch().with_state(run_state::queued).bits(),
                                    relaxed, acquire)) {
      return stop_result::must_enqueue;
    }
  }
}

}  // namespace smarm::detail
