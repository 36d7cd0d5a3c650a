// Envelopes, sending, and the receive that picks.
#include <new>
#include <utility>

#include <smarm/mailbox.hpp>
#include <smarm/select.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/mailbox_hook.hpp"
#include "actor/mailbox_wait.hpp"
#include "actor/names.hpp"
#include "actor/reply_cell.hpp"
#include "base/assert.hpp"
#include "fiber/stack.hpp"
#include "sched/wait_reason.hpp"
#include "sync/wait_list.hpp"

namespace smarm {

namespace detail {

namespace {

std::size_t allocation_size(const message_type& type) noexcept {
  const std::size_t align = type.align < alignof(void*) ? alignof(void*) : type.align;
  return ((sizeof(envelope) + align - 1) & ~(align - 1)) + type.size;
}

constexpr bool is_pooled(const message_type& type) noexcept { return type.align <= pool_granule; }

}  // namespace

envelope* envelope_allocate(const message_type& type) {
  const std::size_t size = allocation_size(type);
  void* const memory =
      is_pooled(type) ? pool_allocate(size) : ::operator new(size, std::align_val_t(type.align));
  return ::new (memory) envelope{nullptr, &type};
}

void envelope_free(envelope& empty) noexcept {
  const message_type& type = *empty.type;
  if (type.give_back != nullptr) return type.give_back(empty);
  if (is_pooled(type)) {
    pool_free(&empty, allocation_size(type));
  } else {
    ::operator delete(&empty, allocation_size(type), std::align_val_t(type.align));
  }
}

delivery post(pid to, full_envelope& message) {
  waker wake;
  delivery result = delivery::no_such_actor;
  (void)with_box(to, [&](actor_box& box) {
    if (!box.has_room()) {
      result = delivery::full;
      return;
    }
    wake = box.append(*message.release());
    result = delivery::sent;
  });
  wake.wake();
  return result;
}

delivery post(std::string_view name, full_envelope& message) {
  const pid who = pid_of_name(name);
  return who.is_valid() ? post(who, message) : delivery::no_such_name;
}

delivery post(const alias& to, full_envelope& message) {
  slot* const found = find_slot(to.owner);
  if (found == nullptr) return delivery::no_such_actor;
  waker wake;
  alias_entry* used_up = nullptr;
  mailbox_hook* ends = nullptr;
  delivery result = delivery::no_such_actor;
  (void)if_box(*found, to.owner.generation, [&](actor_box& box) {
    alias_entry* const entry = box.find_alias(to.id);
    if (entry == nullptr) return;
    if (!box.has_room()) {
      result = delivery::full;
      return;
    }
    if (entry->use != alias_use::any) used_up = box.take_alias(to.id);
    if (entry->use == alias_use::reply_demonitor && entry->hook != nullptr) {
      ends = entry->hook;
      ends->add_reference();  // the entry stood, so the hook does
    }
    wake = box.append(*message.release());
    result = delivery::sent;
  });
  wake.wake();
  delete used_up;
  if (ends != nullptr) {
    (void)ends->detach();
    ends->drop_reference();
  }
  return result;
}

// Looks through the kept messages behind `position`, which it moves on.
full_envelope actor_box::take_kept(std::span<const pattern> patterns, envelope*& position,
                                   std::size_t& which) {
  // For as long as the walk lasts: a predicate that receives would take what we stand on.
  if (matching) throw misuse("smarm::receive: inside the predicate of a receive");
  const struct matching_now {
    bool& flag;
    explicit matching_now(bool& of) : flag(of) { flag = true; }
    ~matching_now() { flag = false; }
  } guard(matching);
  for (envelope* at = position == nullptr ? kept.front() : position->next; at != nullptr;
       at = at->next) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const pattern& wanted = patterns[i];
      if (wanted.type != nullptr && wanted.type != at->type) continue;
      if (wanted.accepts != nullptr && !wanted.accepts(wanted.handler, payload_of(*at))) continue;
      which = i;
      return kept.take(position);
    }
    position = at;
  }
  return nullptr;
}

full_envelope actor_box::take_present(std::span<const pattern> patterns, std::size_t& which) {
  envelope* position = nullptr;
  for (;;) {
    if (full_envelope found = take_kept(patterns, position, which)) {
      taken.store(taken.load(relaxed) + 1, relaxed);  // relaxed: the owner's, a hint to others
      return found;
    }
    const raw_guard guard(home->lock);
    if (arrived.empty()) return nullptr;
    kept.append_all(arrived);
  }
}

bool mailbox_case::is_ready() {
  found_ = self_box("select").take_present(patterns_, which_);
  return found_ != nullptr;
}

bool mailbox_case::enroll(const waker& wake) {
  actor_box& box = self_box("select");
  const raw_guard guard(box.home->lock);
  if (!box.arrived.empty()) return false;
  box.waiting = wake;
  return true;
}

void mailbox_case::withdraw() noexcept {
  // The caller has a box: it enrolled.
  auto& box = static_cast<actor_box&>(*extension_of_self());
  const raw_guard guard(box.home->lock);
  box.waiting = {};
  box.keep_handed();
}

full_envelope actor_box::take(std::span<const pattern> patterns, deadline until,
                              std::size_t& which) {
  envelope* position = nullptr;
  for (;;) {
    if (full_envelope found = take_kept(patterns, position, which)) {
      taken.store(taken.load(relaxed) + 1, relaxed);  // relaxed: the owner's, a hint to others
      return found;
    }
    if (!await_more(until)) return nullptr;
  }
}

bool actor_box::hibernate(deadline until) {
  if (kept.empty()) {
    const raw_guard guard(home->lock);
    kept.append_all(arrived);
  }
  if (!kept.empty()) return true;
  // One that comes now finds the stack given back for nothing, and is seen by await_more.
  give_back_unused(home->context.stack);
  while (kept.empty()) {
    if (!await_more(until)) return false;
  }
  return true;
}

std::size_t actor_box::count() noexcept {
  const raw_guard guard(home->lock);
  return appended - taken.load(relaxed);  // relaxed: the owner's own
}

void actor_box::flush_down(monitor_id ref) noexcept {
  if (matching) return;  // a predicate asks: the walk stands on what is kept
  {
    const raw_guard guard(home->lock);
    kept.append_all(arrived);
  }
  envelope* before = nullptr;
  for (envelope* at = kept.front(); at != nullptr; before = at, at = at->next) {
    if (at->type != &message_type_of<down> || static_cast<down*>(payload_of(*at))->ref != ref) {
      continue;
    }
    const full_envelope gone = kept.take(before);
    taken.store(taken.load(relaxed) + 1, relaxed);  // relaxed: as in take
    return;
  }
}

full_envelope mailbox_take(std::span<const pattern> patterns, deadline until, std::size_t& which) {
  actor_box& box = self_box("receive");
  box.take_turn();
  return box.take(patterns, until, which);
}

}  // namespace detail

using detail::actor_box;

bool hibernate(deadline until) {
  actor_box& box = detail::self_box("hibernate");
  if (box.matching) throw misuse("smarm::hibernate: inside the predicate of a receive");
  box.take_turn();
  return box.hibernate(until);
}

std::size_t mailbox_size() { return detail::self_box("mailbox_size").count(); }

void limit_mailbox(std::size_t messages_max) {
  actor_box& box = detail::self_box("limit_mailbox");
  const detail::raw_guard guard(box.home->lock);
  box.capacity = messages_max;
}

alias make_alias(alias_use use) {
  actor_box& box = detail::self_box("make_alias");
  auto* const entry = new detail::alias_entry{++box.last_id, use, nullptr};
  const detail::raw_guard guard(box.home->lock);
  entry->next = std::exchange(box.aliases, entry);
  return {box.who, entry->id};
}

bool unalias(const alias& what) {
  actor_box& box = detail::self_box("unalias");
  if (what.owner != box.who) return false;
  detail::alias_entry* gone = nullptr;
  {
    const detail::raw_guard guard(box.home->lock);
    gone = box.take_alias(what.id);
  }
  delete gone;
  return gone != nullptr;
}

}  // namespace smarm
