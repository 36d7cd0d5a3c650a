// Timers that send: what their users call. How they work: message_alarm.hpp.
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/timer.hpp>

#include "actor/message_alarm.hpp"
#include "base/atomic.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/timers.hpp"

namespace smarm {

namespace detail {

timers& wheel_of(runtime_core& runtime) noexcept { return runtime.work().timers; }

void arm_in(runtime_core& runtime, alarm& what) noexcept {
  if (wheel_of(runtime).arm(what)) scheduler::current()->note_deadline();
}

void require_period(std::chrono::nanoseconds period) {
  if (period.count() <= 0) throw misuse("smarm::send_interval: the period must be above 0");
}

timer_id next_timer_id() noexcept {
  static atomic<timer_id> last{0};
  return last.fetch_add(1, relaxed) + 1;  // relaxed: only that they differ counts
}

alarm_ref start_message_alarm(timer_id, deadline when, std::chrono::nanoseconds period,
                              timer_target to, std::unique_ptr<message_source> what) {
  scheduler* const here = scheduler::current();
  if (here == nullptr) throw misuse("smarm::send_after: this thread is no actor");
  alarm_ref held(new message_alarm(here->core(), period.count(), std::move(to), std::move(what)));
  held->start(when.ns());
  return held;
}

}  // namespace detail

std::optional<std::chrono::nanoseconds> cancel_timer(const timer_ref& which) {
  return which ? which.alarm_->cancel() : std::nullopt;
}

std::optional<std::chrono::nanoseconds> read_timer(const timer_ref& which) {
  return which ? which.alarm_->read() : std::nullopt;
}

void cancel_timer_async(const timer_ref& which) {
  send(self(), timer_cancelled{which.id(), cancel_timer(which)});
}

}  // namespace smarm
