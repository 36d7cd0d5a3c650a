// The timetable of deadlines and the actor that reads it; see expiry.hpp.
#include "expiry.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "shard.hpp"

namespace sider {

using smarm::detail::acq_rel;
using smarm::detail::relaxed;

namespace {

// The wall clock may be set back or forward, so no wait relies on it for longer than this.
constexpr std::int64_t wait_max_ms = 60'000;

smarm::deadline moment_of(std::int64_t due_ms, std::int64_t now_ms) {
  const std::int64_t left_ms = due_ms <= now_ms ? 0 : std::min(due_ms - now_ms, wait_max_ms);
  return std::chrono::milliseconds(left_ms);
}

}  // namespace

// A sweep is used again and again, so that to erase keys takes no memory.
class expiry_timetable::sweep final : public shard_task {
 public:
  explicit sweep(expiry_timetable& whose) : whose_(whose) {}
  void run(shard& here) override {
    here.store.expire_due(here.now_ms, sweep_keys_max);
    whose_.note(here.index, here.store.next_expiry().value_or(never));
    whose_.answer(here.index);
  }
  void abandon(std::size_t index) noexcept override { whose_.answer(index); }

 private:
  expiry_timetable& whose_;
};

expiry_timetable::expiry_timetable(std::size_t shard_count) {
  for (std::size_t i = 0; i < shard_count; ++i) {
    rows_.emplace_back().task = std::make_shared<sweep>(*this);
  }
}

void expiry_timetable::note(std::size_t shard, std::int64_t due_ms) noexcept {
  row& mine = rows_[shard];
  const std::int64_t before = mine.due_ms.load(relaxed);  // its only writer is the caller
  if (due_ms == before) return;
  // Relaxed: one that comes earlier is published by the ring. One that comes later need not be: the
  // actor then looks too early.
  mine.due_ms.store(due_ms, relaxed);
  if (due_ms < before) ring();
}

void expiry_timetable::panic() noexcept {
  is_panic_due_.store(true, relaxed);  // published by the ring
  ring();
}

void expiry_timetable::begin_round() {
  // pairs with ring: all that was written before any ring up to now is seen below
  is_rung_.exchange(false, acq_rel);
  if (is_panic_due_.exchange(false, relaxed)) throw std::runtime_error("DEBUG PANIC");
}

smarm::deadline expiry_timetable::sweep_due(
    const std::function<void(std::size_t, std::shared_ptr<shard_task>)>& send) {
  const std::int64_t now_ms = unix_time_ms();
  smarm::deadline next = smarm::deadline::never();
  for (std::size_t shard = 0; shard < rows_.size(); ++shard) {
    row& each = rows_[shard];
    // Relaxed, both: what was said before the ring was taken back, begin_round has made visible;
    // what is said later rings again.
    if (each.is_asked.load(relaxed)) continue;
    const std::int64_t due_ms = each.due_ms.load(relaxed);
    if (due_ms == never) continue;
    const smarm::deadline when = std::max(moment_of(due_ms, now_ms), each.rest);
    if (due_ms > now_ms || !when.has_passed()) {
      next = std::min(next, when);
      continue;
    }
    each.rest = sweep_pause;
    each.is_asked.store(true, relaxed);  // the letter is sent later, and so is its answer
    send(shard, each.task);
  }
  return next;
}

void expiry_timetable::ring() noexcept {
  // One permit at most for each round: what is rung already will be taken back by somebody who then
  // sees all that was written before this. pairs with begin_round
  if (!is_rung_.exchange(true, acq_rel)) bell_.release();
}

void expiry_timetable::answer(std::size_t shard) noexcept {
  rows_[shard].is_asked.store(false, relaxed);  // published by the ring
  ring();
}

void serve_expiry(smarm::starting& me, expiry_timetable& timetable,
                  std::deque<shard_inbox>& shards) {
  me.ready();
  for (;;) {
    timetable.begin_round();
    smarm::deadline next = sweep_pause;
    try {
      next = timetable.sweep_due([&](std::size_t shard, std::shared_ptr<shard_task> task) {
        shards[shard].send(std::move(task));
      });
    } catch (const std::bad_alloc&) {
      // No memory for the letter: it has been abandoned, and is due again in a moment.
    }
    timetable.wait(next);
  }
}

}  // namespace sider
