// Hooks on an actor's exit: hanging them on, taking them off, calling them, and the last resort.
#include "sched/exit_hook.hpp"

#include <cstdio>
#include <string>
#include <utility>

#include <smarm/config.hpp>

#include "base/captured_stack.hpp"
#include "sched/actor_extension.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/lookup.hpp"
#include "sched/runtime_core.hpp"

namespace smarm::detail {

void exit_hook::destroy() noexcept { delete this; }

exit_hook_list::exit_hook_list(slot& ended) noexcept : first_(nullptr) {
  if (!has_hooks(ended)) return;
  const raw_guard guard(ended.lock);
  first_ = ended.hooks.load(relaxed);          // relaxed: under the lock
  ended.hooks.store(nullptr, relaxed);         // relaxed: as above
  extension_ = ended.extension.load(relaxed);  // relaxed: as above
  ended.extension.store(nullptr, relaxed);     // relaxed: as above
}

exit_hook_list::~exit_hook_list() {
  while (exit_hook* const hook = first_) {
    first_ = hook->next_;
    hook->drop_reference();
  }
}

bool exit_hook_list::is_heard() const noexcept {
  if (extension_ == nullptr) return first_ != nullptr;
  return first_->next_ != nullptr || extension_->is_heard();
}

void exit_hook_list::close(pid who, const exit_reason& why) noexcept {
  if (extension_ != nullptr) extension_->closing(who, why);
}

void exit_hook_list::call_all(pid who, const exit_reason& why) noexcept {
  unsigned calls = 0;
  for (exit_hook* hook = first_; hook != nullptr; hook = hook->next_) {
    hook->on_exit(who, why);
    if (++calls % calls_per_yield == 0) give_way_at_end();
  }
}

void exit_hook_list::link(slot& on, exit_hook& hook) noexcept {
  exit_hook* const first = on.hooks.load(relaxed);  // relaxed: under the lock
  hook.next_ = nullptr;
  if (first == nullptr) {
    hook.previous_ = &hook;
    on.hooks.store(&hook, seq_cst);  // pairs with the exit's look, see exit_hook.hpp
    return;
  }
  hook.previous_ = std::exchange(first->previous_, &hook);
  hook.previous_->next_ = &hook;
}

void exit_hook_list::link_first(slot& on, exit_hook& hook) noexcept {
  exit_hook* const first = on.hooks.load(relaxed);  // relaxed: under the lock
  hook.next_ = first;
  hook.previous_ = first == nullptr ? &hook : std::exchange(first->previous_, &hook);
  on.hooks.store(&hook, seq_cst);  // pairs with the exit's look, see exit_hook.hpp
}

bool exit_hook_list::unlink(slot& on, exit_hook& hook) noexcept {
  exit_hook* const first = on.hooks.load(relaxed);  // relaxed: under the lock
  const bool is_first = first == &hook;
  if (!is_first && (hook.previous_ == nullptr || hook.previous_->next_ != &hook)) return false;
  if (is_first) {
    on.hooks.store(hook.next_, relaxed);  // relaxed: an exit that still sees it takes the lock
  } else {
    hook.previous_->next_ = hook.next_;
  }
  if (hook.next_ != nullptr) {
    hook.next_->previous_ = hook.previous_;
  } else if (!is_first) {
    first->previous_ = hook.previous_;
  }
  hook.next_ = nullptr;
  hook.previous_ = nullptr;
  return true;
}

bool add_exit_hook(pid who, exit_hook& hook) noexcept {
  slot* const found = find_slot(who);
  if (found == nullptr) return false;
  const raw_guard guard(found->lock);
  exit_hook_list::link(*found, hook);
  if (!found->state.is_live_since(who.generation)) {
    (void)exit_hook_list::unlink(*found, hook);
    return false;
  }
  hook.add_reference();
  return true;
}

bool remove_exit_hook(pid who, exit_hook& hook) noexcept {
  slot* const found = find_slot(who);
  if (found == nullptr) return false;
  {
    const raw_guard guard(found->lock);
    // Not live: the exit has taken the list, or will, and calls the hook.
    if (!found->state.is_live(who.generation) || !exit_hook_list::unlink(*found, hook)) {
      return false;
    }
  }
  hook.drop_reference();
  return true;
}

bool install_extension(slot& on, std::uint32_t generation, actor_extension& extension) noexcept {
  if (on.extension.load(relaxed) != nullptr) return false;  // relaxed: under the lock
  exit_hook_list::link_first(on, extension);
  if (!on.state.is_live_since(generation)) {
    (void)exit_hook_list::unlink(on, extension);
    return false;
  }
  extension.add_reference();
  // release: pairs with extension_of_self, which reads it without the lock.
  on.extension.store(&extension, release);
  return true;
}

void install_first_extension(slot& fresh, actor_extension& extension) noexcept {
  exit_hook_list::link_first(fresh, extension);
  extension.add_reference();
  fresh.extension.store(&extension, relaxed);  // relaxed: published by publish_queued
}

void install_first_hook(slot& fresh, exit_hook& hook) noexcept {
  exit_hook_list::link(fresh, hook);
  hook.add_reference();
}

void report_unobserved(const slot& ended, const body_header& header) noexcept {
  // relaxed: written before this actor was published, and this is its own scheduler.
  const auto report = ended.owner.load(relaxed)->settings().on_unobserved_failure;
  if (report != nullptr) {
    report(header.who, header.name, header.why);
    return;
  }
  try {
    const std::string line = "smarm: actor " + to_string(header.who) +
                             (header.name.empty() ? "" : " \"" + header.name + "\"") + " " +
                             header.why.message() + ", and nobody was there to learn of it" +
                             indented_stack(header.why) + "\n";
    std::fputs(line.c_str(), stderr);
  } catch (...) {
    std::fputs("smarm: an actor failed, and nobody was there to learn of it\n", stderr);
  }
}

}  // namespace smarm::detail
