// mailbox_hook is a monitor whose down goes to its maker's mailbox.
//
// Invariants
//   1. The down is delivered under the lock of the receiver's slot, unless `silenced_`, which is
//      guarded by that lock too: so none comes after a demonitor.
//   2. Its envelope is had when the monitor is made.
#pragma once

#include <cstdint>
#include <string>

#include <smarm/detail/envelope.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/pid.hpp>

#include "actor/actor_box.hpp"
#include "sched/slot.hpp"
#include "sync/monitor_hook.hpp"

namespace smarm::detail {

class mailbox_hook final : public monitor_hook {
 public:
  // make gives a hook with one reference, the caller's. Throws std::bad_alloc.
  [[nodiscard]] static mailbox_hook* make(actor_box& receiver, pid target, std::string name);

  // lives_with says that the alias ends with this monitor. Before attach.
  void lives_with(std::uint64_t alias_id) noexcept { alias_id_ = alias_id; }

  void flush() noexcept override;

 private:
  mailbox_hook(actor_box& receiver, pid target, std::string name);
  ~mailbox_hook() override { free_envelope(); }

  void deliver(down& news) noexcept override;
  void silence() noexcept override;
  void abandon() noexcept override;
  void end_alias() noexcept;
  void free_envelope() noexcept;

  slot& home_;
  const pid receiver_;
  envelope* down_;              // its place; null once it is in the mailbox
  std::uint64_t alias_id_ = 0;  // 0: none
  bool silenced_ = false;       // guarded by the lock of home_
};

}  // namespace smarm::detail
