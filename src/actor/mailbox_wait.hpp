// mailbox_wait is what an actor does where its mailbox has nothing for it: inline, so that a
// server's loop has it without a call, which behind the switch would be a mispredicted return
// (sched/scheduler.hpp).
//
// Threads: the owner of the box.
#pragma once

#include <utility>

#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/reply_cell.hpp"
#include "base/assert.hpp"
#include "sched/wait_reason.hpp"
#include "sync/wait_list.hpp"

namespace smarm::detail {

inline void actor_box::keep_handed() noexcept {
  if (envelope* const message = std::exchange(handed, nullptr)) kept.push_back(*message);
}

inline void actor_box::note_answered(reply_cell& cell) noexcept {
  cell.chain_before(answered);
  answered = &cell;
}

// Waits for more than is kept; false: the deadline has passed.
[[gnu::always_inline]] inline bool actor_box::await_more(deadline until) {
  reply_cell* const done = std::exchange(answered, nullptr);
  bool have_more = false;
  waker wait;
  {
    const raw_guard guard(home->lock);
    for (reply_cell* cell = done; cell != nullptr; cell = cell->next_answered()) {
      cell->take_off_locked();
    }
    have_more = !arrived.empty();
    if (have_more) {
      kept.append_all(arrived);
    } else if (!until.has_passed()) {
      wait = begin_wait();
      waiting = wait;
    }
  }
  reply_cell::drop_answered(done);
  if (have_more) return true;
  if (!wait) return false;
  const auto withdraw = [this] {
    const raw_guard guard(home->lock);
    waiting = {};
    keep_handed();
  };
  if (park_or(wait, wait_reason::mailbox, until, withdraw) == wait_outcome::timed_out) {
    withdraw();
  } else {
    SMARM_ASSERT(handed != nullptr, "only a message wakes who waits for one", who.index);
    keep_handed();
  }
  // The park gave way; where a wake forestalled it, the sender was on another scheduler just then.
  turns = 0;
  return true;
}

[[gnu::always_inline]] inline full_envelope actor_box::take_first(deadline until) {
  while (kept.empty()) {
    if (!await_more(until)) return nullptr;
  }
  taken.store(taken.load(relaxed) + 1, relaxed);  // relaxed: as in take
  return kept.take(nullptr);
}

inline void actor_box::take_turn() {
  stop_point();
  if (++turns == 0) yield();
}

}  // namespace smarm::detail
