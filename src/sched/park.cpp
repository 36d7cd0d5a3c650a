// The waits of wait.hpp and what the running actor asks of its scheduler: the one place that
// switches away from a running actor.
#include <new>
#include <thread>

#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "fiber/block_pool.hpp"
#include "fiber/current.hpp"
#include "sched/actor_extension.hpp"
#include "sched/body.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/lookup.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/stop.hpp"
#include "sched/thread_parker.hpp"
#include "sched/timers.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

// wait_access opens wakers to the scheduler's side.
struct wait_access {
  // SAFETY: the lowest bit marks a thread_parker; slots and parkers are aligned.
  [[nodiscard]] static bool is_thread(const waker& wait) noexcept {
    return (wait.target_ & 1) != 0;
  }
  [[nodiscard]] static thread_parker& thread_of(const waker& wait) noexcept {
    return *reinterpret_cast<thread_parker*>(wait.target_ & ~std::uintptr_t{1});
  }
  [[nodiscard]] static slot& slot_of(const waker& wait) noexcept {
    return *reinterpret_cast<slot*>(wait.target_);  // SAFETY: as above
  }
  [[nodiscard]] static std::uint64_t ticket_of(const waker& wait) noexcept { return wait.ticket_; }
};

namespace {

// is_unwinding tells whether the running actor has an exception in flight: then a stop must not
// start another.
bool is_unwinding() noexcept { return current_thread().exceptions->uncaught != 0; }

// deliver ends the wait of an actor and makes it runnable.
[[gnu::always_inline]] inline void deliver(slot& target, std::uint64_t ticket, bool last) noexcept {
  if (!target.state.is_open(ticket)) return;
  // relaxed: behind is_open's acquire, which pairs with publish_queued. If the slot has gone to
  // another actor since, this is that one's runtime and unpark below finds the ticket stale.
  runtime_core* const core = target.owner.load(relaxed);
  scheduler* const here = scheduler::current();
  if (here != nullptr && &here->core() == core) {
    if (target.state.unpark(ticket) != slot_state::unparked::must_enqueue) return;
    // The saved context lies on its stack's top lines, which the switch will want at once.
    __builtin_prefetch(target.context.sp);
    if (last) {
      here->schedule_last(target);
    } else {
      here->schedule(target);
    }
    return;
  }
  const run_life::pin pin(core->life());
  if (target.state.unpark(ticket) == slot_state::unparked::must_enqueue) {
    core->work().enqueue_from_outside(target);
  }
}

// deliver ends the wait of whoever the waker is of: an actor, a foreign thread, or nobody.
[[gnu::always_inline]] inline void deliver(const waker& wait, bool last) noexcept {
  if (!wait) return;
  if (wait_access::is_thread(wait)) [[unlikely]] {
    wait_access::thread_of(wait).wake(static_cast<std::uint32_t>(wait_access::ticket_of(wait)));
    return;
  }
  deliver(wait_access::slot_of(wait), wait_access::ticket_of(wait), last);
}

// A stop shield for one wait: keeps request_stop from waking the actor.
class wait_shield {
 public:
  explicit wait_shield(slot& self) noexcept : self_(self) { self_.add_shield(); }
  ~wait_shield() { self_.drop_shield(); }
  wait_shield(const wait_shield&) = delete;
  wait_shield& operator=(const wait_shield&) = delete;

 private:
  slot& self_;
};

// The actor's own timer, made at its first wait with a deadline; null: there is no memory.
standing_timer* timer_of(slot& self, const waker& wait) noexcept {
  if (self.wait_timer == nullptr) [[unlikely]] {
    try {
      self.wait_timer = ::new (pool_allocate(sizeof(standing_timer))) standing_timer(wait);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  return self.wait_timer;
}

// A wait that has run out does not park behind a full queue; but a loop of such waits must not keep
// everybody from what it waits for.
wait_outcome expired() noexcept {
  if (scheduler::current()->note_expired_wait()) scheduler::yield_running();
  return wait_outcome::timed_out;
}

// Parks by a timer on the stack, where there was no memory for the actor's own.
[[gnu::cold, gnu::noinline]] wait_outcome park_by_alarm(const waker& wait,
                                                        deadline until) noexcept {
  if (until.has_passed()) return expired();
  timers& wheel = scheduler::current()->core().work().timers;
  timer alarm(until.ns(), wait);
  if (wheel.insert(alarm)) scheduler::current()->note_deadline();
  scheduler::park_running();
  return wheel.cancel(alarm) ? wait_outcome::woken : wait_outcome::timed_out;
}

// Parks the running actor until it is woken, or until the deadline. One switch for both, so that
// the return behind it is from the same place for those who have a deadline and who have none.
[[gnu::always_inline]] inline wait_outcome park_actor(slot& self, const waker& wait,
                                                      wait_reason reason, deadline until) noexcept {
  self.reason = reason;
  standing_timer* own = nullptr;
  if (!until.is_never()) {
    own = timer_of(self, wait);
    if (own == nullptr) [[unlikely]]
      return park_by_alarm(wait, until);
    // Where it fires in time anyhow nobody has to look at the clock, which costs as much as a
    // switch; if the deadline has passed it fires at once.
    if (!own->fires_by(until.ns()) && until.has_passed()) return expired();
    scheduler& here = *scheduler::current();
    if (here.core().work().timers.want(*own, wait, until.ns())) here.note_deadline();
  }
  scheduler::park_running();
  return own != nullptr && own->has_fired(wait) ? wait_outcome::timed_out : wait_outcome::woken;
}

// park_actor for those whom no stop may wake.
[[gnu::noinline]] wait_outcome park_shielded(slot& self, const waker& wait, wait_reason reason,
                                             deadline until) noexcept {
  const wait_shield shield(self);
  return park_actor(self, wait, reason, until);
}

}  // namespace

void waker::wake() const noexcept { deliver(*this, false); }

void waker::wake_last() const noexcept { deliver(*this, true); }

waker begin_wait() noexcept {
  if (slot* const self = scheduler::current_slot()) {
    const std::uint64_t ticket = self->state.begin_wait(self->wait_opened);
    self->wait_opened = true;
    return {reinterpret_cast<std::uintptr_t>(self), ticket};
  }
  thread_parker& thread = thread_parker::of_this_thread();
  return {reinterpret_cast<std::uintptr_t>(&thread) | 1, thread.begin_wait()};
}

wait_outcome park(const waker& wait, wait_reason reason, deadline until) {
  if (wait_access::is_thread(wait)) [[unlikely]] {
    const auto ticket = static_cast<std::uint32_t>(wait_access::ticket_of(wait));
    return wait_access::thread_of(wait).park(ticket, until.ns()) ? wait_outcome::woken
                                                                 : wait_outcome::timed_out;
  }
  slot& self = wait_access::slot_of(wait);
  SMARM_ASSERT(scheduler::current_slot() == &self, "an actor parks on its own wait", self.index);
  if (is_unwinding()) [[unlikely]]
    return park_shielded(self, wait, reason, until);
  if (self.state.stop_is_pending()) [[unlikely]]
    throw_stop();
  const wait_outcome outcome = park_actor(self, wait, reason, until);
  if (self.state.stop_is_pending()) [[unlikely]]
    throw_stop();
  return outcome;
}

wait_outcome park_through_stop(const waker& wait, wait_reason reason, deadline until) noexcept {
  if (wait_access::is_thread(wait)) return park(wait, reason, until);
  return park_shielded(wait_access::slot_of(wait), wait, reason, until);
}

void give_way_at_end() noexcept {
  if (scheduler::current_slot() != nullptr) scheduler::yield_running();
}

slot* slot_of_self() noexcept { return scheduler::current_slot(); }

actor_extension* extension_of_self() noexcept {
  // acquire: pairs with install_extension: what was written of it before is visible.
  return scheduler::current_slot()->extension.load(acquire);
}

void throw_stop() {
  if (!is_unwinding()) throw forced_stop{};
}

}  // namespace smarm::detail

namespace smarm {

using detail::scheduler;
using detail::slot;

namespace {

slot& require_actor(const char* call) {
  slot* const self = scheduler::current_slot();
  if (self == nullptr) throw misuse(std::string("smarm::") + call + ": this thread is no actor");
  return *self;
}

}  // namespace

bool is_actor() noexcept { return scheduler::current_slot() != nullptr; }

pid self() {
  const slot& me = require_actor("self");
  return {me.index, me.generation};
}

std::string_view self_name() { return require_actor("self_name").body->name; }

void yield() {
  if (!is_actor()) {
    std::this_thread::yield();
    return;
  }
  detail::stop_point();
  scheduler::yield_running();
  detail::stop_point();
}

void check() { detail::stop_point(); }

void sleep_until(deadline when) {
  if (when.has_passed()) {
    yield();
    return;
  }
  detail::stop_point();
  (void)detail::park(detail::begin_wait(), detail::wait_reason::sleep, when);
}

std::expected<void, no_such_actor> request_stop(pid who) noexcept {
  slot* const target = detail::find_slot(who);
  if (target == nullptr || !detail::stop_slot(*target, who.generation)) {
    return std::unexpected(no_such_actor{who});
  }
  return {};
}

bool stop_requested() noexcept {
  const slot* const me = scheduler::current_slot();
  return me != nullptr && me->state.peek().stop_requested();
}

stop_shield::stop_shield() noexcept {
  if (slot* const me = scheduler::current_slot()) me->add_shield();
}

stop_shield::~stop_shield() {
  if (slot* const me = scheduler::current_slot()) me->drop_shield();
}

}  // namespace smarm
