// Monitors into a mailbox, by pid and by name.
#include "actor/mailbox_hook.hpp"

#include <new>
#include <utility>

#include <smarm/this_actor.hpp>

#include "actor/names.hpp"

namespace smarm {

namespace detail {

mailbox_hook::mailbox_hook(actor_box& receiver, pid target, std::string name)
    : monitor_hook(target, ++receiver.last_id, std::move(name)),
      home_(*receiver.home),
      receiver_(receiver.who),
      down_(envelope_allocate(message_type_of<down>)) {}

mailbox_hook* mailbox_hook::make(actor_box& receiver, pid target, std::string name) {
  return new mailbox_hook(receiver, target, std::move(name));
}

void mailbox_hook::deliver(down& news) noexcept {
  end_alias();
  waker wake;
  (void)if_box(home_, receiver_.generation, [&](actor_box& box) {
    if (silenced_) return;
    envelope* const sealed = std::exchange(down_, nullptr);
    ::new (payload_of(*sealed)) down(std::move(news));
    wake = box.append(*sealed);
  });
  wake.wake();
}

void mailbox_hook::silence() noexcept {
  end_alias();
  const raw_guard guard(home_.lock);
  silenced_ = true;
}

void mailbox_hook::abandon() noexcept {
  end_alias();
  free_envelope();
}

void mailbox_hook::end_alias() noexcept {
  if (alias_id_ == 0) return;
  alias_entry* gone = nullptr;
  (void)if_box(home_, receiver_.generation,
               [&](actor_box& box) { gone = box.take_alias(alias_id_); });
  delete gone;
}

void mailbox_hook::free_envelope() noexcept {
  if (envelope* const unused = std::exchange(down_, nullptr)) envelope_free(*unused);
}

void mailbox_hook::flush() noexcept {
  // Only the receiver takes out of its mailbox.
  if (!is_actor() || self() != receiver_) return;
  self_box("demonitor_and_flush").flush_down(id());
}

}  // namespace detail

monitor_ref monitor(pid who, to_mailbox_t) {
  auto* const hook = detail::mailbox_hook::make(detail::self_box("monitor"), who, {});
  monitor_ref ref = detail::monitor_access::make(hook);
  hook->attach();
  return ref;
}

monitor_ref monitor(std::string_view name, to_mailbox_t) {
  auto* const hook = detail::mailbox_hook::make(detail::self_box("monitor"),
                                                detail::pid_of_name(name), std::string(name));
  monitor_ref ref = detail::monitor_access::make(hook);
  hook->attach();
  return ref;
}

std::pair<monitor_ref, alias> monitor_with_alias(pid who, alias_use use) {
  detail::actor_box& box = detail::self_box("monitor_with_alias");
  auto* const hook = detail::mailbox_hook::make(box, who, {});
  monitor_ref ref = detail::monitor_access::make(hook);
  auto* const entry = new detail::alias_entry{hook->id(), use, hook};
  hook->lives_with(entry->id);
  {
    const detail::raw_guard guard(box.home->lock);
    entry->next = std::exchange(box.aliases, entry);
  }
  hook->attach();
  return {std::move(ref), alias{box.who, hook->id()}};
}

}  // namespace smarm
