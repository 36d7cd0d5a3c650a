// From a pid to its slot, and the stop of the actor found there.
#include "sched/lookup.hpp"

#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/slot_table.hpp"

namespace smarm::detail {

namespace {

slot* find_live(pid who) noexcept {
  slot* const found = slot_table::instance().find(who.index);
  return found != nullptr && found->state.is_live(who.generation) ? found : nullptr;
}

}  // namespace

slot* find_slot(pid who) noexcept {
  slot* const found = find_live(who);
  const scheduler* const here = scheduler::current();
  if (found == nullptr || here == nullptr) return found;
  // relaxed: behind is_live's acquire, which pairs with publish_queued.
  return found->owner.load(relaxed) == &here->core() ? found : nullptr;
}

slot* find_slot_in(const runtime_core& where, pid who) noexcept {
  slot* const found = find_live(who);
  // relaxed: as in find_slot.
  return found != nullptr && found->owner.load(relaxed) == &where ? found : nullptr;
}

bool stop_slot(slot& target, std::uint32_t generation) noexcept {
  runtime_core* const core = target.owner.load(relaxed);  // relaxed: as in find_slot
  scheduler* const here = scheduler::current();
  if (here != nullptr && &here->core() == core) {
    const auto result = target.state.request_stop(generation);
    if (result == slot_state::stop_result::must_enqueue) here->enqueue(target);
    return result != slot_state::stop_result::no_such_actor;
  }
  const run_life::pin pin(core->life());
  const auto result = target.state.request_stop(generation);
  if (result == slot_state::stop_result::must_enqueue) core->work().enqueue_from_outside(target);
  return result != slot_state::stop_result::no_such_actor;
}

}  // namespace smarm::detail
