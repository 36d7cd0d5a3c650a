// The core of a scope: who is in it, how it went, who waits.
//
// Each child has a member, an exit hook that is hung on it before it can run and hears of its end.
//
// Invariants
//   1. `running` counts the members whose child has not ended; a member stands in the list exactly
//      as long.
//   2. The owner parks only under `waits`, set under the lock in which it saw that some run; the
//      end that brings the count to 0 takes the waker and wakes once the lock is left.
//   3. After `stopping` is set every member that stands in the list has been asked to stop, but for
//      one that could not be found yet; that one asks for itself when it begins.
// No model of its own: everything is under the one lock, and the wait is that of the mailbox.
// Threads: the owner, its children, and the exits of these. The lock is an outer_mutex: a child is
// stopped with it held, so that it stands, and that may take a run queue's.
#include <exception>
#include <mutex>

#include <smarm/errors.hpp>
#include <smarm/scope.hpp>
#include <smarm/this_actor.hpp>

#include "base/intrusive_list.hpp"
#include "base/raw_mutex.hpp"
#include "sched/actor_extension.hpp"
#include "sched/exit_hook.hpp"
#include "sched/lookup.hpp"
#include "sched/wait.hpp"
#include "sync/wait_list.hpp"

namespace smarm {

namespace detail {

class scope_member;

class scope_core {
 public:
  explicit scope_core(pid owner) noexcept : owner_(owner) {}

  void add_reference() noexcept { references_.fetch_add(1, relaxed); }  // relaxed: one is held
  void drop_reference() noexcept {
    // acq_rel: every use by the other holders happens before the deletion by the last one.
    if (references_.fetch_sub(1, acq_rel) == 1) delete this;
  }

  void enter(scope_member& child, slot& fresh) noexcept;
  void leave(scope_member& child, const exit_reason& why) noexcept;
  void stop() noexcept;
  void child_begins() noexcept;
  // wait: false at the deadline. With `through` a stop does not end it.
  [[nodiscard]] bool wait(deadline until, bool through);
  [[nodiscard]] std::expected<void, exit_reason> result() noexcept {
    const std::lock_guard guard(lock_);
    if (failure_) return std::unexpected(*failure_);
    return {};
  }
  [[nodiscard]] pid owner() const noexcept { return owner_; }

 private:
  ~scope_core() = default;
  void stop_all() noexcept;  // lock_ held

  const pid owner_;
  outer_mutex lock_;
  intrusive_list<scope_member> members_;
  std::size_t running_ = 0;
  std::optional<exit_reason> failure_;
  bool stopping_ = false;
  waker waits_;
  atomic<std::uint32_t> references_{1};
};

class scope_member final : public exit_hook, public list_link {
 public:
  explicit scope_member(scope_core& core) noexcept : core_(core) { core_.add_reference(); }
  void on_exit(pid, const exit_reason& why) noexcept override { core_.leave(*this, why); }

  pid who;                // guarded by the core's lock
  slot* place = nullptr;  // likewise

 private:
  ~scope_member() override { core_.drop_reference(); }
  scope_core& core_;
};

namespace {

class member_birth final : public birth {
 public:
  member_birth(scope_core& core, bonds ties)
      : ties_(ties.make == nullptr ? nullptr : ties.make(ties)),
        core_(core),
        member_(new scope_member(core)) {}
  ~member_birth() override { member_->drop_reference(); }
  void attend(slot& fresh, pid who) noexcept override {
    if (ties_ != nullptr) ties_->attend(fresh, who);
    member_->who = who;
    install_first_hook(fresh, *member_);
    core_.enter(*member_, fresh);
  }

 private:
  const std::unique_ptr<birth> ties_;
  scope_core& core_;
  scope_member* const member_;
};

}  // namespace

void scope_core::enter(scope_member& child, slot& fresh) noexcept {
  const std::lock_guard guard(lock_);
  child.place = &fresh;
  members_.push_back(child);
  ++running_;
}

void scope_core::leave(scope_member& child, const exit_reason& why) noexcept {
  waker wake;
  {
    const std::lock_guard guard(lock_);
    members_.erase(child);
    --running_;
    // Who is stopped because of a failure, or by stop, has not failed.
    const bool failed = !why.is_normal() && !(stopping_ && why.is_stopped());
    if (failed && !failure_) {
      failure_ = why;
      stop_all();
    }
    if (running_ == 0) wake = std::exchange(waits_, waker{});
  }
  wake.wake();
}

void scope_core::stop() noexcept {
  const std::lock_guard guard(lock_);
  stop_all();
}

void scope_core::stop_all() noexcept {
  stopping_ = true;
  for (scope_member* at = members_.front(); at != nullptr; at = members_.next(*at)) {
    (void)stop_slot(*at->place, at->who.generation);
  }
}

bool scope_core::wait(deadline until, bool through) {
  for (;;) {
    waker mine;
    {
      const std::lock_guard guard(lock_);
      if (running_ == 0) return true;
      if (until.has_passed()) return false;
      mine = begin_wait();
      waits_ = mine;
    }
    const auto withdraw = [this] {
      const std::lock_guard guard(lock_);
      waits_ = {};
    };
    if (through) {
      (void)park_through_stop(mine, wait_reason::join, until);
    } else if (park_or(mine, wait_reason::join, until, withdraw) == wait_outcome::timed_out) {
      withdraw();
    }
  }
}

void scope_core::child_begins() noexcept {
  const std::lock_guard guard(lock_);
  if (stopping_) (void)request_stop(self());
}

void scope_child_begins(scope_core& core) {
  core.child_begins();
  stop_point();
}

std::unique_ptr<birth> scope_birth(scope_core& core, bonds ties) {
  return std::make_unique<member_birth>(core, ties);
}

}  // namespace detail

scope::scope() : core_(nullptr) {
  if (!is_actor()) throw misuse("smarm::scope: this thread is no actor");
  core_ = new detail::scope_core(self());
}

scope::~scope() {
  core_->stop();
  (void)core_->wait(deadline::never(), true);
  core_->drop_reference();
}

void scope::stop() noexcept { core_->stop(); }

std::optional<std::expected<void, exit_reason>> scope::wait_until(deadline until) {
  if (!is_actor() || self() != core_->owner()) {
    throw misuse("smarm::scope: only its owner waits for its children");
  }
  detail::stop_point();
  if (!core_->wait(until, false)) return std::nullopt;
  return core_->result();
}

void scope::join() {
  const auto how = wait();
  if (how) return;
  if (how.error().is_error()) std::rethrow_exception(how.error().exception());
  throw exit_request{how.error()};
}

}  // namespace smarm
