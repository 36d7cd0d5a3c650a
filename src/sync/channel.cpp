// The two sides of a channel; see channel_core.hpp for the protocol.
#include <sched.h>

#include <exception>
#include <string>

#include <smarm/errors.hpp>
#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "sched/wait.hpp"
#include "sync/channel_core.hpp"

namespace smarm::detail {

namespace {

// So many sends an actor may be ahead of the receiver before it gives way: the cells then are still
// in the first cache when they come back. It looks once in a block of the count.
constexpr std::uint64_t send_budget = 256;

// LIMIT: a sender between its append and its link has a store left to do; if that takes longer it
// has lost its processor, so ours is given away for it to get one.
constexpr int link_pauses_max = 64;

node* wait_for_link(node& after) noexcept {
  for (int tries = 0;; ++tries) {
    // acquire: pairs with append's link: publishes the value.
    if (node* const next = after.next.load(acquire)) return next;
    if (tries < link_pauses_max) {
      pause();
    } else {
      sched_yield();
    }
  }
}

[[gnu::cold, gnu::noinline]] void throw_two_receivers() {
  throw misuse("channel: the receiver is used by two at once");
}

struct send_waiter : waiter {
  channel_core* channel = nullptr;
  void* cell = nullptr;
  bool appended = false;
};

// append_for puts the cell of a parked sender into the queue, when the receiver has made room.
void append_for(void*, waiter& who) noexcept {
  auto& sender = static_cast<send_waiter&>(who);
  sender.appended = sender.channel->append(sender.cell);
}

}  // namespace

channel_core::channel_core(const value_type& type, std::size_t capacity)
    : tail_(reinterpret_cast<std::uintptr_t>(&stub_)),
      head_(&stub_),
      type_(type),
      cells_(type),
      room_(capacity == 0 ? nullptr
                          : std::make_unique<permits>(static_cast<std::int64_t>(capacity))),
      capacity_(capacity) {}

channel_core::~channel_core() {
  // The receiver has drained it, so head_ is the last node.
  if (head_ != &stub_) cells_.free(type_, cell_of(head_));
}

void channel_core::release_one() noexcept {
  // acq_rel: every use by the other side happens before the deletion by the last one.
  if (references_.fetch_sub(1, acq_rel) == 1) delete this;
}

void channel_core::add_sender() noexcept {
  senders_.fetch_add(1, relaxed);  // relaxed: whoever copies a sender already holds one
}

void channel_core::drop_sender() noexcept {
  // acq_rel: the last one to go has every other sender's appends behind it.
  if (senders_.fetch_sub(1, acq_rel) != 1) return;
  std::uintptr_t tail = tail_.load(relaxed);  // relaxed: the exchange below validates it
  // release: pairs with oldest(): who sees the tag sees all that was sent. acquire: pairs with
  // wait(): publishes waker_.
  while (!tail_.compare_exchange_weak(tail, (tail & ~receiver_waits) | senders_gone, acq_rel,
                                      relaxed)) {
  }
  if ((tail & receiver_waits) != 0) {
    const waker wake = waker_.load();  // nobody registers again: the channel has ended
    wake.wake();
  }
  release_one();
}

bool channel_core::is_closed() const noexcept {
  // relaxed: a hint; append decides.
  return (tail_.load(relaxed) & receiver_gone) != 0;
}

std::size_t channel_core::size() const noexcept {
  // relaxed, all: counts that move on; a hint. Where one has just gone past a block that is not
  // counted yet, it seems to be behind what was received.
  const std::uint64_t received = received_.load(relaxed);
  std::uint64_t sent = sent_blocks_.load(relaxed) * block;
  sent += count_in(tail_.load(relaxed));  // relaxed: as above
  if (sent < received) sent += block;
  return sent > received ? sent - received : 0;
}

// give_way lets the receiver run when an actor has got far ahead of it.
void channel_core::give_way() const {
  if (room_ == nullptr && size() >= send_budget && is_actor() && std::uncaught_exceptions() == 0) {
    yield();
  }
}

void* channel_core::reserve() {
  stop_point();
  if (is_closed()) return nullptr;
  if (count_in(tail_.load(relaxed)) == block - 1) give_way();  // relaxed: a hint
  return cells_.allocate(type_);
}

void* channel_core::try_reserve(channel_status& why) {
  if (is_closed()) {
    why = channel_status::closed;
    return nullptr;
  }
  if (room_ != nullptr && room_->free_count() == 0) {
    why = channel_status::unready;
    return nullptr;
  }
  return cells_.allocate(type_);
}

bool channel_core::append(void* cell) noexcept {
  node* const last = node_of(cell);
  last->next.store(nullptr, relaxed);         // relaxed: published by the exchange
  std::uintptr_t tail = tail_.load(relaxed);  // relaxed: the exchange validates it
  do {
    if ((tail & receiver_gone) != 0) return false;
    // release: publishes our null link to the sender that comes next, which else could have its
    // link overwritten by it. acquire: pairs with that, and with wait(): publishes waker_.
  } while (!tail_.compare_exchange_weak(tail, tail_after(tail, last), acq_rel, relaxed));
  if (count_in(tail) == block - 1) sent_blocks_.fetch_add(1, relaxed);  // relaxed: a count
  node* const previous = node_in(tail);
  // release, both: pairs with oldest() and wait_for_link: publishes the value, and that waker_ has
  // been read (invariant 3).
  if ((tail & receiver_waits) == 0) {
    previous->next.store(last, release);
  } else {
    const waker wake = waker_.load();
    previous->next.store(last, release);
    wake.wake();
  }
  return true;
}

channel_status channel_core::try_send(void* cell) noexcept {
  if (room_ != nullptr && !room_->try_take()) {
    return is_closed() ? channel_status::closed : channel_status::unready;
  }
  return append(cell) ? channel_status::done : channel_status::closed;
}

channel_status channel_core::send(void* cell, deadline until) {
  if (room_ != nullptr && !room_->try_take()) [[unlikely]]
    return send_to_full(cell, until);
  return append(cell) ? channel_status::done : channel_status::closed;
}

channel_status channel_core::send_to_full(void* cell, deadline until) {
  send_waiter me;
  me.channel = this;
  me.cell = cell;
  switch (room_->take(me, wait_reason::channel_send, until)) {
    case permits::taken::free:
      break;
    case permits::taken::waited:
      return me.appended ? channel_status::done : channel_status::closed;
    case permits::taken::timed_out:
      return channel_status::timed_out;
    case permits::taken::closed:
      return channel_status::closed;
  }
  return append(cell) ? channel_status::done : channel_status::closed;
}

void channel_core::require_single_receiver() const {
  // relaxed: whoever is parked has been so for a while, else the misuse is a race that nobody sees.
  if (receiver_parked_.load(relaxed)) [[unlikely]]
    throw_two_receivers();
}

// oldest returns the node of the oldest value; null: there is none, and why.
node* channel_core::oldest(channel_status& why) noexcept {
  // acquire: pairs with append's link: publishes the value.
  if (node* const next = head_->next.load(acquire)) return next;
  // acquire: pairs with drop_sender's tag: all that was sent shows in tail_.
  const std::uintptr_t tail = tail_.load(acquire);
  if (node_in(tail) != head_) return wait_for_link(*head_);
  why = (tail & (senders_gone | receiver_gone)) != 0 ? channel_status::closed
                                                     : channel_status::unready;
  return nullptr;
}

void* channel_core::try_front(channel_status& why) {
  require_single_receiver();
  node* const next = oldest(why);
  return next == nullptr ? nullptr : cell_of(next);
}

void* channel_core::front(deadline until, channel_status& why) {
  stop_point();
  require_single_receiver();
  if (node* const next = head_->next.load(acquire)) return cell_of(next);  // acquire: as in oldest
  return await_front(until, why);
}

void* channel_core::await_front(deadline until, channel_status& why) {
  for (;;) {
    // acquire: as in oldest, which is for all that is less usual than a value or nothing.
    if (node* const next = head_->next.load(acquire)) return cell_of(next);
    const std::uintptr_t empty = empty_tail();
    // relaxed: who finds another one looks again, and the exchange in wait() decides.
    if (tail_.load(relaxed) != empty) [[unlikely]] {
      if (node* const next = oldest(why)) return cell_of(next);
      if (why == channel_status::closed) return nullptr;
    }
    if (!wait(empty, until)) {
      why = channel_status::timed_out;
      return nullptr;
    }
  }
}

// wait parks until something has changed in the channel, which was found empty; false: nothing did
// until the deadline.
bool channel_core::wait(std::uintptr_t empty, deadline until) {
  const waker wake = begin_wait();
  waker_.store(wake);
  // release: publishes waker_ to whoever clears the tag (append, drop_sender). relaxed on failure:
  // something came, and oldest() looks.
  if (!tail_.compare_exchange_strong(empty, empty | receiver_waits, release, relaxed)) return true;
  receiver_parked_.store(true, relaxed);  // relaxed: see require_single_receiver
  const auto outcome = park_or(wake, wait_reason::channel_receive, until, [this] {
    (void)withdraw();  // what came instead stays queued
    receiver_parked_.store(false, relaxed);
  });
  receiver_parked_.store(false, relaxed);
  return outcome == wait_outcome::woken || !withdraw();
}

bool channel_core::is_ready() {
  require_single_receiver();
  channel_status why{};
  return oldest(why) != nullptr || why == channel_status::closed;
}

// enroll is the first half of wait, for a wait that is not for this channel alone.
bool channel_core::enroll(const waker& wake) {
  require_single_receiver();
  waker_.store(wake);
  std::uintptr_t empty = empty_tail();
  // As in wait.
  if (!tail_.compare_exchange_strong(empty, empty | receiver_waits, release, relaxed)) return false;
  receiver_parked_.store(true, relaxed);  // relaxed: see require_single_receiver
  return true;
}

void channel_core::end_enrolment() noexcept {
  receiver_parked_.store(false, relaxed);  // relaxed: see require_single_receiver
  if (withdraw()) return;
  // A sender cleared the tag and still reads waker_, which the next wait writes: it is through with
  // it when its link shows (invariant 3). One that closed the channel is the last that reads it.
  channel_status why{};
  (void)oldest(why);
}

// withdraw takes the tag back; false: a sender was faster, and what it brings is on its way.
bool channel_core::withdraw() noexcept {
  std::uintptr_t waiting = empty_tail() | receiver_waits;
  // relaxed: nothing is published by giving up.
  return tail_.compare_exchange_strong(waiting, waiting & ~receiver_waits, relaxed, relaxed);
}

// advance makes `next`, whose value has gone, the head, and frees the old one.
[[gnu::always_inline]] inline void channel_core::advance(node* next) noexcept {
  node* const old = head_;
  head_ = next;
  if (old != &stub_) cells_.free(type_, cell_of(old));
  // relaxed: only the receiver writes it.
  received_.store(received_.load(relaxed) + 1, relaxed);
}

void channel_core::pop() noexcept {
  node* const next = head_->next.load(relaxed);  // relaxed: oldest() has acquired it
  SMARM_ASSERT(next != nullptr, "a value that is popped was at the front", this);
  advance(next);
  if (room_ != nullptr) room_->give_back(&append_for);
}

// close refuses all that comes from now on, and sends the parked senders away.
void channel_core::close() noexcept {
  // relaxed on its own line: an append is before or after this on the one word tail_; acquire pairs
  // with the appends before, for drain().
  tail_.fetch_or(receiver_gone, acquire);
  if (room_ != nullptr) room_->close();
}

void channel_core::close_receiver() {
  require_single_receiver();
  close();
}

// drain destroys what is queued. Values may do anything on their way, so each is off the queue
// first.
void channel_core::drain() noexcept {
  node* const last = node_in(tail_.load(acquire));  // acquire: pairs with append
  while (head_ != last) {
    node* const next = wait_for_link(*head_);
    advance(next);
    type_.destroy(cell_of(next));
  }
}

void channel_core::drop_receiver() noexcept {
  SMARM_ASSERT(!receiver_parked_.load(relaxed),  // relaxed: as in require_single_receiver
               "a receiver is destroyed when nobody waits in it", this);
  close();
  drain();
  release_one();
}

// ---------------------------------------------------------------- what the templates call

channel_core* channel_create(const value_type& type, std::size_t capacity) {
  return new channel_core(type, capacity);
}
void channel_add_sender(channel_core& core) noexcept { core.add_sender(); }
void channel_drop_sender(channel_core& core) noexcept { core.drop_sender(); }
void channel_close_receiver(channel_core& core) { core.close_receiver(); }
void channel_drop_receiver(channel_core& core) noexcept { core.drop_receiver(); }
void* channel_reserve(channel_core& core) { return core.reserve(); }
void* channel_try_reserve(channel_core& core, channel_status& why) { return core.try_reserve(why); }
void channel_unreserve(channel_core& core, void* cell) noexcept { core.free_cell(cell); }
channel_status channel_send(channel_core& core, void* cell, deadline until) {
  return core.send(cell, until);
}
channel_status channel_try_send(channel_core& core, void* cell) noexcept {
  return core.try_send(cell);
}
void* channel_front(channel_core& core, deadline until, channel_status& why) {
  return core.front(until, why);
}
void* channel_try_front(channel_core& core, channel_status& why) { return core.try_front(why); }
void channel_pop(channel_core& core) noexcept { core.pop(); }
bool channel_is_closed(const channel_core& core) noexcept { return core.is_closed(); }
std::size_t channel_size(const channel_core& core) noexcept { return core.size(); }
std::size_t channel_capacity(const channel_core& core) noexcept { return core.capacity(); }

void channel_require_capacity(std::size_t capacity) {
  constexpr std::size_t capacity_max = std::size_t{1} << 62;
  if (capacity == 0 || capacity > capacity_max) {
    throw misuse("channel: a capacity of " + std::to_string(capacity) + "; allowed: 1 to 2^62");
  }
}

void throw_empty_endpoint(const char* what) {
  throw misuse(std::string(what) + " is empty: it was moved from, closed, or never made");
}

}  // namespace smarm::detail
