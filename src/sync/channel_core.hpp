// channel_core is the queue of a channel: a linked list that many append to with one exchange each
// and one takes from without any.
//
// tail_ holds the last node; in its lowest bits what a sender has to know at the moment it appends,
// that the receiver waits, or is gone; and in eight bits above the address how many have been
// appended, modulo 256, so that a message costs one exchange and not a second one for its count.
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
//   6. Where nothing is queued the count in tail_ is received_, modulo 256. Who takes it past 255
//   adds
//      one to sent_blocks_.
//   7. References: the senders together hold one, the receiver one. Who appends holds a sender.
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
#include "fiber/block_pool.hpp"
#include "sched/wait.hpp"
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
  // For a wait on several things at once: is_ready tells whether front would not park; enroll has
  // the waker called when that changes (false: it is ready), until end_enrolment.
  [[nodiscard]] bool is_ready();
  [[nodiscard]] bool enroll(const waker& wake);
  void end_enrolment() noexcept;
  void close_receiver();
  void drop_receiver() noexcept;

  [[nodiscard]] bool is_closed() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // An empty cell, and back with one that has not been sent. Throws std::bad_alloc.
  [[nodiscard]] void* allocate_cell() const { return cells_.allocate(type_); }
  void free_cell(void* cell) const noexcept { cells_.free(type_, cell); }

 private:
  static constexpr std::uintptr_t receiver_waits = 1;
  static constexpr std::uintptr_t senders_gone = 2;
  static constexpr std::uintptr_t receiver_gone = 4;
  static constexpr std::uintptr_t tags = receiver_waits | senders_gone | receiver_gone;
  // The kernel gives no addresses beyond 48 bits unless asked to; the top byte is left alone, which
  // some processors let the allocator mark.
  static constexpr unsigned count_shift = 48;
  static constexpr std::uintptr_t count_one = std::uintptr_t{1} << count_shift;
  static constexpr std::uintptr_t count_mask = std::uintptr_t{0xff} << count_shift;
  static constexpr std::uint64_t block = 256;

  [[nodiscard]] static node* node_in(std::uintptr_t tail) noexcept {
    return reinterpret_cast<node*>(tail & ~(tags | count_mask));
  }
  [[nodiscard]] static std::uint64_t count_in(std::uintptr_t tail) noexcept {
    return (tail & count_mask) >> count_shift;
  }
  // tail_after is the tail when `last` has been appended to `tail`.
  [[nodiscard]] static std::uintptr_t tail_after(std::uintptr_t tail, node* last) noexcept {
    return reinterpret_cast<std::uintptr_t>(last) | ((tail + count_one) & count_mask);
  }
  // empty_tail is the tail when the receiver has taken all. By the receiver.
  [[nodiscard]] std::uintptr_t empty_tail() const noexcept {
    return reinterpret_cast<std::uintptr_t>(head_) |
           (received_.load(relaxed) << count_shift & count_mask);  // relaxed: own
  }

  ~channel_core();
  void release_one() noexcept;
  void give_way() const;
  void close() noexcept;
  void drain() noexcept;
  void advance(node* next) noexcept;
  [[nodiscard]] node* oldest(channel_status& why) noexcept;
  [[nodiscard]] channel_status send_to_full(void* cell, deadline until);
  [[nodiscard]] void* await_front(deadline until, channel_status& why);
  [[nodiscard]] bool wait(std::uintptr_t empty, deadline until);
  [[nodiscard]] bool withdraw() noexcept;
  void require_single_receiver() const;

  // What every append touches. Written by senders and, for the tags, by the receiver.
  alignas(64) atomic<std::uintptr_t> tail_;
  waker_cell waker_;                      // see invariant 3
  atomic<std::uint64_t> sent_blocks_{0};  // invariant 6; a count for hints and for give_way

  // The receiver's.
  node* head_;
  atomic<std::uint64_t> received_{0};    // written by the receiver, read as a hint
  atomic<bool> receiver_parked_{false};  // written by the receiver; a second one finds it set

  // Shared and rarely written.
  atomic<std::uint32_t> senders_{1};
  atomic<std::uint32_t> references_{2};
  const value_type& type_;
  const cell_layout cells_;
  std::unique_ptr<permits> room_;  // of a bounded channel
  std::size_t capacity_;
  node stub_;  // the first head_
};

static_assert(sizeof(channel_core) == 128,
              "a channel is two cache lines, and so the pool aligns it");

}  // namespace smarm::detail
