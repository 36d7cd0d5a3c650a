// steps computes what an event knows and publishes: the happens-before of C++20, one event at a
// time.
//
// The rules, as clocks: a release write publishes what its thread knows; a relaxed write what it
// knew at its last release fence; an update also hands on what the write it read had published (the
// release sequence, of updates only since P0982R1). An acquire read learns what its source
// published at once, a relaxed one at its next acquire fence. A seq_cst fence is acq_rel here; what
// more it orders is the matter of sc.hpp.
#pragma once

#include "model/access.hpp"
#include "model/fault.hpp"
#include "model/graph.hpp"

namespace model {

// draft makes the next event of a thread, with everything that does not depend on what it reads.
[[nodiscard]] inline event draft(const graph& g, event_id id, const access& a) {
  event e;
  e.id = id;
  e.kind = a.kind;
  e.strength = a.success;
  e.system = a.system;
  e.location = a.location;
  e.site = a.site;
  if (const event* earlier = g.predecessor(id)) {
    e.causes = earlier->causes;
    e.before = earlier->before;
    e.known = earlier->known;
    if (id.index > 0) {
      e.acquirable = earlier->acquirable;
      e.released = earlier->released;
    }
  }
  e.causes.count[id.thread] = e.before.count[id.thread] = static_cast<std::uint16_t>(id.index + 1);
  return e;
}

// publish sets what a write's readers may learn from it.
inline void publish(const graph& g, event& e) {
  const bool update = e.kind != event_kind::store;
  if (e.strength == order::plain) {
    e.message = {};
    return;
  }
  e.message = releases(e.strength) && !is_planted(fault::release_ignored) ? e.before : e.released;
  if (e.system) {
    e.message = e.before;
    e.message.join(e.known);
  }
  if (update && !is_initial(e.source) && !is_planted(fault::no_release_sequence))
    e.message.join(g.at(e.source).message);
  if (is_planted(fault::release_sequence_2011) && !update) {
    for (std::int32_t i = static_cast<std::int32_t>(e.id.index) - 1; i >= 0; --i) {
      const event& own = g.of(e.id.thread)[i];
      if (own.location == e.location && own.written) {
        e.message.join(own.message);
        break;
      }
    }
  }
}

// learn takes over what the source of a read published.
inline void learn(event& e, const event& source) {
  e.causes.join(source.causes);
  if (e.blocked || e.strength == order::plain) return;
  if (e.system) {
    e.known.join(source.message);
  } else if (acquires(e.strength) && !is_planted(fault::acquire_ignored)) {
    e.before.join(source.message);
  } else {
    e.acquirable.join(source.message);
  }
  if (is_planted(fault::race_by_causes)) e.before.join(source.before);
}

// resolve gives a drafted read its source and settles what follows from the value: whether it
// waits, whether it writes and what, with which order it took place.
inline void resolve(const graph& g, event& e, const access& a, event_id source, bool spurious) {
  e.source = source;
  e.spurious = spurious;
  e.read = is_initial(source) ? a.first : g.at(source).wrote;
  e.blocked = a.accepts && !a.accepts(e.read);
  e.exclusive = false;
  if (!e.blocked && e.kind == event_kind::update) {
    e.exclusive = true;
    e.wrote = a.modify(e.read);
  } else if (!e.blocked && e.kind == event_kind::cas) {
    e.exclusive = (e.read == a.expected || a.loose) && !spurious;
    e.wrote = a.operand;
    if (!e.exclusive && !is_planted(fault::failed_cas_strong)) e.strength = a.failure;
  }
  if (e.blocked) e.strength = order::relaxed;
  if (!is_initial(source)) {
    learn(e, g.at(source));
  }
  if (e.exclusive) publish(g, e);
}

// may_fail: the exchange succeeds as resolved, and fails without a reason in another execution.
// The search keeps to the bound of the whole execution by this alone: whatever it deletes and does
// again is without such failures, so no graph is reached through one that has more of them.
[[nodiscard]] inline bool may_fail(const graph& g, const event& e, const access& a) {
  if (a.weak_max == 0 || !e.exclusive || is_planted(fault::weak_cas_strong)) return false;
  return g.weak_failures() < a.weak_max;
}

// settle completes an event that reads nothing from a location.
inline void settle(const graph& g, event& e, const access& a) {
  switch (e.kind) {
    case event_kind::store:
      e.wrote = a.operand;
      publish(g, e);
      break;
    case event_kind::fence:
      if (is_planted(fault::sequential_fence_syncs) && is_sequential(e.strength))
        for (std::size_t t = 0; t < threads_max; ++t)
          for (const event& other : g.of(t))
            if (other.kind == event_kind::fence && is_sequential(other.strength))
              e.before.join(other.before);
      if (acquires(e.strength) && !is_planted(fault::acquire_fence_ignored))
        e.before.join(e.acquirable);
      if (releases(e.strength) && !is_planted(fault::release_fence_ignored)) e.released = e.before;
      if (is_sequential(e.strength) && is_planted(fault::no_fence_order))
        e.strength = order::acq_rel;
      break;
    case event_kind::join:
      e.source = a.source;
      e.causes.join(g.at(a.source).causes);
      e.before.join(g.at(a.source).before);
      e.known.join(g.at(a.source).known);
      break;
    case event_kind::choose:
    case event_kind::spawn:
      e.read = a.operand;
      break;
    default:
      break;
  }
}

// floor_for gives the earliest write that the read `e` (or a write after it) may not go behind.
[[nodiscard]] inline std::uint32_t floor_for(graph& g, event_id id, std::uint32_t location,
                                             bool system) {
  const event* earlier = g.predecessor(id);
  if (earlier == nullptr || is_planted(fault::any_stale_read)) return 0;
  if (!system) return g.floor_of(location, earlier->before);
  clock seen = earlier->before;
  seen.join(earlier->known);
  return g.floor_of(location, seen);
}

}  // namespace model
