// The public runtime as a thin shell over runtime_core.
#include <smarm/runtime.hpp>

#include "sched/lookup.hpp"
#include "sched/runtime_core.hpp"

namespace smarm {

runtime::runtime(const config& how) : core_(&detail::runtime_core::create(how)) {}

runtime::~runtime() { detail::runtime_core::destroy(*core_); }

std::expected<void, no_such_actor> runtime::request_stop(pid who) noexcept {
  detail::slot* const target = detail::find_slot_in(*core_, who);
  if (target == nullptr || !detail::stop_slot(*target, who.generation)) {
    return std::unexpected(no_such_actor{who});
  }
  return {};
}

void runtime::stop_all() noexcept { core_->stop_all(); }

unsigned runtime::schedulers() const noexcept { return core_->scheduler_count(); }

runtime_counts runtime::counts() const noexcept { return core_->counts(); }

void runtime::rethrow(const exit_reason& why) {
  if (why.is_error()) std::rethrow_exception(why.exception());
  if (!why.is_stopped() && !why.is_orderly()) throw exit_request{why};
  throw misuse("smarm::runtime::run: root was stopped, so there is no result to return");
}

runtime::run_claim::run_claim(runtime& claimed) : claimed_(claimed) { claimed_.core_->claim(); }

runtime::run_claim::~run_claim() { claimed_.core_->end_claim(); }

void runtime::run_claim::run_schedulers() { claimed_.core_->run(); }

}  // namespace smarm
