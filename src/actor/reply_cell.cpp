// The reply cell's transitions; the protocol is in the header.
#include "actor/reply_cell.hpp"

#include <utility>

#include "base/raw_mutex.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/wait.hpp"
#include "sync/wait_list.hpp"

namespace smarm::detail {

reply_cell* reply_cell::make(const call_layout& layout, const message_type* request) {
  auto* const memory = static_cast<std::byte*>(
      is_pooled(layout) ? pool_allocate(layout.size)
                        : ::operator new(layout.size, std::align_val_t(layout.align)));
  if (request != nullptr) ::new (memory) envelope{nullptr, request};
  // The block is found from the cell, which the analyzer does not see.
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks)
  return ::new (memory + layout.front) reply_cell(layout);
}

void reply_cell::operator delete(reply_cell* gone, std::destroying_delete_t) noexcept {
  const call_layout& layout = gone->layout_;
  std::byte* const memory = reinterpret_cast<std::byte*>(gone) - layout.front;
  gone->~reply_cell();
  if (is_pooled(layout)) {
    pool_free(memory, layout.size);
  } else {
    ::operator delete(static_cast<void*>(memory), layout.size, std::align_val_t(layout.align));
  }
}

void reply_cell::give_back() noexcept {
  // Only the server chains it, and who gives back the envelope of one that is chained is the
  // server.
  if (is_chained_) {
    is_emptied_ = true;
  } else {
    drop(1);
  }
}

void reply_cell::hang_on(slot& server, std::uint32_t generation) noexcept {
  server_ = &server;
  generation_ = generation;
  exit_hook_list::link(server, *this);
}

void reply_cell::take_off() noexcept {
  if (server_ == nullptr) return;
  {
    const raw_guard guard(server_->lock);
    // Not live: the exit has taken the list, or will, and calls the hook.
    if (!server_->state.is_live(generation_) || !exit_hook_list::unlink(*server_, *this)) return;
  }
  drop_reference();  // never the last, since who asks holds one; the analyzer cannot know that
}

void reply_cell::take_off_locked() noexcept {
  // False where a caller that gave up was faster.
  was_on_list_ = exit_hook_list::unlink(*server_, *this);
}

void reply_cell::drop_answered(reply_cell* first) noexcept {
  while (first != nullptr) {
    reply_cell* const gone = std::exchange(first, first->next_answered_);
    gone->is_chained_ = false;  // an envelope that is not given back yet keeps the cell
    gone->drop(1U + (gone->was_on_list_ ? 1U : 0U) + (gone->is_emptied_ ? 1U : 0U));
  }
}

bool reply_cell::settle(state outcome) noexcept {
  state now = state_.load(relaxed);  // relaxed: the exchange validates it
  while (now == state::empty || now == state::waiting) {
    // release: pairs with look() and drop_caller(): the caller sees the value or the reason.
    // acquire: pairs with wait(): waker_ is there; without it a stale one would be woken.
    if (state_.compare_exchange_weak(now, outcome, acq_rel, relaxed)) {
      if (now == state::waiting) waker_.load().wake();
      return true;
    }
  }
  return false;
}

bool reply_cell::send() noexcept {
  if (settle(state::replied)) return true;
  layout_.destroy(place());
  return false;
}

void reply_cell::on_exit(pid, const exit_reason& why) noexcept {
  // relaxed: once settled, it stays so; a reason that is written in vain is read by nobody.
  if (const state now = state_.load(relaxed); now != state::empty && now != state::waiting) return;
  reason_ = why;
  (void)settle(state::died);
}

bool reply_cell::is_awaited() const noexcept {
  const state now = state_.load(relaxed);  // relaxed: a hint, out of date at once
  return now == state::empty || now == state::waiting;
}

reply_status reply_cell::look() const noexcept {
  // acquire: pairs with settle: without it the value or the reason might not be there yet.
  switch (state_.load(acquire)) {
    case state::replied:
      return reply_status::replied;
    case state::died:
      return reply_status::died;
    default:
      return reply_status::pending;
  }
}

bool reply_cell::withdraw() noexcept {
  state waiting = state::waiting;
  // relaxed: nothing is published by giving up, and what has come instead, look() acquires.
  return state_.compare_exchange_strong(waiting, state::empty, relaxed, relaxed);
}

// Says who is to be woken; false: the call is settled.
bool reply_cell::enlist(const waker& wake) noexcept {
  waker_.store(wake);
  state empty = state::empty;
  // release: publishes waker_ to settle(), which would wake nobody without it. relaxed on failure:
  // look() acquires what has come.
  return state_.compare_exchange_strong(empty, state::waiting, release, relaxed);
}

reply_status reply_cell::wait(deadline until) {
  if (const reply_status now = look(); now != reply_status::pending) return now;
  const waker wake = begin_wait();
  if (!enlist(wake)) return look();
  return wait_expected(wake, until);
}

void reply_cell::expect(const waker& wait) noexcept {
  waker_.store(wait);
  state_.store(state::waiting, relaxed);  // relaxed: published with the request, by the lock
}

std::size_t reply_cell::wait_any(std::span<reply_cell* const> cells, deadline until) {
  const auto settled = [&] {
    std::size_t which = 0;
    while (which < cells.size() && cells[which]->look() == reply_status::pending) ++which;
    return which;
  };
  if (const std::size_t which = settled(); which < cells.size()) return which;
  // One wait for all: each is left with the same waker, and only the first wake counts.
  const waker wake = begin_wait();
  std::size_t enlisted = 0;
  while (enlisted < cells.size() && cells[enlisted]->enlist(wake)) ++enlisted;
  const auto withdraw_all = [&] {
    for (reply_cell* const cell : cells.first(enlisted)) (void)cell->withdraw();
  };
  if (enlisted == cells.size()) (void)park_or(wake, wait_reason::reply, until, withdraw_all);
  withdraw_all();
  return settled();
}

void reply_cell::drop_caller() noexcept {
  reply_status last = look();
  if (last == reply_status::pending) {
    take_off();
    state empty = state::empty;
    // relaxed: nothing is published by going (drop_reference is the last word), and a value that
    // came just now, look() acquires.
    if (!state_.compare_exchange_strong(empty, state::abandoned, relaxed, relaxed)) last = look();
  }
  if (last == reply_status::replied) layout_.destroy(place());
  drop(1);
}

// ---- the templates' face ---------------------------------------------------------------------

reply_cell* reply_create(const call_layout& layout) { return reply_cell::make(layout); }

reply_cell* call_create(const call_layout& layout, const message_type& request) {
  return reply_cell::make(layout, &request);
}

void call_give_back(envelope& empty) noexcept { reply_cell::cell_behind(empty).give_back(); }

bool reply_is_awaited(const reply_cell& cell) noexcept { return cell.is_awaited(); }

void reply_drop_answerer(reply_cell& cell) noexcept { cell.drop_answerer(); }

reply_status reply_wait(reply_cell& cell, deadline until) {
  stop_point();
  return cell.wait(until);
}

std::size_t reply_wait_any(std::span<reply_cell* const> cells, deadline until) {
  stop_point();
  return reply_cell::wait_any(cells, until);
}

reply_status reply_look(const reply_cell& cell) noexcept { return cell.look(); }

const exit_reason& reply_reason(const reply_cell& cell) noexcept { return cell.reason(); }

void reply_drop_caller(reply_cell& cell) noexcept { cell.drop_caller(); }

}  // namespace smarm::detail
