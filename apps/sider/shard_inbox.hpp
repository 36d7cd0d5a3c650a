// The inbox of a shard is the address of its part of the keys, whichever actor serves it.
//
// Who owns the queue. The inbox does, and the server owns the inboxes; so both outlive every actor
// of the shard. An actor that serves the shard leases the receiving end for its life. While the
// shard is down, between a crash and the start of the next actor, letters are taken in as always
// and wait; the next actor executes them. A registered name or a server's mailbox would be no such
// address: a mailbox dies with its actor, what was queued in it with that, and in between the name
// is nobody's, so every sender would have to try again.
//
// What becomes of a command. It travels in a letter, and a letter is answered exactly once: by its
// task, which ran to the end, or by its destructor, which abandons the task. So it does not matter
// how a letter ends. One that was being executed when the shard crashed is destroyed by the unwind;
// it is abandoned and never tried again, for it may have been what crashed the shard. Those
// of a closed inbox are destroyed with the queue, or refused and destroyed at the sender's. None is
// lost without a word, and none is executed twice.
//
// A panic overtakes the queue: it falls on whatever letter the shard takes next, as a fault in the
// execution of a command would.
//
// Invariants
//   1. One lease at most, so one actor takes letters.
//   2. A closed inbox stays closed; its queue goes with the lease, or at once where there is none.
// Threads: any actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <smarm/channel.hpp>
#include <smarm/mutex.hpp>

#include "base/atomic.hpp"

namespace sider {

struct shard;

class shard_task {
 public:
  virtual ~shard_task() = default;
  // run does the work in the shard's actor, and does not park. What it throws crashes the shard.
  virtual void run(shard& here) = 0;
  // abandon is called in place of the end of run: shard `index` has not done the work, or not all
  // of it. Never parks.
  virtual void abandon(std::size_t index) noexcept = 0;
};

class shard_letter {
 public:
  shard_letter(std::shared_ptr<shard_task> task, std::size_t to) noexcept
      : task_(std::move(task)), to_(to) {}
  shard_letter(shard_letter&& other) noexcept = default;
  shard_letter& operator=(shard_letter&&) = delete;
  ~shard_letter() {
    if (task_ != nullptr) task_->abandon(to_);
  }

  void deliver(shard& here) {
    task_->run(here);
    task_.reset();  // answered
  }

 private:
  std::shared_ptr<shard_task> task_;  // null: answered, or moved on
  std::size_t to_;
};

class shard_inbox {
 public:
  explicit shard_inbox(std::size_t index);
  shard_inbox(const shard_inbox&) = delete;
  shard_inbox& operator=(const shard_inbox&) = delete;

  [[nodiscard]] std::size_t index() const { return index_; }

  // send queues a task; a closed inbox abandons it at once. A stop point, as a channel's send.
  void send(std::shared_ptr<shard_task> task) const {
    static_cast<void>(sender_.send(shard_letter(std::move(task), index_)));
  }

  // close ends the shard for good: what is queued, and whatever is sent later, is abandoned. Never
  // waits for an actor that serves.
  void close() noexcept;

  // panic_next crashes the actor that serves at its next letter. Never parks.
  void panic_next() noexcept;

  // panic does the same, sends a letter for it, so that it need not wait for somebody else's, and
  // returns when that has happened, or will not, since the inbox is closed. Called by actors.
  // Parks; no stop point.
  void panic();

  // take_panic tells whether a panic is due, which it then is no more. By who serves.
  [[nodiscard]] bool take_panic() noexcept;

  // lease is the receiving end while an actor has it.
  class lease {
   public:
    // Throws std::logic_error where another has it, or the inbox is closed.
    explicit lease(shard_inbox& from);
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease();

    [[nodiscard]] smarm::receiver<shard_letter>& letters() { return letters_; }

   private:
    shard_inbox& from_;
    smarm::receiver<shard_letter> letters_;
  };

 private:
  const std::size_t index_;
  smarm::sender<shard_letter> sender_;
  smarm::mutex mutex_;
  smarm::receiver<shard_letter> letters_;  // guarded by mutex_, as is_closed_; empty: leased
  bool is_closed_ = false;
  smarm::detail::atomic<std::uint32_t> panics_due_{0};
};

}  // namespace sider
