// reply_cell is where the answer to a call goes: never into a mailbox, so a late one vanishes.
//
// It is an exit hook of the server as well, which is how the caller learns of a death, whether the
// request waits in the mailbox, is being handled, or was handed on to be answered by another.
//
// The protocol: reply against deadline against death
//   state_ goes empty -> waiting -> empty ... by the caller, and once, from either, to
//     replied    by the answerer, when the value lies in its place;
//     died       by the server's exit, when reason_ has been written;
//     abandoned  by the caller, when it goes: the deadline, or a stop.
//   Each of the three is one compare-exchange, so exactly one wins. A caller that gives up takes
//   waiting back to empty; where that fails something has come, and it takes that. An answerer that
//   loses destroys its value; an exit that loses has written a reason that nobody reads.
//
// Invariants
//   1. waker_ is written by the caller before `waiting`, and read by the answerer or the exit after
//      its exchange found `waiting`; from then on the caller does not register again. A caller that
//      only posts to wait has the cell born `waiting`, before the request can be seen.
//   2. The value is made by the one answerer and is the caller's from `replied` on, which destroys
//      it when it goes. reason_ is written by the exit alone, once, and read after `died`.
//   3. References: the caller's, the answerer's, and the list's while the cell hangs on the server
//      (sched/exit_hook.hpp). It is hung on in the step that puts the request into the mailbox, and
//      taken off by the answerer or by a caller that gives up: the list knows, so both may ask.
//      Whoever takes it off drops the list's reference. And the envelope's, where it lies in the
//      cell's block.
//   4. Taking it off is housekeeping alone: one that is settled and still hangs there is passed
//      over by the exit. So a server that answers itself leaves it to the next time that it holds
//      its own lock, to look for messages (actor_box::answered).
// Threads: the caller's half and the answerer's by one at a time each; on_exit as exit_hook says.
// Why the answerer takes it off, and not the caller: it is the server nearly always, whose lock is
// then in its own cache, and the woken caller would meet that lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/reply_core.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

#include "base/atomic.hpp"
#include "fiber/block_pool.hpp"
#include "sched/exit_hook.hpp"
#include "sched/slot.hpp"
#include "sync/wait_list.hpp"
#include "sync/waker_cell.hpp"

namespace smarm::detail {

class reply_cell final : public exit_hook {
 public:
  // make gives a cell with the references of caller, answerer and list; where its block begins with
  // the envelope of its `request`, with that one's too. Throws std::bad_alloc.
  [[nodiscard]] static reply_cell* make(const call_layout& layout,
                                        const message_type* request = nullptr);
  // cell_behind is the cell in the block of that envelope; give_back drops its reference.
  [[nodiscard]] static reply_cell& cell_behind(envelope& request) noexcept {
    return *reinterpret_cast<reply_cell*>(reinterpret_cast<std::byte*>(&request) +
                                          request_size(request.type->size));
  }
  void give_back() noexcept;
  // The cell knows its size, which `delete` does not.
  static void operator delete(reply_cell* gone, std::destroying_delete_t) noexcept;

  [[nodiscard]] void* place() noexcept {
    return reinterpret_cast<std::byte*>(this) + layout_.place;
  }

  // hang_on ties the cell to the server's end. Once; the slot's lock held, and the server, which
  // has an extension already, seen to live under it: so its exit finds the hook.
  void hang_on(slot& server, std::uint32_t generation) noexcept;

  // send publishes the value; false: nobody waits any more, and it was destroyed.
  [[nodiscard]] bool send() noexcept;
  [[nodiscard]] bool is_awaited() const noexcept;
  // drop_answerer: of a cell that was never hung on, the list's half goes too.
  void drop_answerer() noexcept { drop(server_ == nullptr ? 2 : 1); }

  // Taking it off. take_off may be asked by either side, at any time. take_off_locked is for the
  // server itself, which holds its lock and keeps the cells that it has answered in a chain; then
  // drop_answered drops the answerer's half of each, and what the list had.
  [[nodiscard]] bool hangs_on(const slot& server, std::uint32_t generation) const noexcept {
    return server_ == &server && generation_ == generation;
  }
  void take_off() noexcept;
  void take_off_locked() noexcept;
  void chain_before(reply_cell* answered) noexcept {
    next_answered_ = answered;
    is_chained_ = true;
  }
  [[nodiscard]] reply_cell* next_answered() const noexcept { return next_answered_; }
  static void drop_answered(reply_cell* first) noexcept;

  [[nodiscard]] reply_status look() const noexcept;
  [[nodiscard]] reply_status wait(deadline until);
  // expect registers the caller's wait with the cell when it is hung on, which saves wait_expected
  // the exchange of a wait that comes later. The slot's lock held.
  void expect(const waker& wait) noexcept;
  [[nodiscard]] inline reply_status wait_expected(const waker& wait, deadline until);
  // wait_any waits for several cells of one caller; the index of one that is settled, or their
  // number: none is.
  [[nodiscard]] static std::size_t wait_any(std::span<reply_cell* const> cells, deadline until);
  [[nodiscard]] const exit_reason& reason() const noexcept { return reason_; }
  void drop_caller() noexcept;

  void on_exit(pid who, const exit_reason& why) noexcept override;

 private:
  enum class state : std::uint32_t { empty, waiting, replied, died, abandoned };

  // With the list's reference, which is the answerer's until the cell is hung on.
  explicit reply_cell(const call_layout& layout) noexcept
      : exit_hook(layout.front == 0 ? 3 : 4), layout_(layout) {}
  ~reply_cell() override = default;

  [[nodiscard]] static bool is_pooled(const call_layout& layout) noexcept {
    return layout.align <= pool_granule;
  }
  // drop drops so many of the references: without a virtual call, since it knows what it is.
  void drop(std::uint32_t held) noexcept {
    if (let_go(held)) delete this;
  }

  [[nodiscard]] bool settle(state outcome) noexcept;
  [[nodiscard]] bool enlist(const waker& wake) noexcept;
  [[nodiscard]] bool withdraw() noexcept;

  const call_layout& layout_;
  slot* server_ = nullptr;  // null: never hung on; written before the request can be seen
  std::uint32_t generation_ = 0;
  atomic<state> state_{state::empty};
  waker_cell waker_;    // see invariant 1
  exit_reason reason_;  // see invariant 2
  // The server's, once it has answered itself.
  reply_cell* next_answered_ = nullptr;
  bool was_on_list_ = false;
  bool is_chained_ = false;  // so drop_answered is to come
  bool is_emptied_ = false;  // the envelope was given back meanwhile: its reference goes with it
};
static_assert(sizeof(reply_cell) == reply_cell_size);

// Without a call of its own, which would be a mispredicted return (sched/scheduler.hpp).
[[gnu::always_inline]] inline reply_status reply_cell::wait_expected(const waker& wait,
                                                                     deadline until) {
  const auto outcome = park_or(wait, wait_reason::reply, until, [this] { (void)withdraw(); });
  if (outcome == wait_outcome::timed_out && withdraw()) return reply_status::pending;
  return look();
}

}  // namespace smarm::detail
