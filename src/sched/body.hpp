// body_header is the core's part of an actor_body: what the actor and its join_handle share.
//
// One allocation holds the header and, right behind it, the public actor_body.
//
// Invariants
//   1. Two references at first: the actor's and the handle's. Whoever drops the last one destroys
//      the body. A handle dropped before the end is how an exit knows that nobody will join.
//   2. join_cell: open -> awaited by a joiner that has written `joiner`; open or awaited -> ended
//      by the exit, once. A joiner that gives up takes awaited back to open, or finds ended.
//      `joiner` is so never written while the exit may read it.
//   3. `why` and the result are written before ended and read after it.
// Threads: the exit on the actor's scheduler, the joiner anywhere; one joiner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <smarm/detail/actor_body.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

#include "base/atomic.hpp"
#include "sched/wait.hpp"

namespace smarm::detail {

enum class join_cell : std::uint32_t { open, awaited, ended };

class captured_stack;

struct body_header {
  // 1 until the actor exists, then 2 (invariant 1).
  atomic<std::uint32_t> references{1};
  atomic<join_cell> cell{join_cell::open};
  waker joiner;      // see invariant 2
  exit_reason why;   // see invariant 3
  pid who;           // written before the actor is published
  std::string name;  // likewise

  // started: there is, or was, an actor that runs or discards the function. Owner: the spawner.
  bool started = false;
  bool has_trivial_function = false;  // nothing to destroy: discard does nothing; constant
  std::uint8_t align_shift = 0;       // of the allocation: its alignment is 1 << this; constant
  std::uint32_t size = 0;             // of the allocation, in bytes; constant

  // The stack of an exception on its way to the actor's end (sched/thrown.hpp); the actor's.
  captured_stack* thrown = nullptr;

  // end publishes the result and `why`, which the exit has written, and wakes the joiner. Called
  // once, by the exit.
  void end() noexcept;

  // has_holder tells whether a join handle still exists (a hint that may be out of date at once).
  [[nodiscard]] bool has_holder() const noexcept {
    return references.load(relaxed) > 1;  // relaxed: a dropped handle cannot come back
  }
};

// The body lies behind its header at this distance, which keeps both aligned.
inline constexpr std::size_t body_offset = (sizeof(body_header) + alignof(std::max_align_t) - 1) /
                                           alignof(std::max_align_t) * alignof(std::max_align_t);

[[nodiscard]] inline body_header& header_of(actor_body& body) noexcept {
  // SAFETY: every actor_body lies in memory from body_allocate, behind a body_header.
  return *reinterpret_cast<body_header*>(reinterpret_cast<std::byte*>(&body) - body_offset);
}
[[nodiscard]] inline const body_header& header_of(const actor_body& body) noexcept {
  return header_of(const_cast<actor_body&>(body));
}
[[nodiscard]] inline actor_body& body_of(body_header& header) noexcept {
  // SAFETY: as above.
  return *reinterpret_cast<actor_body*>(reinterpret_cast<std::byte*>(&header) + body_offset);
}

}  // namespace smarm::detail
