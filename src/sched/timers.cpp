// The timer wheel: linking, dealing down, firing.
#include "sched/timers.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace smarm::detail {

namespace {

// LIMIT: so many wakers are taken under the lock at once; then they are called and we look again.
constexpr std::size_t batch_max = 64;

}  // namespace

void alarm::drop_reference() noexcept {
  // acq_rel: every use by the other holders happens before the deletion by the last one.
  if (references_.fetch_sub(1, acq_rel) == 1) delete this;
}

timers::timers() noexcept : now_tick_(static_cast<std::uint64_t>(monotonic_ns()) >> tick_shift) {}

void timers::link(timer& node) noexcept {
  const auto deadline = static_cast<std::uint64_t>(std::max<std::int64_t>(node.deadline_ns_, 0));
  // A deadline in the past lies in the present bucket.
  const std::uint64_t tick = std::max(deadline >> tick_shift, now_tick_);
  const std::uint64_t difference = tick ^ now_tick_;
  const unsigned level =
      difference == 0 ? 0 : static_cast<unsigned>(std::bit_width(difference) - 1) / level_bits;
  SMARM_ASSERT(level < levels, "the timer wheel spans the clock", level, node.deadline_ns_);
  const auto bucket = static_cast<unsigned>(tick >> (level * level_bits)) % buckets;
  node.level_ = static_cast<std::uint8_t>(level);
  node.bucket_ = static_cast<std::uint8_t>(bucket);
  levels_[level].bucket[bucket].push_back(node);
  levels_[level].occupied |= std::uint64_t{1} << bucket;
}

void timers::unlink(timer& node) noexcept {
  level& of = levels_[node.level_];
  of.bucket[node.bucket_].erase(node);
  if (of.bucket[node.bucket_].empty()) of.occupied &= ~(std::uint64_t{1} << node.bucket_);
}

bool timers::add(timer& node) noexcept {
  const std::size_t count = size_.load(relaxed);  // relaxed: written under lock_
  if (count == 0) {
    // An empty wheel may jump to the present, which keeps the new timer on a low level.
    now_tick_ = static_cast<std::uint64_t>(monotonic_ns()) >> tick_shift;
  }
  link(node);
  size_.store(count + 1, relaxed);                                 // relaxed: a statistic to others
  if (node.deadline_ns_ >= earliest_.load(relaxed)) return false;  // relaxed: written under lock_
  // relaxed: readers that sleep on it order themselves by the fences of take_keeper and rearm.
  earliest_.store(node.deadline_ns_, relaxed);
  return true;
}

void timers::remove(timer& node) noexcept {
  unlink(node);
  const std::size_t count = size_.load(relaxed) - 1;  // relaxed: written under lock_
  size_.store(count, relaxed);                        // relaxed: a statistic to others
  // Otherwise earliest_ may stay too early, which costs one look for nothing and no search here.
  if (count == 0) earliest_.store(never_ns, relaxed);  // relaxed: as in add
}

bool timers::insert(timer& node) noexcept {
  const raw_guard guard(lock_);
  return add(node);
}

bool timers::cancel(timer& node) noexcept {
  const raw_guard guard(lock_);
  if (node.fired_) return false;
  remove(node);
  return true;
}

bool timers::want(standing_timer& node, const waker& wait, std::int64_t deadline_ns) noexcept {
  node.wanted_ns_.store(deadline_ns, relaxed);  // relaxed: published by the exchange
  // release: publishes wanted_ns_ to expire. acquire: pairs with expire's exchange: without it
  // armed_ns_ might be one that the timer no longer stands at, and the deadline be missed.
  const std::uint64_t before = node.wait_.exchange(wait.ticket_, acq_rel);
  const bool was_in = (before & standing_timer::out) == 0;
  // relaxed: behind the acquire. The wheel may move it on meanwhile, but to this deadline.
  if (was_in && node.armed_ns_.load(relaxed) <= deadline_ns) return false;
  const raw_guard guard(lock_);
  if (was_in) {
    // relaxed, here and below: the wheel writes it under the lock.
    if (node.wait_.load(relaxed) != wait.ticket_) return false;  // it has come already
    if (node.deadline_ns_ <= deadline_ns) return false;          // it was moved already
    remove(node);
  }
  node.deadline_ns_ = deadline_ns;
  node.armed_ns_.store(deadline_ns, relaxed);
  return add(node);
}

void timers::retire(standing_timer& node) noexcept {
  // acquire: pairs with expire's exchange, behind which the wheel touches the node no more.
  if ((node.wait_.load(acquire) & standing_timer::out) != 0) return;
  const raw_guard guard(lock_);
  if ((node.wait_.load(relaxed) & standing_timer::out) == 0) remove(node);  // relaxed: the lock
}

// The timer, which is linked nowhere, has reached what it stood at. True: it is out, and `whom` is
// to be woken, whose wait may be over; false: it stands at a later deadline now.
bool timers::expire(standing_timer& node, std::int64_t now_ns, waker& whom) noexcept {
  // acquire, also where an exchange fails: pairs with want's: wanted_ns_ is that wait's or later.
  std::uint64_t wait = node.wait_.load(acquire);
  for (;;) {
    const std::int64_t wanted = node.wanted_ns_.load(relaxed);  // relaxed: behind the acquire
    if (wanted <= now_ns) {
      whom = waker(node.target_.target_, wait);
      // release: the last touch of the node; pairs with retire.
      if (node.wait_.compare_exchange_weak(wait, wait | standing_timer::out, acq_rel, acquire)) {
        return true;
      }
    } else {
      node.deadline_ns_ = wanted;
      node.armed_ns_.store(wanted, relaxed);  // relaxed: published by the exchange
      // An exchange for itself: it fails where the owner is in another wait by now, and is seen by
      // the next want, which reads armed_ns_ behind it. release and acquire: as there.
      if (node.wait_.compare_exchange_weak(wait, wait, acq_rel, acquire)) {
        link(node);
        return false;
      }
    }
  }
}

// Deals the first bucket of the lowest occupied upper level to the levels below, if its time has
// come; false: nothing before `now_ns` is left there.
bool timers::cascade(std::int64_t now_ns) noexcept {
  const std::uint64_t target = static_cast<std::uint64_t>(now_ns) >> tick_shift;
  for (unsigned level = 1; level < levels; ++level) {
    auto& from = levels_[level];
    if (from.occupied == 0) continue;
    const auto bucket = static_cast<unsigned>(std::countr_zero(from.occupied));
    const unsigned shift = level * level_bits;
    const std::uint64_t above = (now_tick_ >> (shift + level_bits)) << (shift + level_bits);
    const std::uint64_t start = above | (std::uint64_t{bucket} << shift);
    if (start > target) return false;
    now_tick_ = start;
    from.occupied &= ~(std::uint64_t{1} << bucket);
    while (timer* node = from.bucket[bucket].pop_front()) link(*node);
    return true;
  }
  return false;
}

std::size_t timers::take_due(std::int64_t now_ns, due_timer* out, std::size_t room) noexcept {
  const std::uint64_t target = static_cast<std::uint64_t>(now_ns) >> tick_shift;
  std::size_t taken = 0;
  for (;;) {
    level& lowest = levels_[0];
    if (lowest.occupied == 0) {
      if (cascade(now_ns)) continue;
      break;
    }
    const auto bucket = static_cast<unsigned>(std::countr_zero(lowest.occupied));
    const std::uint64_t tick = (now_tick_ & ~std::uint64_t{buckets - 1}) | bucket;
    if (tick > target) break;
    now_tick_ = tick;
    timer* next = nullptr;
    for (timer* node = lowest.bucket[bucket].front(); node != nullptr; node = next) {
      if (taken == room) return taken;
      next = lowest.bucket[bucket].next(*node);
      if (node->deadline_ns_ > now_ns) continue;
      unlink(*node);
      if (node->kind_ == timer::kind::standing) {
        if (expire(static_cast<standing_timer&>(*node), now_ns, out[taken].target)) {
          out[taken++].call = nullptr;
        }
        continue;
      }
      node->fired_ = true;
      const bool is_alarm = node->kind_ == timer::kind::alarm;
      out[taken++] = {node->target_, is_alarm ? static_cast<alarm*>(node) : nullptr};
    }
    if (tick == target) break;
  }
  // Nothing armed lies before the present bucket, so the wheel may move on to it.
  if (taken < room) now_tick_ = std::max(now_tick_, target);
  return taken;
}

void timers::refresh_earliest() noexcept {
  std::int64_t earliest = never_ns;
  for (unsigned level = 0; level < levels; ++level) {
    auto& of = levels_[level];
    if (of.occupied == 0) continue;
    const auto bucket = static_cast<unsigned>(std::countr_zero(of.occupied));
    std::size_t seen = 0;
    for (timer* node = of.bucket[bucket].front(); node != nullptr;
         node = of.bucket[bucket].next(*node)) {
      earliest = std::min(earliest, node->deadline_ns_);
      if (level > 0 && ++seen == scan_max) {
        // A crowd: look again when time enters the bucket, which deals it to finer ones.
        const unsigned shift = level * level_bits;
        const std::uint64_t above = (now_tick_ >> (shift + level_bits)) << (shift + level_bits);
        const std::uint64_t start = above | (std::uint64_t{bucket} << shift);
        earliest = static_cast<std::int64_t>(start << tick_shift);
        break;
      }
    }
    break;
  }
  earliest_.store(earliest, relaxed);  // relaxed: as in insert
}

std::size_t timers::fire_due(std::int64_t now_ns) noexcept {
  std::size_t fired = 0;
  for (;;) {
    due_timer due[batch_max];
    std::size_t taken = 0;
    {
      const raw_guard guard(lock_);
      taken = take_due(now_ns, due, batch_max);
      size_.store(size_.load(relaxed) - taken, relaxed);  // relaxed: written under lock_
      refresh_earliest();
    }
    for (std::size_t i = 0; i < taken; ++i) {
      if (due[i].call == nullptr) {
        due[i].target.wake_last();
        continue;
      }
      due[i].call->on_expiry();
      due[i].call->drop_reference();
    }
    fired += taken;
    if (taken < batch_max) return fired;
  }
}

void timers::drop_alarms() noexcept {
  intrusive_list<timer> dropped;
  {
    const raw_guard guard(lock_);
    for (level& of : levels_) {
      for (intrusive_list<timer>& bucket : of.bucket) {
        timer* next = nullptr;
        for (timer* node = bucket.front(); node != nullptr; node = next) {
          next = bucket.next(*node);
          if (node->kind_ != timer::kind::alarm) continue;
          unlink(*node);
          node->fired_ = true;
          dropped.push_back(*node);
          size_.store(size_.load(relaxed) - 1, relaxed);  // relaxed: written under lock_
        }
      }
    }
    refresh_earliest();
  }
  while (timer* const node = dropped.pop_front()) {
    auto* const gone = static_cast<alarm*>(node);
    gone->on_dropped();
    gone->drop_reference();
  }
}

}  // namespace smarm::detail
