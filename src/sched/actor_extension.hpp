// actor_extension is what a higher layer keeps of an actor: its mailbox, its links, its name.
//
// An actor has none until somebody needs it: the actor itself, or whoever links to it or sends it
// something. It is an exit hook, the first on its slot, and the slot knows it by a field of its
// own. So it is found under the slot's lock, stands as long as the actor lives, and hears of the
// end before any monitor does and before a joiner returns.
//
// Threads: as each function says. `the slot's lock held` means that nothing here may take another
// raw_mutex, allocate, call a waker or run a user's code meanwhile.
#pragma once

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

#include "sched/exit_hook.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class actor_extension : public exit_hook {
 public:
  // stop_reason is what to report where a stop unwound the actor. By the actor's exit, once.
  [[nodiscard]] virtual exit_reason stop_reason() noexcept = 0;

  // closing is told of the end before the joiner and the monitors are. Called by the actor's exit,
  // once, when nobody finds the actor any more. It may yield while it runs.
  virtual void closing(pid who, const exit_reason& why) noexcept = 0;

  // is_heard tells whether somebody learns of the end through this extension: then a failure needs
  // no report as one of which nobody knows. By the actor's exit, before closing.
  [[nodiscard]] virtual bool is_heard() noexcept = 0;

 private:
  void on_exit(pid, const exit_reason&) noexcept final {}
};

// slot_of_self is the running actor's slot; null on a thread that is no actor.
[[nodiscard]] slot* slot_of_self() noexcept;

// extension_of_self is the running actor's extension, or null. The caller is an actor.
[[nodiscard]] actor_extension* extension_of_self() noexcept;

// live_extension returns the extension of that actor; null: it has none, or there is no such actor.
// The slot's lock held; valid until it is left.
[[nodiscard]] inline actor_extension* live_extension(slot& of, std::uint32_t generation) noexcept {
  return of.state.is_live(generation) ? of.extension.load(relaxed) : nullptr;  // relaxed: the lock
}

// install_extension gives the actor this extension, unless it has one, and takes a reference;
// false: it has one, or there is no such actor. The slot's lock held.
[[nodiscard]] bool install_extension(slot& on, std::uint32_t generation,
                                     actor_extension& extension) noexcept;

// install_first_extension is install_extension for an actor that is being made: nobody else knows
// its slot.
void install_first_extension(slot& fresh, actor_extension& extension) noexcept;

// install_first_hook hangs a hook on an actor that is being made, and takes a reference.
void install_first_hook(slot& fresh, exit_hook& hook) noexcept;

}  // namespace smarm::detail
