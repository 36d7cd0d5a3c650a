// Timers that send: starting, firing and ending; see message_alarm.hpp.
#include "actor/message_alarm.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <variant>

#include "actor/actor_box.hpp"
#include "actor/names.hpp"
#include "base/clock.hpp"
#include "sched/driver.hpp"
#include "sched/lookup.hpp"

namespace smarm::detail {

message_alarm::message_alarm(runtime_core& runtime, std::int64_t period_ns, timer_target to,
                             std::unique_ptr<message_source> what) noexcept
    : runtime_(runtime), period_ns_(period_ns), to_(std::move(to)), what_(std::move(what)) {}

void alarm_dropper::operator()(message_alarm* held) const noexcept { held->drop_reference(); }

bool message_alarm::make_known() {
  const pid* const who = std::get_if<pid>(&to_);
  if (who == nullptr) return true;
  add_reference();
  alarm_ref reference(this);
  if (!with_box(*who, [this](actor_box& box) { box.timers.push_back(*this); })) return false;
  (void)reference.release();  // the box has it
  return true;
}

bool message_alarm::forget() noexcept {
  const pid* const who = std::get_if<pid>(&to_);
  if (who == nullptr) return true;
  slot* const found = find_slot(*who);
  if (found == nullptr) return false;
  bool was_known = false;
  // Where the actor does not live its exit has the list, and drops what it finds.
  const box_state state = if_box(*found, who->generation, [&](actor_box& box) {
    was_known = is_linked();
    if (was_known) box.timers.erase(*this);
  });
  if (was_known) drop_reference();  // never the last: the caller works with another one
  return state != box_state::no_actor;
}

bool message_alarm::reaches_somebody() const noexcept {
  const pid* const who = std::get_if<pid>(&to_);
  return who == nullptr || find_slot(*who) != nullptr;
}

bool message_alarm::is_of_caller() const noexcept { return current_runtime() == &runtime_; }

void message_alarm::start(std::int64_t deadline_ns) {
  ring_ref first(new ring(deadline_ns, *this));
  // Before it is armed: one that has fired is known to nobody any more.
  const bool is_known = make_known();
  std::unique_ptr<message_source> unsent;
  const std::lock_guard guard(lock_);
  // The destination has ended, or ended just now: without a ring it left the message to us.
  over_ = over_ || !is_known;
  if (over_) {
    unsent = std::move(what_);
    return;
  }
  armed_ = std::move(first);
  arm_in(runtime_, *armed_);
}

void message_alarm::expire(const ring& fired) noexcept {
  full_envelope message = what_->next();
  try {
    // Nobody there: a name may have somebody the next time, and to a pid there is none then, since
    // the end of the actor ends this timer.
    if (message != nullptr) std::visit([&](const auto& to) { (void)post(to, message); }, to_);
  } catch (const std::bad_alloc&) {
    // LIMIT: as with a full mailbox, this message is lost, and the next one may find room.
  }
  ring_ref next;
  if (period_ns_ > 0) {
    const std::int64_t now = monotonic_ns();
    const std::int64_t late = now - fired.deadline_ns();
    next.reset(new (std::nothrow)
                   ring(fired.deadline_ns() + (late / period_ns_ + 1) * period_ns_, *this));
  }
  {
    const std::lock_guard guard(lock_);
    if (!over_) {
      over_ = next == nullptr;
      armed_.swap(next);
    }
    if (!over_) {
      arm_in(runtime_, *armed_);
      return;  // from here on what_ is the next one's
    }
  }
  what_.reset();
  (void)forget();
}

message_alarm::taken message_alarm::take() noexcept {
  taken all;
  const std::lock_guard guard(lock_);
  over_ = true;
  all.last = std::move(armed_);
  if (all.last != nullptr && wheel_of(runtime_).disarm(*all.last)) all.unsent = std::move(what_);
  return all;
}

void message_alarm::end_with_destination() noexcept {
  (void)take();
  drop_reference();  // the box's
}

// The run is over, and with it every actor: what knew of this timer has forgotten it.
void message_alarm::end_with_run() noexcept {
  (void)take();
  what_.reset();  // the wheel took the ring out, to call us
}

std::optional<std::chrono::nanoseconds> message_alarm::cancel() {
  if (!is_of_caller()) return std::nullopt;
  const bool is_interval = period_ns_ > 0;
  const taken all = take();
  if (all.last == nullptr || !forget()) return std::nullopt;
  // A message that is being sent just now is the timer's last, but not an interval's: this ends it.
  if (all.unsent == nullptr && !is_interval) return std::nullopt;
  return std::chrono::nanoseconds(
      std::max<std::int64_t>(all.last->deadline_ns() - monotonic_ns(), 0));
}

std::optional<std::chrono::nanoseconds> message_alarm::read() {
  if (!is_of_caller()) return std::nullopt;
  const std::lock_guard guard(lock_);
  if (armed_ == nullptr || !reaches_somebody()) return std::nullopt;
  if (period_ns_ == 0 && !wheel_of(runtime_).is_armed(*armed_)) return std::nullopt;  // as cancel
  return std::chrono::nanoseconds(
      std::max<std::int64_t>(armed_->deadline_ns() - monotonic_ns(), 0));
}

}  // namespace smarm::detail
