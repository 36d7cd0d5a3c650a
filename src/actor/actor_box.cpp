// A box's beginning and end.
#include "actor/actor_box.hpp"

#include <smarm/errors.hpp>
#include <smarm/this_actor.hpp>

#include "actor/groups.hpp"
#include "actor/links.hpp"
#include "actor/message_alarm.hpp"
#include "actor/names.hpp"
#include "actor/reply_cell.hpp"
#include "sched/exit_hook_list.hpp"

namespace smarm::detail {

actor_box::~actor_box() {
  while (aliases != nullptr) delete std::exchange(aliases, aliases->next);
}

void make_box(slot& of, pid who) {
  auto* const fresh = new actor_box;
  fresh->home = &of;
  fresh->who = who;
  {
    const raw_guard guard(of.lock);
    // Not installed: somebody else was faster, or the actor has ended; the caller looks again.
    (void)install_extension(of, who.generation, *fresh);
  }
  fresh->drop_reference();
}

actor_box& self_box(const char* call) {
  slot* const me = slot_of_self();
  if (me == nullptr) throw misuse(std::string("smarm::") + call + ": this thread is no actor");
  for (;;) {
    if (actor_extension* const extension = extension_of_self()) {
      return static_cast<actor_box&>(*extension);
    }
    // Done already, so it can have none: a destructor of the actor's result, or of what was left
    // for it, asks.
    if (!me->state.is_live(me->generation)) {
      throw misuse(std::string("smarm::") + call + ": this actor has ended");
    }
    make_box(*me, {me->index, me->generation});
  }
}

alias_entry* actor_box::find_alias(std::uint64_t id) noexcept {
  alias_entry* at = aliases;
  while (at != nullptr && at->id != id) at = at->next;
  return at;
}

alias_entry* actor_box::take_alias(std::uint64_t id) noexcept {
  alias_entry** at = &aliases;
  while (*at != nullptr && (*at)->id != id) at = &(*at)->next;
  alias_entry* const found = *at;
  if (found != nullptr) *at = found->next;
  return found;
}

exit_reason actor_box::stop_reason() noexcept {
  const raw_guard guard(home->lock);
  return stop_noted ? stop_why : exit_reason::stopped();
}

bool actor_box::is_heard() noexcept {
  const raw_guard guard(home->lock);
  return links.size() > 0;
}

void actor_box::closing(pid gone, const exit_reason& why) noexcept {
  constexpr unsigned calls_per_yield = 128;
  // From here on nobody else touches the box: the actor is done, and this lock comes after the last
  // who saw it live.
  link_table peers;
  {
    const raw_guard guard(home->lock);
    peers.swap(links);
    kept.append_all(arrived);
  }
  if (has_name) forget_name(gone);
  if (is_in_groups) forget_groups(gone);
  unsigned calls = 0;
  while (half_link* const half = peers.pop()) {
    const pid peer = half->peer;
    half_link::free(half);
    signal_from_link(peer, gone, why);
    if (++calls % calls_per_yield == 0) give_way_at_end();
  }
  // Here, where the actor still stands: what is destroyed may park.
  while (message_alarm* const timer = timers.pop_front()) {
    timer->end_with_destination();
    if (++calls % calls_per_yield == 0) give_way_at_end();
  }
  kept.clear();
  reply_cell::drop_answered(std::exchange(answered, nullptr));
}

}  // namespace smarm::detail
