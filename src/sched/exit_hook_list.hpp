// exit_hook_list is the list of hooks that an exit took off its actor's slot, and who reports a
// failure that has no one to report to.
//
// Threads: the scheduler that ran the actor, once, after set_done: no hook comes after (exit_hook).
#pragma once

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

#include "sched/body.hpp"
#include "sched/exit_hook.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

class actor_extension;

struct exit_hook_list {
 public:
  // has_hooks: false: there is none, and none will come. By the exit, after set_done.
  [[nodiscard]] static bool has_hooks(const slot& ended) noexcept {
    // seq_cst: pairs with link and set_done, see exit_hook.hpp.
    return ended.hooks.load(seq_cst) != nullptr;
  }

  // Takes the slot's hooks, and with them the list's references.
  explicit exit_hook_list(slot& ended) noexcept;
  ~exit_hook_list();
  exit_hook_list(const exit_hook_list&) = delete;
  exit_hook_list& operator=(const exit_hook_list&) = delete;

  // is_heard tells whether somebody learns of the end by a hook.
  [[nodiscard]] bool is_heard() const noexcept;
  // close tells the extension, where there is one. Before the joiner is told.
  void close(pid who, const exit_reason& why) noexcept;
  // call_all calls each hook, in the order in which they were added.
  void call_all(pid who, const exit_reason& why) noexcept;

  // link, link_first and unlink change the list of a live slot, with its lock held.
  static void link(slot& on, exit_hook& hook) noexcept;
  static void link_first(slot& on, exit_hook& hook) noexcept;
  [[nodiscard]] static bool unlink(slot& on, exit_hook& hook) noexcept;

 private:
  // Others may be due while the news of an end goes out to many.
  static constexpr unsigned calls_per_yield = 256;

  exit_hook* first_;
  actor_extension* extension_ = nullptr;  // it is first_ then
};

// give_way_at_end lets other actors run in the middle of an exit that has many to tell. In
// sched/park.cpp, as every switch.
void give_way_at_end() noexcept;

// report_unobserved tells of a failure that nobody can learn of: config::on_unobserved_failure, or
// a line on standard error.
void report_unobserved(const slot& ended, const body_header& header) noexcept;

}  // namespace smarm::detail
