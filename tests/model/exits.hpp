// What a model needs of an actor's exit when that actor has links, a mailbox or monitors.
#pragma once

#include <cstdint>

#include <smarm/exit_reason.hpp>

#include "actor/actor_box.hpp"
#include "actor/shared_state.hpp"
#include "sched/driver.hpp"
#include "sched/exit_hook_list.hpp"
#include "tests/model/actors.hpp"

namespace smarm::under_model {

// shared_actors is what actors share (actor/shared_state.hpp) for one execution: made first in it.
class shared_actors {
 public:
  shared_actors() { current() = &state_; }
  ~shared_actors() { current() = nullptr; }
  shared_actors(const shared_actors&) = delete;
  shared_actors& operator=(const shared_actors&) = delete;

  [[nodiscard]] static detail::shared_state*& current() noexcept {
    static detail::shared_state* now = nullptr;
    return now;
  }

 private:
  detail::shared_state state_;
};

// with_box gives an actor its box beforehand, where a model is not about its making.
inline void with_box(actor& who) { detail::make_box(who, who.who()); }

// settle_in_runtime introduces an actor with a box and says whose it is, which publish_queued
// publishes in production: for models of what a runtime keeps of its actors.
inline void settle_in_runtime(actor& who, std::uint32_t number) {
  stage::introduce(who, number);
  with_box(who);
  run_as(&who);
  who.owner.store(detail::current_runtime(), detail::relaxed);
  run_as(nullptr);
}

// finish tells of the end of an actor that has been run: what scheduler::publish_end does with the
// slot once its function is over, but for the body. By the model thread that ran it.
inline void finish(actor& self, const exit_reason& why) {
  const pid who = self.who();
  {
    detail::exit_hook_list hooks(self);
    hooks.close(who, why);
    hooks.call_all(who, why);
  }
  model::expect(self.extension.load(detail::relaxed) == nullptr, "the next one begins without");
  static_cast<void>(self.state.reclaim());
}

}  // namespace smarm::under_model
