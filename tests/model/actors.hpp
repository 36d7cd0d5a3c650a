// actors stand in for scheduler.cpp and park.cpp in the models: each actor is a model thread of its
// own, with a slot, and waits by the production slot_state. What is left out is the switch: an
// actor that parks saves no context and picks no other one to run, and whoever makes it runnable
// leaves a token where production has a run queue and a switch.
//
// The token orders what the queues order, as their own models prove: whoever takes it comes after
// whoever left it. A wake that comes before the park leaves none; then the word alone orders.
//
// Begin with a `stage` in the model's body; run each actor as
//   model::parallel([&] { stage.run(receiver, [&] { ... }); }, ...)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include <smarm/pid.hpp>

#include "base/atomic.hpp"
#include "model/model.hpp"
#include "sched/slot.hpp"
#include "sched/stop.hpp"
#include "sched/timers.hpp"
#include "sched/wait.hpp"

namespace smarm::under_model {

// actor is a slot and the token by which it is resumed.
struct actor : detail::slot {
  actor();

  [[nodiscard]] pid who() const noexcept { return {index, state.status().generation()}; }
  // enqueue makes the actor, which is queued, runnable.
  void enqueue() noexcept;
  // resume waits for the token, where there is one to come, and claims the actor.
  void resume() noexcept;

  detail::atomic<std::uint32_t> tokens{0};
  std::uint32_t taken = 0;
};

// current is the actor that the calling model thread is, or null.
[[nodiscard]] actor* current() noexcept;
// run_as: the calling model thread, a scheduler, runs that actor from here on; null: none.
void run_as(actor* who) noexcept;

// stop requests the stop of an actor, as request_stop would.
bool stop(actor& who, std::uint32_t generation) noexcept;
inline bool stop(actor& who) noexcept { return stop(who, 1); }

// How an actor's function has ended.
enum class ending : std::uint8_t { normal, stopped };

class stage {
 public:
  // `timed`: some actor waits with a deadline; then fire_due has to be a thread of the model.
  explicit stage(bool timed = false);
  ~stage();
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  // run is the life of an actor on the calling model thread, up to where its function has ended; a
  // stop ends it.
  template <class Body>
  ending run(actor& self, Body body) {
    begin(self);
    ending how = ending::normal;
    try {
      body();
    } catch (const detail::forced_stop&) {
      how = ending::stopped;
    }
    end(self);
    return how;
  }

  // deliver_by has actors made runnable by `how`, where a model has a run queue and schedulers
  // instead of tokens. Undone by the next stage.
  static void deliver_by(void (*how)(actor& runnable)) noexcept;

  // introduce gives an actor a number, by which find_slot finds it.
  static void introduce(actor& who, std::uint32_t number) noexcept;

  // fire_due waits until a timer is armed, or the actors have ended, and fires what is due then.
  void fire_due(std::int64_t at_ns) noexcept;
  // settle says that no timer will be armed any more: by the actor that would have.
  void settle() noexcept;

 private:
  static void begin(actor& self) noexcept;
  static void end(actor& self) noexcept;

  std::unique_ptr<detail::timers> wheel_;
};

}  // namespace smarm::under_model
