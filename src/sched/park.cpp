// The waits of wait.hpp, with what park_here.hpp seldom needs, and what the running actor asks of
// its scheduler.
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
#include "sched/park_here.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/stop.hpp"
#include "sched/thread_parker.hpp"
#include "sched/timers.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

namespace {

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
  return park_here(wait, reason, until);
}

wait_outcome park_thread(const waker& wait, deadline until) {
  const auto ticket = static_cast<std::uint32_t>(wait_access::ticket_of(wait));
  return wait_access::thread_of(wait).park(ticket, until.ns()) ? wait_outcome::woken
                                                               : wait_outcome::timed_out;
}

wait_outcome park_shielded(slot& self, const waker& wait, wait_reason reason,
                           deadline until) noexcept {
  const wait_shield shield(self);
  return park_actor(self, wait, reason, until);
}

standing_timer* make_timer(slot& self, const waker& wait) noexcept {
  try {
    self.wait_timer = ::new (pool_allocate(sizeof(standing_timer))) standing_timer(wait);
    return self.wait_timer;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

wait_outcome park_by_alarm(const waker& wait, deadline until) noexcept {
  if (until.has_passed()) return park_expired();
  timers& wheel = scheduler::current()->core().work().timers;
  timer alarm(until.ns(), wait);
  if (wheel.insert(alarm)) scheduler::current()->note_deadline();
  scheduler::park_running();
  return wheel.cancel(alarm) ? wait_outcome::woken : wait_outcome::timed_out;
}

// A wait that has run out does not park behind a full queue; but a loop of such waits must not keep
// everybody from what it waits for.
wait_outcome park_expired() noexcept {
  if (scheduler::current()->note_expired_wait()) scheduler::yield_running();
  return wait_outcome::timed_out;
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
  (void)detail::park_here(detail::begin_wait(), detail::wait_reason::sleep, when);
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
