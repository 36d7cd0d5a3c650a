// What the end of an actor means to its groups.
// Threads: the exit of the actor.
#include "actor/groups.hpp"

namespace smarm::detail {

void forget_groups(pid) noexcept {}

}  // namespace smarm::detail
