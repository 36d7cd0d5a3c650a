// What an actor's end needs of the groups.
#pragma once

#include <smarm/pid.hpp>

namespace smarm::detail {

// forget_groups takes an actor that has ended out of all its groups and tells who watches them. By
// its exit.
void forget_groups(pid gone) noexcept;

}  // namespace smarm::detail
