// actor_box is what this layer keeps of an actor: mailbox, links, aliases, timers to it, what it is
// called.
//
// An actor has none until somebody needs it (sched/actor_extension.hpp).
//
// Invariants
//   1. Two actors are linked when each has the other in its links. link and unlink change both
//      halves under the lock of the pair (links.cpp), so the halves agree; an exit signal of a link
//      is delivered only to who still has that half, under the receiver's lock, and takes it away.
//      So no signal comes after unlink, and none twice.
//   2. The mailbox is two queues: `arrived`, to which senders append under the lock, and `kept`,
//      which is the owner's alone and older. The owner moves all of arrived behind kept at once.
//   3. `waiting` is the waker of a receive that has found nothing, set under the lock in which it
//      saw that nothing had arrived; who appends takes it and wakes once the lock is left. That
//      message alone is `handed`: it is older than all that arrives after, and who was woken by its
//      sender takes it without the lock; who leaves the wait otherwise looks under the lock.
//   4. Nothing is appended after the exit has taken the hooks: every append looks, under the lock,
//      whether the actor lives, and the exit takes the lock after it has ceased to.
// Threads: guarded by the lock of the actor's slot, but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <smarm/detail/envelope.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/pid.hpp>

#include "actor/envelope_queue.hpp"
#include "actor/link_table.hpp"
#include "base/atomic.hpp"
#include "base/intrusive_list.hpp"
#include "base/raw_mutex.hpp"
#include "fiber/block_pool.hpp"
#include "sched/actor_extension.hpp"
#include "sched/lookup.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

class mailbox_hook;
class message_alarm;
class reply_cell;
class server_core;

// alias_entry is one address in use.
struct alias_entry {
  std::uint64_t id;
  alias_use use;
  mailbox_hook* hook;  // of the monitor it lives with, or null
  alias_entry* next = nullptr;
};

class actor_box final : public actor_extension {
 public:
  actor_box() = default;
  [[nodiscard]] static void* operator new(std::size_t size) { return pool_allocate(size); }
  static void operator delete(void* block, std::size_t size) noexcept { pool_free(block, size); }

  // append puts a message at the end and returns the waker to call when the lock has been left.
  [[nodiscard]] waker append(envelope& message) noexcept {
    ++appended;
    const waker wake = std::exchange(waiting, waker{});
    if (wake) {
      message.next = nullptr;
      handed = &message;
    } else {
      arrived.push_back(message);
    }
    return wake;
  }
  // has_room tells whether a bounded mailbox takes one more message.
  [[nodiscard]] bool has_room() const noexcept {
    // relaxed: the owner takes without the lock; one that is taken just now may not count yet
    return capacity == 0 || appended - taken.load(relaxed) < capacity;
  }
  // note_stop keeps why the actor is about to be stopped; the first reason stands, but for a kill.
  // `why` is left with what must be destroyed outside the lock.
  void note_stop(exit_reason& why) noexcept {
    if (stop_noted && !why.is_killed()) return;
    stop_why.swap(why);
    stop_noted = true;
  }
  // take_alias takes the entry out; null: it is not in use.
  [[nodiscard]] alias_entry* take_alias(std::uint64_t id) noexcept;
  [[nodiscard]] alias_entry* find_alias(std::uint64_t id) noexcept;

  // The owner's, without the lock: what receive is made of. See mailbox.cpp, and
  // mailbox_wait.hpp for those that are inline.
  [[nodiscard]] full_envelope take(std::span<const pattern> patterns, deadline until,
                                   std::size_t& which);
  // take_present is take that does not wait.
  [[nodiscard]] full_envelope take_present(std::span<const pattern> patterns, std::size_t& which);
  // take_first takes the oldest message; null: none came until the deadline.
  [[nodiscard]] inline full_envelope take_first(deadline until);
  // hibernate waits for a message and takes none, with the stack's spare pages given back; false:
  // none came until the deadline.
  [[nodiscard]] bool hibernate(deadline until);
  [[nodiscard]] std::size_t count() noexcept;
  // note_answered keeps an answered call until its cell can be taken off (actor/reply_cell.hpp).
  inline void note_answered(reply_cell& cell) noexcept;
  void flush_down(monitor_id ref) noexcept;
  // take_turn is called before each look for a message: an actor whose mailbox is never empty does
  // not park there, and gives way by this every now and then. A stop point.
  inline void take_turn();
  // keep_handed puts the message that ended a wait behind what is kept. The lock held, unless its
  // sender woke us.
  inline void keep_handed() noexcept;

  exit_reason stop_reason() noexcept override;
  void closing(pid who, const exit_reason& why) noexcept override;
  bool is_heard() noexcept override;

  slot* home = nullptr;  // constant once installed
  pid who;               // likewise

  link_table links;
  intrusive_list<message_alarm> timers;  // that send to this actor; a reference each
  envelope_queue arrived;
  waker waiting;
  envelope* handed = nullptr;  // see invariant 3
  exit_reason stop_why;
  alias_entry* aliases = nullptr;
  std::size_t appended = 0;
  std::size_t capacity = 0;
  bool traps_exits = false;
  bool stop_noted = false;
  bool has_name = false;      // the registry must forget it at the end
  bool is_in_groups = false;  // likewise the groups

  // The owner's: no lock.
  envelope_queue kept;
  atomic<std::size_t> taken{0};  // written by the owner, read by has_room
  bool matching = false;         // a predicate runs
  std::uint8_t turns = 0;        // since it gave way, or parked for a message
  std::uint64_t last_id = 0;     // of its monitors and aliases
  reply_cell* answered = nullptr;
  server_core* server = nullptr;  // what runs here, where this actor is a server

 private:
  ~actor_box() override;
  [[nodiscard]] inline bool await_more(deadline until);
  [[nodiscard]] full_envelope take_kept(std::span<const pattern> patterns, envelope*& position,
                                        std::size_t& which);
};

// self_box is the running actor's box, made if need be. Throws misuse, naming the call, on a thread
// that is no actor, and std::bad_alloc.
[[nodiscard]] actor_box& self_box(const char* call);

// make_box gives the actor a box unless it has one. Throws std::bad_alloc.
void make_box(slot& of, pid who);

enum class box_state : std::uint8_t { found, none, no_actor };

// if_box calls f(box) with the lock held, where the actor has a box.
// Inline, both, and f by reference: a closure that was just written field by field and is then
// copied in larger pieces waits for each of them.
template <class F>
[[gnu::always_inline]] inline box_state if_box(slot& of, std::uint32_t generation, const F& f) {
  const raw_guard guard(of.lock);
  if (!of.state.is_live(generation)) return box_state::no_actor;
  actor_extension* const extension = of.extension.load(relaxed);  // relaxed: the lock
  if (extension == nullptr) return box_state::none;
  f(static_cast<actor_box&>(*extension));
  return box_state::found;
}

// with_box calls f(box) with the lock held, having made a box if there was none; false: no such
// actor. Throws std::bad_alloc before f is called.
template <class F>
[[gnu::always_inline]] inline bool with_box(pid who, const F& f) {
  slot* const found = find_slot(who);
  if (found == nullptr) return false;
  // One call of f in the code, so that it is there and not behind another.
  for (;;) {
    const box_state state = if_box(*found, who.generation, f);
    if (state != box_state::none) [[likely]]
      return state == box_state::found;
    make_box(*found, who);
  }
}

}  // namespace smarm::detail
