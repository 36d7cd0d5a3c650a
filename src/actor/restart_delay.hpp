// restart_delay is the time for which a supervisor holds a restart back (restart_backoff).
//
// Pure: the caller brings the number of the attempt and the random part. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include <smarm/supervisor.hpp>

namespace smarm::detail {

// restart_delay of the n-th restart in a row, counted from 1; `random` is from 0 to 1.
[[nodiscard]] inline std::chrono::nanoseconds restart_delay(const restart_backoff& how,
                                                            unsigned attempt, double random) {
  if (how.initial.count() <= 0 || attempt == 0) return std::chrono::nanoseconds(0);
  const auto maximum = static_cast<double>(std::max(how.maximum, how.initial).count());
  const double grown = static_cast<double>(how.initial.count()) *
                       std::pow(std::max(how.factor, 1.0), static_cast<double>(attempt - 1));
  const double whole = std::min(grown, maximum);  // also where the power is infinite
  const double less = whole * std::clamp(how.jitter, 0.0, 1.0) * std::clamp(random, 0.0, 1.0);
  return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(whole - less));
}

// attempts_after is how many restarts in a row count when a child ends that ran for so long.
[[nodiscard]] inline unsigned attempts_after(const restart_backoff& how, unsigned before,
                                             std::chrono::nanoseconds ran) noexcept {
  return ran > how.maximum ? 0 : before;
}

}  // namespace smarm::detail
