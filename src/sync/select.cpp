// The wait of a select: one waker with every case at once.
//
// Each case keeps its own protocol; what is new is only that one wait is registered in several
// places. A waker names its wait (generation and epoch), so when the first of them wakes the actor
// the calls of all others are void, and each case is told to withdraw before the select goes on.
//
// Why at random and not in turn from the first: with a fixed order a channel that is always ready
// starves those behind it.
#include <algorithm>

#include <smarm/detail/channel_core.hpp>
#include <smarm/detail/oneshot_core.hpp>
#include <smarm/detail/select_case.hpp>
#include <smarm/errors.hpp>

#include "base/clock.hpp"
#include "sched/wait.hpp"
#include "sched/wait_reason.hpp"
#include "sync/channel_core.hpp"

namespace smarm::detail {

namespace {

// Enrolls cases and withdraws those that were, however it is left.
class enrolment {
 public:
  explicit enrolment(std::span<select_case* const> cases) noexcept : cases_(cases) {}
  enrolment(const enrolment&) = delete;
  enrolment& operator=(const enrolment&) = delete;
  ~enrolment() {
    for (select_case* const each : cases_.first(enrolled_)) each->withdraw();
  }

  // all enrolls every case; false: one of them is ready.
  [[nodiscard]] bool all(const waker& wake) {
    for (; enrolled_ < cases_.size(); ++enrolled_) {
      if (!cases_[enrolled_]->enroll(wake)) return false;
    }
    return true;
  }

 private:
  std::span<select_case* const> cases_;
  std::size_t enrolled_ = 0;
};

void require_distinct(std::span<select_case* const> cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (cases[i]->source() == cases[j]->source()) {
        throw misuse("smarm::select: one thing stands in it twice");
      }
    }
  }
}

// The index of a case that is ready, looked for from `first` on; their number: none is.
std::size_t find_ready(std::span<select_case* const> cases, std::size_t first) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::size_t which = (first + i) % cases.size();
    if (cases[which]->is_ready()) return which;
  }
  return cases.size();
}

// Any number will do that does not follow the program: the clock's lower digits, stirred.
std::size_t anywhere(std::size_t below) noexcept {
  const auto now = static_cast<std::uint64_t>(monotonic_ns());
  return below == 0 ? 0 : (now * 0x9e3779b97f4a7c15U >> 32U) % below;
}

}  // namespace

std::size_t select_wait(std::span<select_case* const> cases, deadline until) {
  stop_point();
  require_distinct(cases);
  for (;;) {
    const std::size_t ready = find_ready(cases, anywhere(cases.size()));
    if (ready < cases.size() || until.has_passed()) return ready;
    const waker wake = begin_wait();
    enrolment all(cases);
    if (all.all(wake)) (void)park(wake, wait_reason::select, until);
  }
}

bool channel_case::is_ready() { return core_.is_ready(); }
bool channel_case::enroll(const waker& wake) { return core_.enroll(wake); }
void channel_case::withdraw() noexcept { core_.end_enrolment(); }

bool oneshot_case::is_ready() { return oneshot_try_receive(core_) != channel_status::unready; }
bool oneshot_case::enroll(const waker& wake) { return oneshot_enroll(core_, wake); }
void oneshot_case::withdraw() noexcept { oneshot_end_enrolment(core_); }

}  // namespace smarm::detail
