// Stopping children: told to end, waited for, killed, and at last left behind.
//
// The caller is a supervisor, which traps exits and is linked to the child. Afterwards the link,
// the monitor and every signal of that child are gone, whatever came of it. Each call parks, for
// the shutdown's time and the grace at most, unless the shutdown is infinity.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>
#include <smarm/supervisor.hpp>

namespace smarm::detail {

// How a child ended; nothing: it did not, and is left behind.
using child_end = std::optional<exit_reason>;

// shutdown_of is the shutdown with the default of the child's type in place.
[[nodiscard]] child_shutdown shutdown_of(const child_spec& spec) noexcept;

// stop_child stops one child.
[[nodiscard]] child_end stop_child(pid child, child_shutdown how, std::chrono::nanoseconds grace);

// stop_children stops all at once, with one clock for all, and tells what came of each.
void stop_children(const std::vector<pid>& children, child_shutdown how,
                   std::chrono::nanoseconds grace,
                   const std::function<void(pid, const child_end&)>& tell);

// is_expected tells whether a child that was told to end did so as told: other ends are reported.
[[nodiscard]] bool is_expected(const exit_reason& why, child_shutdown how,
                               child_restart restart) noexcept;

}  // namespace smarm::detail
