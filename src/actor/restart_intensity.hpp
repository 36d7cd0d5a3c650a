// restart_intensity decides whether a supervisor may restart once more: OTP's rule, to the second.
//
// The present time and those of the restarts before it are whole seconds of a clock that never goes
// back. A restart counts as long as its second is not before (now - period), which includes the
// boundary; it is allowed if no more than `intensity` count, itself included. Pure: the caller
// brings the time. Used by the supervisor's actor only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace smarm::detail {

class restart_intensity {
 public:
  // Throws std::bad_alloc: an empty std::deque may hold memory.
  restart_intensity(unsigned intensity, std::int64_t period_seconds)
      : intensity_(intensity), period_(period_seconds) {}

  // add counts a restart at that second and tells whether it is allowed.
  [[nodiscard]] bool add(std::int64_t now_seconds) {
    forget_old(now_seconds);
    restarts_.push_back(now_seconds);
    return restarts_.size() <= intensity_;
  }

  // recent is how many count at that second.
  [[nodiscard]] std::size_t recent(std::int64_t now_seconds) {
    forget_old(now_seconds);
    return restarts_.size();
  }

 private:
  void forget_old(std::int64_t now_seconds) {
    while (!restarts_.empty() && restarts_.front() < now_seconds - period_) restarts_.pop_front();
  }

  std::size_t intensity_;
  std::int64_t period_;
  std::deque<std::int64_t> restarts_;  // oldest first; no more than intensity_ + 1
};

}  // namespace smarm::detail
