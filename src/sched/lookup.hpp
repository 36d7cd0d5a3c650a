// lookup turns a pid into its slot, by the rule that every call with a pid follows: an actor finds
// the actors of its own runtime, a foreign thread those of all.
#pragma once

#include <smarm/pid.hpp>

#include "sched/slot.hpp"

namespace smarm::detail {

class runtime_core;

// find_slot returns the slot in which that actor lives, or null: stale, forged, or of a runtime
// that the caller may not reach. The actor may end at any moment after; what the caller does next
// must name the generation. Any thread; never parks.
[[nodiscard]] slot* find_slot(pid who) noexcept;

// find_slot_in is find_slot for the actors of one runtime only.
[[nodiscard]] slot* find_slot_in(const runtime_core& where, pid who) noexcept;

// stop_slot requests the stop of that generation; false: it does not live any more.
bool stop_slot(slot& target, std::uint32_t generation) noexcept;

}  // namespace smarm::detail
