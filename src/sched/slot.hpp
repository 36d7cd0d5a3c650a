// slot is an actor's entry in the slot table: its state word, its fiber and what hangs on it.
//
// Slots are type-stable: the table never gives their memory back, so whoever holds an old pointer
// may read the state word and finds a generation that has passed. All other fields belong to the
// scheduler that runs the actor, but for those that name a lock or are atomic.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/fiber.hpp"
#include "sched/slot_state.hpp"
#include "sched/wait_reason.hpp"

namespace smarm::detail {

class actor_extension;
class exit_hook;
class runtime_core;
class standing_timer;
struct body_header;

struct alignas(64) slot {
  slot_state state;

  // The saved context and what else a switch carries. Written by the scheduler that switches away
  // before park_return/yield_return, read by the one that has claimed the slot.
  fiber context;

  // The function to run and the cell its result goes to; null when vacant. Owner: as context.
  body_header* body = nullptr;

  // Which runtime the actor belongs to. Written before publish_queued; read by anybody who holds a
  // pid or waker, after an acquire look at the state word. It stays after the end, when it may
  // name a runtime that is gone: runtime cores are type-stable too.
  atomic<runtime_core*> owner{nullptr};

  union {
    slot* next_free = nullptr;  // while vacant: guarded by whoever holds the free list
    // While it lives: what its waits with a deadline are timed by; null before the first. Owner: as
    // context.
    standing_timer* wait_timer;
  };
  // The first hook. Written under lock (seq_cst where it is the first), read without by the exit.
  atomic<exit_hook*> hooks{nullptr};
  // What a higher layer keeps of the actor (actor_extension.hpp). Written under lock, by the exit
  // as well; the actor itself reads it without: only it and who holds the lock may look.
  atomic<actor_extension*> extension{nullptr};
  raw_mutex lock;                    // leaf; guards the hooks against add, remove and the exit
  std::uint32_t index = 0;           // constant
  std::uint32_t generation = 0;      // of the present actor; as context
  std::uint32_t stack_size = 0;      // in KiB, 0: the last resort's; as context
  std::uint32_t last_scheduler = 0;  // which scheduler ran it last; as context
  std::uint16_t shield_depth = 0;    // of stop_shields; as context
  wait_reason reason = wait_reason::none;  // why it is parked; as context
  bool wait_opened = false;      // the present epoch was given out and not ended by a wake
  bool has_started = false;      // it has a stack with a saved context
  bool migration_tried = false;  // debug builds: it was offered to another scheduler once

  // add_shield and drop_shield count the stop_shields of the running actor: the flag in the word
  // stands while there is one. By the actor itself.
  void add_shield() noexcept {
    if (shield_depth++ == 0) state.set_shield();
  }
  void drop_shield() noexcept {
    if (--shield_depth == 0) state.clear_shield();
  }
};

}  // namespace smarm::detail
