// event is one step of a thread as the execution graph keeps it.
//
// A read-modify-write is one event with two parts, the read and the write. The parts have stamps of
// their own, because the search may undo the write and keep the read: then `exclusive` is set and
// `written` is not, and the write is due as soon as the thread is run again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/clock.hpp"
#include "model/value.hpp"

namespace model {

enum class event_kind : std::uint8_t {
  load,    // reads `source`
  store,   // writes at `position` of its location's modification order
  update,  // reads, and writes what a function makes of it
  cas,     // reads, and writes if it found what it expected
  fence,
  choose,  // read.low is the alternative taken, wrote.low the number of alternatives
  spawn,   // read.low is the new thread's number
  join,    // `source` is the end event of the other thread
  end,     // the thread's last
};

[[nodiscard]] constexpr const char* name_of(event_kind kind) noexcept {
  constexpr std::array names{"load",   "store", "rmw",  "cas", "fence",
                             "choose", "spawn", "join", "end"};
  return names[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr bool is_reader(event_kind kind) noexcept {
  return kind == event_kind::load || kind == event_kind::update || kind == event_kind::cas;
}

inline constexpr std::uint32_t no_location = 0xffffffff;

struct event {
  event_id id;
  event_kind kind = event_kind::fence;
  order strength = order::relaxed;  // of a failed cas: its failure order
  bool exclusive = false;           // the read part is followed by a write part
  bool written = false;             // the write part (or the store) is in the graph
  bool spurious = false;            // a weak cas that failed although it found what it expected
  bool blocked = false;             // a waiting read that does not like what it reads
  bool pending = false;             // got a new source; what follows from it is not computed yet
  bool system = false;              // the checker's own: orders itself, synchronises nobody
  std::uint32_t location = no_location;
  std::int32_t previous = -1;  // the same thread's event before this one on the same location
  std::uint32_t position = 0;  // in modification order; the initial write has 0
  std::uint32_t site = 0;
  std::uint32_t stamp = 0;        // when the search added the event (its read part)
  std::uint32_t write_stamp = 0;  // when it added the write part
  event_id source;
  value read;
  value wrote;
  clock causes;      // program order and reads-from, transitively, this event included
  clock before;      // happens-before, this event included
  clock message;     // what an acquire load of this write learns
  clock acquirable;  // what an acquire fence after this event learns
  clock released;    // what this thread's relaxed stores publish since its last release fence
  clock known;       // what the checker's own reads have to respect beside `before`
};

}  // namespace model
