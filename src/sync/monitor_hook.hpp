// monitor_hook is an exit hook that tells a watcher of the end: the base of each kind of monitor,
// which differ in where the down goes.
#pragma once

#include <utility>

#include <smarm/monitor.hpp>

#include "sched/exit_hook.hpp"

namespace smarm::detail {

class monitor_hook : public exit_hook {
 public:
  [[nodiscard]] pid target() const noexcept { return news_.who; }
  [[nodiscard]] monitor_id id() const noexcept { return news_.ref; }

  // attach hangs the hook on its actor, or delivers at once where there is none.
  void attach() noexcept {
    attached_ = add_exit_hook(target(), *this);
    if (!attached_) tell(exit_reason::noproc());
  }

  // attached_at_birth says that the hook hangs on the actor already.
  void attached_at_birth(pid who) noexcept {
    news_.who = who;
    attached_ = true;
  }

  // detach takes it off; false: the down was, or is just being, delivered.
  [[nodiscard]] bool detach() noexcept {
    if (!attached_ || !remove_exit_hook(target(), *this)) {
      silence();
      return false;
    }
    abandon();
    return true;
  }

  // flush takes a down that was delivered and not received out again; no-op where it cannot be.
  virtual void flush() noexcept {}

  void on_exit(pid, const exit_reason& why) noexcept override { tell(why); }

 protected:
  explicit monitor_hook(pid target, monitor_id id = 0, std::string name = {}) noexcept
      : news_{target, {}, id, std::move(name)} {}

  // silence keeps back a down that is on its way, where that can be done.
  virtual void silence() noexcept {}
  // deliver may move the news away but for `who` and `ref`.
  virtual void deliver(down& news) noexcept = 0;
  // abandon gives up what was kept for the delivery: the receiver is to see the sender go now, and
  // not when the last reference to the hook goes.
  virtual void abandon() noexcept = 0;

 private:
  void tell(const exit_reason& why) noexcept {
    news_.reason = why;
    deliver(news_);
  }

  down news_;              // without its reason; constant once attached, until it is told
  bool attached_ = false;  // written before monitor returns, read by detach
};

// monitor_access makes references on hooks of other layers.
struct monitor_access {
  [[nodiscard]] static monitor_ref make(monitor_hook* hook) noexcept { return monitor_ref(hook); }
};

}  // namespace smarm::detail
