// Timers that send: an alarm in the runtime's wheel with a message, or a source of them.
#include <algorithm>
#include <mutex>
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/timer.hpp>

#include "actor/names.hpp"
#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/raw_mutex.hpp"
#include "sched/lookup.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/timers.hpp"

namespace smarm {

namespace detail {

// An alarm fires once, so a repeated one arms another, and the reference that people hold follows:
// they share the state.
class message_alarm {
 public:
  message_alarm(runtime_core& runtime, std::int64_t period_ns, timer_target to,
                std::unique_ptr<message_source> what) noexcept
      : runtime_(runtime), period_ns_(period_ns), to_(std::move(to)), what_(std::move(what)) {}

  void add_reference() noexcept {
    references_.fetch_add(1, relaxed);  // relaxed: whoever copies a reference already holds one
  }
  void drop_reference() noexcept {
    // acq_rel: every use by the other holders happens before the deletion by the last one.
    if (references_.fetch_sub(1, acq_rel) == 1) delete this;
  }

  // start arms the first alarm; what it is made of is had before. Throws std::bad_alloc.
  void start(std::int64_t deadline_ns);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> cancel();
  [[nodiscard]] std::optional<std::chrono::nanoseconds> read();

 private:
  // ring is the alarm in the wheel.
  class ring final : public alarm {
   public:
    ring(std::int64_t deadline_ns, message_alarm& of) noexcept : alarm(deadline_ns), of_(of) {
      of_.add_reference();
    }
    void on_expiry() noexcept override { of_.expire(*this); }
    void on_dropped() noexcept override { of_.end(); }

   private:
    ~ring() override { of_.drop_reference(); }
    message_alarm& of_;
  };

  ~message_alarm() {
    if (armed_ != nullptr) armed_->drop_reference();
  }

  void expire(ring& fired) noexcept;
  void end() noexcept;
  [[nodiscard]] std::optional<std::chrono::nanoseconds> left_of(const ring& last,
                                                                bool is_armed) const noexcept;
  [[nodiscard]] bool reaches_somebody() const noexcept;
  [[nodiscard]] bool is_of_caller() const noexcept {
    const scheduler* const here = scheduler::current();
    return here != nullptr && &here->core() == &runtime_;
  }
  runtime_core& runtime_;
  const std::int64_t period_ns_;
  const timer_target to_;
  const std::unique_ptr<message_source> what_;  // used by the scheduler at which it expires
  // Guards armed_, and that it stands in the wheel. Taken before the wheel's lock, so no leaf;
  // never held at a park or while a message is sent.
  outer_mutex lock_;
  ring* armed_ = nullptr;  // a reference; null: over
  bool cancelled_ = false;
  atomic<std::uint32_t> references_{1};
};

namespace {

void arm(runtime_core& runtime, alarm& what) noexcept {
  if (runtime.work().timers.arm(what)) scheduler::current()->note_deadline();
}

}  // namespace

void message_alarm::start(std::int64_t deadline_ns) {
  const std::lock_guard guard(lock_);
  armed_ = new ring(deadline_ns, *this);
  arm(runtime_, *armed_);
}

bool message_alarm::reaches_somebody() const noexcept {
  const pid* const who = std::get_if<pid>(&to_);
  return who == nullptr || find_slot(*who) != nullptr;
}

void message_alarm::expire(ring& fired) noexcept {
  full_envelope message = what_->next();
  delivery result = delivery::full;
  try {
    if (message != nullptr) {
      result = std::visit([&](const auto& to) { return post(to, message); }, to_);
    }
  } catch (const std::bad_alloc&) {
    // LIMIT: as with a full mailbox, this message is lost, and the next one may find room.
  }
  ring* next = nullptr;
  if (period_ns_ > 0 && result != delivery::no_such_actor) {
    const std::int64_t now = monotonic_ns();
    const std::int64_t late = now - fired.deadline_ns();
    next =
        new (std::nothrow) ring(fired.deadline_ns() + (late / period_ns_ + 1) * period_ns_, *this);
  }
  ring* over = nullptr;
  {
    const std::lock_guard guard(lock_);
    over = cancelled_ ? next : std::exchange(armed_, next);
    if (!cancelled_ && next != nullptr) arm(runtime_, *next);
  }
  if (over != nullptr) over->drop_reference();
}

void message_alarm::end() noexcept {
  ring* over = nullptr;
  {
    const std::lock_guard guard(lock_);
    over = std::exchange(armed_, nullptr);
  }
  if (over != nullptr) over->drop_reference();
}

std::optional<std::chrono::nanoseconds> message_alarm::left_of(const ring& last,
                                                               bool is_armed) const noexcept {
  if (!is_armed || !reaches_somebody()) return std::nullopt;
  return std::chrono::nanoseconds(std::max<std::int64_t>(last.deadline_ns() - monotonic_ns(), 0));
}

std::optional<std::chrono::nanoseconds> message_alarm::cancel() {
  if (!is_of_caller()) return std::nullopt;
  ring* last = nullptr;
  bool was_armed = false;
  {
    const std::lock_guard guard(lock_);
    cancelled_ = true;
    last = std::exchange(armed_, nullptr);
    was_armed = last != nullptr && runtime_.work().timers.disarm(*last);
  }
  if (last == nullptr) return std::nullopt;
  const auto left = left_of(*last, was_armed);
  last->drop_reference();
  return left;
}

std::optional<std::chrono::nanoseconds> message_alarm::read() {
  if (!is_of_caller()) return std::nullopt;
  const std::lock_guard guard(lock_);
  if (armed_ == nullptr) return std::nullopt;
  return left_of(*armed_, runtime_.work().timers.is_armed(*armed_));
}

void alarm_dropper::operator()(message_alarm* held) const noexcept { held->drop_reference(); }

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
