// perturb disturbs the core where the order of two steps matters: in a build with SMARM_STRESS each
// call spins, gives up the CPU, sleeps some microseconds or, mostly, does nothing, so that
// interleavings come about which a quiet machine shows once in a million years. In every other
// build a call is nothing at all.
//
// Every decision is a function of one seed, the thread's name and how many threads of that name
// came before it, and of nothing else: SMARM_STRESS_SEED=N makes each thread decide as it did in
// the run that printed N. The threads' speeds the kernel decides, so a replay is likely and not
// certain to fail as the first run did. SMARM_STRESS_TRACE=1 prints what each thread is made to do.
// Threads: any, with any lock held; calls do not allocate, and leave errno as it was.
#pragma once

#include <cstdint>
#include <string_view>

namespace smarm::detail {

// Where a thread is. The names say what happens next, or what has only half happened.
enum class perturb_point : std::uint8_t {
  publish,      // a vacant slot becomes queued
  claim,        // queued becomes running
  yield,        // running becomes queued
  park,         // running becomes parked
  begin_wait,   // a new wait epoch
  notified,     // a wake that came first is consumed
  unpark,       // a wait is ended by a wake
  stop,         // a stop is requested
  shield,       // the shield from stop goes up or down
  end,          // done, and vacant again
  switched,     // a context was left, and what follows it has not been done
  schedule,     // run-next is filled
  steal,        // run-next is taken
  queue_push,   // an entry goes into a run queue
  queue_pop,    // an entry is taken from one
  census,       // the census or the idle mask changes, or both and one of them has
  wake,         // a parked scheduler has been chosen
  keeper,       // the keeper's role or deadline changes
  watcher,      // the watcher's role changes
  permit_park,  // a scheduler or a foreign thread is about to sleep
  permit_wake,  // a permit is given, or has been and the sleeper is not yet woken
  verdict,      // what keeps the run going grows from outside, or shrinks, or the run is ended
};

[[nodiscard]] std::string_view name_of(perturb_point point) noexcept;

// disturbance is what one call does.
struct disturbance {
  enum class kind : std::uint8_t { none, spin, yield, sleep };
  kind what = kind::none;
  std::uint32_t amount = 0;  // turns of a spin, microseconds of a sleep

  friend bool operator==(const disturbance&, const disturbance&) = default;
};

// disturbances is the endless sequence of one thread. In stretches of some hundred decisions a
// thread is left alone, or disturbed now and then, or at every other step: so that a fast thread
// meets a slow one, and each is now this, now that. Pure.
class disturbances {
 public:
  disturbances() = default;
  disturbances(std::uint64_t seed, std::string_view thread, std::uint32_t nth) noexcept;

  [[nodiscard]] disturbance next() noexcept;

 private:
  std::uint64_t draw() noexcept;

  std::uint64_t state_ = 0;
  std::uint32_t left_ = 0;   // decisions until the stretch is over
  std::uint32_t share_ = 0;  // how many of 256 decisions disturb
};

#ifdef SMARM_STRESS
// perturb carries out the thread's next decision.
void perturb(perturb_point point) noexcept;
// perturb_chooses is a decision between two ways that are both right, such as who runs an actor.
[[nodiscard]] bool perturb_chooses(perturb_point point) noexcept;
#else
constexpr void perturb(perturb_point) noexcept {}
[[nodiscard]] constexpr bool perturb_chooses(perturb_point) noexcept { return false; }
#endif

}  // namespace smarm::detail
