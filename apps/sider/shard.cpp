// The loop of a shard's actor; see shard.hpp.
#include "shard.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <smarm/deadline.hpp>

namespace sider {

namespace {

// Keys erased between two tasks of a busy shard, and at a stretch by an idle one. Few enough that a
// task waits for less than a millisecond.
constexpr std::size_t expired_per_task_max = 20;
constexpr std::size_t expired_per_pause_max = 1000;

// The wall clock may be set back or forward, so no wait relies on it for longer than this.
constexpr std::int64_t expiry_wait_max_ms = 60'000;

smarm::deadline next_wake(const shard& here) {
  const auto expiry = here.store.next_expiry();
  if (!expiry) return smarm::deadline::never();
  const std::int64_t left_ms =
      std::clamp<std::int64_t>(*expiry - unix_time_ms(), 0, expiry_wait_max_ms);
  return std::chrono::milliseconds(left_ms);
}

}  // namespace

std::int64_t unix_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void serve_shard(smarm::starting& me, shard_inbox& inbox) {
  shard_inbox::lease lease(inbox);
  const std::size_t index = inbox.index();
  shard here{index, shard_store(static_cast<std::uint64_t>(unix_time_ms()) + index), {}, 0};
  me.ready();
  for (;;) {
    auto letter = lease.letters().recv_until(next_wake(here));
    here.now_ms = unix_time_ms();
    if (letter) {
      if (inbox.take_panic()) throw std::runtime_error("DEBUG PANIC");
      letter->deliver(here);
      here.store.expire_due(here.now_ms, expired_per_task_max);
    } else {
      here.store.expire_due(here.now_ms, expired_per_pause_max);
    }
  }
}

}  // namespace sider
