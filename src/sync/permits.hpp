// permits counts what may be taken, and queues those who found nothing: a semaphore's heart, and
// what bounds a channel.
//
// Invariants
//   1. count_ >= 0: that many are free and nobody waits. count_ == contended: none is free and
//      somebody waits; only the holder of lock_ moves the word from or to this value.
//   2. A permit that comes back while somebody waits goes to the first waiter and is never free in
//      between, so nobody overtakes.
//   3. After close nobody waits. Permits may still be taken and given back.
// Threads: any.
// Why one word: taking and giving without a waiter are one exchange each, and the race between
// "the last permit went" and "one came back" is settled by one location.
#pragma once

#include <cstdint>

#include <smarm/deadline.hpp>

#include "base/atomic.hpp"
#include "base/raw_mutex.hpp"
#include "sched/wait_reason.hpp"
#include "sync/wait_list.hpp"

namespace smarm::detail {

class permits {
 public:
  explicit permits(std::int64_t count) noexcept : count_(count) {}

  // try_take takes a permit if one is free and nobody waits. Never parks.
  [[nodiscard]] bool try_take() noexcept;

  enum class taken : std::uint8_t {
    free,       // one was free
    waited,     // one was handed over
    timed_out,  // none until the deadline
    closed,     // none, and none will be handed over
  };
  // take waits for a permit; `me` is what is handed to on_grant. A stop point while parked, none on
  // entry; a stop that comes with the hand-over is left for the next stop point, so that an
  // exception means "not taken".
  [[nodiscard]] taken take(waiter& me, wait_reason reason, deadline until);

  // give_back puts one permit back. on_grant (may be null) is called under the lock for the waiter
  // that gets it, before that one can know.
  using on_grant = void (*)(void* context, waiter& who) noexcept;
  void give_back(on_grant granted = nullptr, void* context = nullptr) noexcept;

  // add puts many back; false: there would be more than limit, and nothing was done.
  [[nodiscard]] bool add(std::int64_t count, std::int64_t limit) noexcept;

  // close sends everybody away who waits, and whoever would wait.
  void close() noexcept;

  // free_count is how many are free. A hint: relaxed.
  [[nodiscard]] std::int64_t free_count() const noexcept {
    const std::int64_t count = count_.load(relaxed);
    return count == contended ? 0 : count;
  }

 private:
  static constexpr std::int64_t contended = -1;

  [[nodiscard]] bool enlist_or_take(waiter& me, taken& outcome) noexcept;
  [[nodiscard]] bool add_if_uncontended(std::int64_t count, std::int64_t limit,
                                        bool& fits) noexcept;
  void withdrawn() noexcept;

  // Written by everybody; publishes what the giver of a permit did before to its taker.
  atomic<std::int64_t> count_;
  raw_mutex lock_;  // leaf; guards what follows
  bool closed_ = false;
  wait_list waiters_;
};

}  // namespace smarm::detail
