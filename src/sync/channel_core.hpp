// channel_core is the queue of a channel: a linked list that many append to with one exchange each
// and one takes from without any.
//
// tail_ holds the last node and, in its lowest bits, what a sender has to know at the moment it
// appends: that the receiver waits, or is gone.
//
// Invariants
//   1. head_ is the node before the oldest value: its own value has been received (or it is the
//      first, stub_, which has none). From head_ the links lead to tail_, but for the last few
//      while their senders are between their exchange on tail_ and the link.
//   2. `receiver_waits` is set by the receiver when tail_ is head_ (nothing is queued), and cleared
//      by exactly one: the sender that appends, the last sender that goes, or the receiver that
//      gives up. Who clears it on the way in takes waker_ and wakes.
//   3. waker_ is written by the receiver before it sets the tag and not again before the tag's end
//      is settled; a sender reads it after clearing the tag and before its link, which is what the
//      receiver waits for. So no two touch it at once.
//   4. `receiver_gone` is never cleared, and nothing is appended once it is set: what was appended
//      before, the one that set it can see. So a value is refused, or received, or destroyed with
//      the receiver, and never left behind in a queue that nobody looks at.
//   5. `senders_gone` is set by the last sender, after all appends.
//   6. References: the senders together hold one, the receiver one. Who appends holds a sender.
// Threads: append, the sender calls: any. The receiver calls: one at a time.
//
// Why a compare-exchange for the append and not a plain exchange, which never has to try again: the
// exchange would also append to a channel whose receiver is gone, and the late value, perhaps the
// only way to answer somebody, would need a second protocol to get out again (D. Vyukov's queue
// otherwise). Why a tag and no recheck after the park: the recheck would read the channel when the
// actor may already run elsewhere and have destroyed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <smarm/deadline.hpp>
#include <smarm/detail/channel_core.hpp>

#include "base/atomic.hpp"
#include "sched/wait.hpp"
#include "sync/block_pool.hpp"
#include "sync/cell_pool.hpp"
#include "sync/permits.hpp"
#include "sync/waker_cell.hpp"

namespace smarm::detail {

class channel_core {
 public:
  // Made with one sender and the receiver; capacity 0 is unbounded.
  channel_core(const value_type& type, std::size_t capacity);
  channel_core(const channel_core&) = delete;
  channel_core& operator=(const channel_core&) = delete;

  [[nodiscard]] static void* operator new(std::size_t size) { return pool_allocate(size); }
  static void operator delete(void* block, std::size_t size) noexcept { pool_free(block, size); }

  // The sender's side; see include/smarm/detail/channel_core.hpp.
  void add_sender() noexcept;
  void drop_sender() noexcept;
  [[nodiscard]] void* reserve();
  [[nodiscard]] void* try_reserve(channel_status& why);
  [[nodiscard]] channel_status send(void* cell, deadline until);
  [[nodiscard]] channel_status try_send(void* cell) noexcept;
  // append puts the cell at the end, beyond any capacity; false: the receiver is gone, and the cell
  // stays with the caller.
  [[nodiscard]] bool append(void* cell) noexcept;

  // The receiver's side.
  [[nodiscard]] void* front(deadline until, channel_status& why);
  [[nodiscard]] void* try_front(channel_status& why);
  void pop() noexcept;
  void close_receiver();
  void drop_receiver() noexcept;

  [[nodiscard]] bool is_closed() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] const value_type& type() const noexcept { return type_; }

 private:
  static constexpr std::uintptr_t receiver_waits = 1;
  static constexpr std::uintptr_t senders_gone = 2;
  static constexpr std::uintptr_t receiver_gone = 4;
  static constexpr std::uintptr_t tags = receiver_waits | senders_gone | receiver_gone;

  [[nodiscard]] static node* node_in(std::uintptr_t tail) noexcept {
    return reinterpret_cast<node*>(tail & ~tags);
  }

  ~channel_core();
  void release_one() noexcept;
  void give_way() const;
  void close() noexcept;
  void drain() noexcept;
  void advance(node* next) noexcept;
  [[nodiscard]] node* oldest(channel_status& why) noexcept;
  [[nodiscard]] bool wait(deadline until);
  [[nodiscard]] bool withdraw() noexcept;
  void require_single_receiver() const;

  // What every append touches. Written by senders and, for the tags, by the receiver.
  alignas(64) atomic<std::uintptr_t> tail_;
  atomic<std::uint64_t> sent_{0};  // appends so far; a count for hints and for give_way
  waker_cell waker_;               // see invariant 3

  // The receiver's.
  node* head_;
  atomic<std::uint64_t> received_{0};    // written by the receiver, read as a hint
  atomic<bool> receiver_parked_{false};  // written by the receiver; a second one finds it set

  // Shared and rarely written.
  atomic<std::uint32_t> senders_{1};
  atomic<std::uint32_t> references_{2};
  const value_type& type_;
  std::unique_ptr<permits> room_;  // of a bounded channel
  std::size_t capacity_;
  node stub_;  // the first head_
};

static_assert(sizeof(channel_core) == pooled_size_max, "a channel is two cache lines of the pool");

}  // namespace smarm::detail
