// What the exit and the bonds of a new actor need of links.
#pragma once

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm::detail {

// signal_from_link delivers the exit signal of a link to the actor at its other end, if it still
// has its half. Never parks.
void signal_from_link(pid to, pid from, const exit_reason& why) noexcept;

}  // namespace smarm::detail
