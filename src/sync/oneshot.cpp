// oneshot_core is one word of state, the waker of the receiver, and behind them the value.
//
// Invariants
//   1. state_ goes empty -> waiting -> empty ... by the receiver, and once to `sent` or
//      `sender_gone` by the sender, whose exchange tells it whether to wake, or to `receiver_gone`
//      by the receiver, whose exchange tells it whether there is a value to destroy.
//   2. waker_ is written by the receiver before `waiting`, and read by the sender after its own
//      exchange found `waiting`; from then on the receiver does not register again.
//   3. Two references, one for each end.
// Threads: each end is used by one at a time.
#include <cstddef>
#include <cstdint>
#include <new>

#include <smarm/detail/oneshot_core.hpp>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "fiber/block_pool.hpp"
#include "sched/wait.hpp"
#include "sync/wait_list.hpp"
#include "sync/waker_cell.hpp"

namespace smarm::detail {

class oneshot_core {
 public:
  explicit oneshot_core(const value_type& type) noexcept : type_(type) {}

  enum class state : std::uint32_t { empty, waiting, sent, sender_gone, receiver_gone };

  [[nodiscard]] static std::size_t place_offset(const value_type& type) noexcept {
    return (sizeof(oneshot_core) + type.align - 1) / type.align * type.align;
  }
  [[nodiscard]] static void* allocate(const value_type& type) {
    const std::size_t size = place_offset(type) + type.size;
    return is_pooled(type) ? pool_allocate(size)
                           : ::operator new(size, std::align_val_t(type.align));
  }
  static void free(void* memory, const value_type& type) noexcept {
    const std::size_t size = place_offset(type) + type.size;
    if (is_pooled(type)) {
      pool_free(memory, size);
    } else {
      ::operator delete(memory, size, std::align_val_t(type.align));
    }
  }
  [[nodiscard]] void* place() noexcept {
    return reinterpret_cast<std::byte*>(this) + place_offset(type_);
  }
  [[nodiscard]] const value_type& type() const noexcept { return type_; }

  [[nodiscard]] state now() const noexcept {
    return state_.load(acquire);  // pairs with send: publishes the value
  }

  // send publishes the value; false: the receiver was gone before.
  [[nodiscard]] bool send() noexcept {
    // release: publishes the value to now() and drop_receiver. acquire: pairs with wait():
    // publishes waker_.
    const state before = state_.exchange(state::sent, acq_rel);
    if (before == state::waiting) waker_.load().wake();
    return before != state::receiver_gone;
  }

  void drop_sender() noexcept {
    state now = state_.load(relaxed);  // relaxed: the exchange validates it
    while (now == state::empty || now == state::waiting) {
      // acquire: as in send. release: what the sender did is done for who gets `closed`.
      if (state_.compare_exchange_weak(now, state::sender_gone, acq_rel, relaxed)) {
        if (now == state::waiting) waker_.load().wake();
        break;
      }
    }
    release_one();
  }

  // wait parks until the sender has spoken; false: it has not until the deadline.
  [[nodiscard]] bool wait(deadline until, wait_reason reason) {
    const waker wake = begin_wait();
    waker_.store(wake);
    state empty = state::empty;
    // release: publishes waker_ to the sender. relaxed on failure: now() looks.
    if (!state_.compare_exchange_strong(empty, state::waiting, release, relaxed)) return true;
    const auto outcome = park_or(wake, reason, until, [this] { (void)withdraw(); });
    return outcome == wait_outcome::woken || !withdraw();
  }

  // enroll is the first half of wait, for a wait that is not for this oneshot alone; false: the
  // sender has spoken.
  [[nodiscard]] bool enroll(const waker& wake) noexcept {
    waker_.store(wake);
    state empty = state::empty;
    // As in wait.
    return state_.compare_exchange_strong(empty, state::waiting, release, relaxed);
  }
  // end_enrolment: where the sender has spoken meanwhile there is no next wait that would write
  // waker_, so nothing is to be waited for.
  void end_enrolment() noexcept { (void)withdraw(); }

  void drop_receiver() noexcept {
    // acquire: pairs with send: the value is there to be destroyed. release: with the acquire of
    // send and now(): what the receiver did is done when the sender learns of it.
    if (state_.exchange(state::receiver_gone, acq_rel) == state::sent) type_.destroy(place());
    release_one();
  }

  void release_one() noexcept {
    // acq_rel: every use by the other end happens before the deletion by the last one.
    if (references_.fetch_sub(1, acq_rel) != 1) return;
    const value_type& type = type_;
    this->~oneshot_core();
    free(this, type);
  }

 private:
  ~oneshot_core() = default;

  [[nodiscard]] static bool is_pooled(const value_type& type) noexcept { return type.align <= 16; }

  [[nodiscard]] bool withdraw() noexcept {
    state waiting = state::waiting;
    // relaxed: nothing is published by giving up.
    return state_.compare_exchange_strong(waiting, state::empty, relaxed, relaxed);
  }

  atomic<state> state_{state::empty};
  atomic<std::uint32_t> references_{2};
  waker_cell waker_;  // see invariant 2
  const value_type& type_;
};

oneshot_core* oneshot_create(const value_type& type) {
  return ::new (oneshot_core::allocate(type)) oneshot_core(type);
}

void* oneshot_place(oneshot_core& core) noexcept { return core.place(); }

bool oneshot_send(oneshot_core& core) noexcept { return core.send(); }

bool oneshot_receiver_gone(const oneshot_core& core) noexcept {
  return core.now() == oneshot_core::state::receiver_gone;
}

channel_status oneshot_try_receive(oneshot_core& core) noexcept {
  switch (core.now()) {
    case oneshot_core::state::sent:
      return channel_status::done;
    case oneshot_core::state::sender_gone:
      return channel_status::closed;
    default:
      return channel_status::unready;
  }
}

channel_status oneshot_receive(oneshot_core& core, deadline until) {
  return oneshot_receive(core, until, wait_reason::oneshot_receive);
}

channel_status oneshot_receive(oneshot_core& core, deadline until, wait_reason reason) {
  stop_point();
  for (;;) {
    const channel_status now = oneshot_try_receive(core);
    if (now != channel_status::unready) return now;
    if (!core.wait(until, reason)) return channel_status::timed_out;
  }
}

bool oneshot_enroll(oneshot_core& core, const waker& wake) noexcept { return core.enroll(wake); }

void oneshot_end_enrolment(oneshot_core& core) noexcept { core.end_enrolment(); }

void oneshot_drop_sender(oneshot_core& core) noexcept { core.drop_sender(); }

void oneshot_drop_receiver(oneshot_core& core) noexcept { core.drop_receiver(); }

}  // namespace smarm::detail
