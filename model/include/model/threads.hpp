// thread_state is a model thread within one run: its fiber, how far it is, and what it waits for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/access.hpp"
#include "model/fiber.hpp"

namespace model {

enum class thread_status : std::uint8_t {
  unborn,     // nobody has started it in this run
  ready,      // can go on
  replaying,  // waits until another thread has done `awaits`, which the graph says it reads
  frontier,   // has done all that the graph says, and stands before its next access
  waiting,    // its last event is a read that waits, and it does not like what it read
  retrying,   // as before, but without an event: it asks again after each step of another thread
  spinning,   // an iteration of its loop has only read; another value is another execution
  joining,    // waits for the end of thread `partner`
  assuming,   // model::assume was false: this execution is of no interest
  done,
};

// LIMIT: pauses in a row of a loop that looks at nothing.
inline constexpr std::uint32_t idle_max = 100'000;

struct thread_state {
  fiber stack;
  thread_status status = thread_status::unborn;
  void (*body)(void*) = nullptr;  // what it runs, and on what
  void* closure = nullptr;
  const char* name = nullptr;
  event_id awaits;
  std::size_t partner = 0;
  std::uint16_t count = 0;            // events done in this run
  std::uint16_t children = 0;         // threads started in this run
  std::uint16_t round = 0;            // where the last round of a spin loop began
  std::uint16_t iteration = 0;        // and the one that is under way
  std::uint32_t loop = no_location;   // site of the last pause
  std::uint32_t idle = 0;             // pauses with nothing read between them
  const access* waits_for = nullptr;  // waiting: what it asked for; it is on the thread's stack
  bool timed = false;                 // the wait would end by itself in time
  unsigned spurious = 0;              // spurious wake-ups met
  unsigned weak_failures = 0;         // weak exchanges that failed without a reason
  std::uint32_t waits_at = 0;         // site of a wait or pause
  std::size_t shared_steps = 0;       // retrying: the state of the world when it asked last

  void restart() {
    name = nullptr;
    count = children = round = iteration = 0;
    loop = no_location;
    idle = 0;
    timed = false;
    spurious = 0;
    weak_failures = 0;
    shared_steps = 0;
  }
};

}  // namespace model
