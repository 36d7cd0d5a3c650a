// The drivers' side of the runtime core, as the functions that the io layer sees.
#include "sched/driver.hpp"

#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"

namespace smarm::detail {

runtime_core* current_runtime() noexcept {
  scheduler* const here = scheduler::current();
  return here == nullptr ? nullptr : &here->core();
}

const config& runtime_config(const runtime_core& of) noexcept { return of.settings(); }

driver& runtime_driver(runtime_core& of, driver_kind kind,
                       std::unique_ptr<driver> (*make)(runtime_core&)) {
  return of.driver_of(kind, make);
}

void operation_started(runtime_core& of) noexcept { of.life().operation_started(); }

void operation_finished(runtime_core& of) noexcept { of.operation_finished(); }

void fd_wait_started(runtime_core& of) noexcept {
  of.fd_waiters.fetch_add(1, relaxed);  // relaxed: a count
}

void fd_wait_finished(runtime_core& of) noexcept {
  of.fd_waiters.fetch_sub(1, relaxed);  // relaxed: a count
}

}  // namespace smarm::detail
