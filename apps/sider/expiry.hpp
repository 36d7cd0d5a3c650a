// Expiry is the actor that tells the shards when to erase the keys whose time has come.
//
// A key that is asked for after its deadline is gone already, by whoever asks (store.hpp). What
// nobody asks for would stay, so the actor looks at the timetable, in which each shard keeps when
// its next key is due, and sends a sweep to those where one is. A sweep erases sweep_keys_max keys
// at most and so holds a shard's queue up for less than a millisecond; a shard that has more due
// is sent the next one sweep_pause later. With no deadline anywhere the actor sleeps until there
// is one: an idle server has no tick.
//
// Invariants
//   1. A shard has one sweep at most. It is answered exactly once, by the shard or by being
//      abandoned with it (shard_inbox.hpp), and the answer rings.
//   2. Who brings a deadline forward rings after it has said so. A bell that was rung stays rung
//      until the actor takes the ring back (begin_round), which it does before it looks. So between
//      its look and its sleep no deadline is missed.
// All that lasts stands in the timetable, which is the server's. An actor that crashes or is killed
// costs nothing: the next one takes back the ring that is perhaps its predecessor's, and looks.
// Why no message for each deadline: a shard could send millions before the actor gets to run.
//
// Threads: note by the shard's actor; begin_round, sweep_due and wait by the expiry's; the rest by
// any actor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include <smarm/deadline.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/start.hpp>

#include "base/atomic.hpp"
#include "key_table.hpp"
#include "shard_inbox.hpp"

namespace sider {

// Half a million keys a second for each shard, in about a fifth of its time.
inline constexpr std::size_t sweep_keys_max = 1000;
inline constexpr auto sweep_pause = std::chrono::milliseconds(2);

class expiry_timetable {
 public:
  explicit expiry_timetable(std::size_t shard_count);
  expiry_timetable(const expiry_timetable&) = delete;
  expiry_timetable& operator=(const expiry_timetable&) = delete;

  // note keeps when the shard's next key is due, in Unix milliseconds; `never`: it has none. Cheap
  // where that is what stands there. Never parks; no stop point.
  void note(std::size_t shard, std::int64_t due_ms) noexcept;

  // panic has the actor that serves now, or the next one, crash. Never parks.
  void panic() noexcept;

  // begin_round takes the ring back: who rings from now on ends the next wait. Throws where a panic
  // is due.
  void begin_round();

  // sweep_due calls send(shard, task) for each shard that has keys due and no sweep yet, and
  // returns when to look again, whatever else is said meanwhile. Parks and is a stop point where
  // `send` is.
  [[nodiscard]] smarm::deadline sweep_due(
      const std::function<void(std::size_t, std::shared_ptr<shard_task>)>& send);

  // wait returns once somebody rings, or at the deadline. Parks; a stop point.
  void wait(smarm::deadline until) { static_cast<void>(bell_.try_acquire_until(until)); }

 private:
  class sweep;
  // A line of its own: a shard looks at its row after each task.
  struct alignas(64) row {
    // Written by the shard's actor, read by the expiry's.
    smarm::detail::atomic<std::int64_t> due_ms{never};
    // Set by the expiry's actor, cleared by the answer to the sweep.
    smarm::detail::atomic<bool> is_asked{false};
    std::shared_ptr<sweep> task;                         // constant
    smarm::deadline rest = smarm::deadline::from_ns(0);  // the expiry's: no sweep before
  };

  void ring() noexcept;
  void answer(std::size_t shard) noexcept;

  std::deque<row> rows_;  // one for each shard
  smarm::semaphore bell_{0};
  smarm::detail::atomic<bool> is_rung_{false};
  smarm::detail::atomic<bool> is_panic_due_{false};
};

// serve_expiry is the body of the expiry's actor. Parks.
void serve_expiry(smarm::starting& me, expiry_timetable& timetable,
                  std::deque<shard_inbox>& shards);

}  // namespace sider
