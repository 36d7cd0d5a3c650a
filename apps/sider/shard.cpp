// The loop of a shard's actor; see shard.hpp.
#include "shard.hpp"

#include <chrono>
#include <stdexcept>

#include <smarm/this_actor.hpp>

namespace sider {

std::int64_t unix_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

shard::~shard() {
  constexpr std::size_t steps_at_a_time = 4096;  // some hundreds of microseconds
  waiters.abandon();
  const smarm::stop_shield shield;
  while (!store.destroy_part(steps_at_a_time)) smarm::yield();
}

void serve_shard(smarm::starting& me, shard_inbox& inbox, expiry_timetable& timetable) {
  shard_inbox::lease lease(inbox);
  const std::size_t index = inbox.index();
  shard here{index, shard_store(static_cast<std::uint64_t>(unix_time_ms()) + index), {}, 0};
  timetable.note(index, never);  // what the one before said holds no more
  me.ready();
  while (auto letter = lease.letters().recv()) {
    here.now_ms = unix_time_ms();
    if (inbox.take_panic()) throw std::runtime_error("DEBUG PANIC");
    letter->deliver(here);
    timetable.note(index, here.store.next_expiry().value_or(never));
  }
}

}  // namespace sider
