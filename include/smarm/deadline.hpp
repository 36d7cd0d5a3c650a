// deadline is the moment at which a wait gives up: nanoseconds on the monotonic clock, or never.
//
// Every wait takes one. It is made from a duration (counted from now) or from a steady_clock time
// point; both saturate, so duration::max() is "never" and a negative duration is "at once".
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace smarm {

class deadline {
 public:
  using clock = std::chrono::steady_clock;

  // A default deadline never comes.
  constexpr deadline() noexcept = default;

  // A time point of the steady clock is a deadline.
  template <class Duration>
  constexpr deadline(std::chrono::time_point<clock, Duration> when) noexcept
      : ns_(to_ns(when.time_since_epoch())) {}

  // A duration is a deadline that far from now.
  template <class Rep, class Period>
  deadline(std::chrono::duration<Rep, Period> in) noexcept : ns_(after_ns(to_ns(in))) {}

  [[nodiscard]] static constexpr deadline never() noexcept { return {}; }

  // from_ns takes nanoseconds of CLOCK_MONOTONIC, the steady clock's own count.
  [[nodiscard]] static constexpr deadline from_ns(std::int64_t ns) noexcept {
    deadline result;
    result.ns_ = ns;
    return result;
  }

  [[nodiscard]] constexpr std::int64_t ns() const noexcept { return ns_; }
  [[nodiscard]] constexpr bool is_never() const noexcept { return ns_ == never_value; }
  [[nodiscard]] bool has_passed() const noexcept { return !is_never() && now_ns() >= ns_; }

  friend constexpr auto operator<=>(const deadline&, const deadline&) noexcept = default;

 private:
  static constexpr std::int64_t never_value = std::numeric_limits<std::int64_t>::max();

  static std::int64_t now_ns() noexcept {
    return std::chrono::nanoseconds(clock::now().time_since_epoch()).count();
  }

  // Compared as long double first: a duration in hours or in floating seconds may be out of range.
  template <class Rep, class Period>
  static constexpr std::int64_t to_ns(std::chrono::duration<Rep, Period> d) noexcept {
    using wide = std::chrono::duration<long double, std::nano>;
    const long double ns = wide(d).count();
    if (!(ns < 9.2233720368547758e18L)) return never_value;  // also a NaN
    if (ns <= -9.2233720368547758e18L) return std::numeric_limits<std::int64_t>::min();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
  }

  static std::int64_t after_ns(std::int64_t ns) noexcept {
    const std::int64_t now = now_ns();
    return ns >= never_value - now ? never_value : now + (ns > 0 ? ns : 0);
  }

  std::int64_t ns_ = never_value;
};

}  // namespace smarm
