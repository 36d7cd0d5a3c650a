// clock is a set of events that holds, with an event, everything the same thread did before it: so
// it is a number of events per thread. The sets the checker needs (happens-before, causes, what an
// acquire would learn) are all of that kind.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace model {

// LIMIT: threads of one execution, the body's own among them. More is reported as misuse.
inline constexpr std::size_t threads_max = 16;

// event_id names an event: the thread and the place in that thread's program order.
struct event_id {
  std::uint16_t thread = 0xffff;
  std::uint16_t index = 0;
  friend auto operator<=>(const event_id&, const event_id&) = default;
};

// initial is the write that a location is born with; it belongs to no thread.
inline constexpr event_id initial{};

[[nodiscard]] constexpr bool is_initial(event_id id) noexcept { return id.thread == 0xffff; }

struct clock {
  std::array<std::uint16_t, threads_max> count{};

  [[nodiscard]] bool has(event_id id) const noexcept { return count[id.thread] > id.index; }

  void join(const clock& other) noexcept {
    for (std::size_t t = 0; t < threads_max; ++t)
      count[t] = count[t] < other.count[t] ? other.count[t] : count[t];
  }
};

}  // namespace model
