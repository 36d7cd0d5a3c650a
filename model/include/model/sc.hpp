// sc decides whether the seq_cst events of an execution can be put into one order: the psc axiom of
// "Repairing Sequential Consistency in C/C++11" (Lahav et al., PLDI 2017) as C++20 took it over
// (P0668), where the middle of "sb; hb; sb" need not change its location.
//
// Method: for each event the set of seq_cst events that it has to precede (`right end`), then one
// step of the partial order from each seq_cst event, then a search for a cycle among those only. An
// update is one event here.
//
// Of two asymmetric fences, or one and anything else, the light one has an order only with the
// heavy ones: steps between it and others are left out. (A kernel's barrier gives more: where a
// light fence precedes a heavy one, the seq_cst events before the light one do so as well. So this
// allows more than can happen, and what passes holds.)
//
// A search asks after every event, of a graph that had such an order before it. Then a cycle has to
// leave a fresh event, which most cannot: nothing happens after it, and if it writes or reads the
// newest value there is no later write to point to. And where there are no seq_cst fences, a cycle
// among older events would pass through a fresh one along happens-before alone, which does not lead
// out of it: so only a fresh event that is seq_cst itself can lie on one.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/fault.hpp"
#include "model/fresh.hpp"
#include "model/graph.hpp"

namespace model {

// LIMIT: seq_cst events of one execution; more makes the verdict incomplete.
inline constexpr std::size_t sequential_max = 256;

// sequential_order_of decides for up to `Max` seq_cst events.
template <std::size_t Max>
class sequential_order_of {
 public:
  [[nodiscard]] bool exists(graph& g) {
    collect(g);
    steps_.assign(members_.size(), set{});
    for (std::size_t a = 0; a < members_.size(); ++a) {
      steps_[a] = step_from(g, members_[a], a);
      if (light_[a]) {
        steps_[a] &= heavy_;
      } else if (!heavy_[a]) {
        steps_[a] &= ~light_;
      }
    }
    return acyclic();
  }

  // has_cycle_through looks for a cycle that the event lies on. Precondition: the event is seq_cst
  // and no fence is.
  [[nodiscard]] bool has_cycle_through(graph& g, event_id id) {
    collect(g);
    set reached = scb_from(g, id);
    for (set left = reached; left.any();)
      for (std::size_t a = 0; a < members_.size(); ++a) {
        if (!left[a]) continue;
        if (members_[a] == id) return true;
        left.reset(a);
        const set next = scb_from(g, members_[a]) & ~reached;
        reached |= next;
        left |= next;
      }
    return false;
  }

 private:
  using set = std::bitset<Max>;

  // collect lists the seq_cst events and computes `suffix_[t][i]`: the right ends of thread t's
  // events from the i-th on.
  void collect(graph& g) {
    members_.clear();
    fences_.reset();
    light_.reset();
    heavy_.reset();
    for (std::size_t t = 0; t < threads_max; ++t)
      for (const event& e : g.of(t))
        if (is_sequential(e.strength)) {
          const std::size_t m = members_.size();
          if (e.kind == event_kind::fence) fences_.set(m);
          if (e.strength == order::light && !is_planted(fault::light_orders_light)) light_.set(m);
          if (e.strength == order::heavy && !is_planted(fault::heavy_is_sequential)) heavy_.set(m);
          members_.push_back(e.id);
        }
    for (std::size_t t = 0; t < threads_max; ++t) {
      const std::size_t size = g.of(t).empty() ? 0 : g.of(t).size() + 1;
      after_[t].assign(size, set{});
      suffix_[t].assign(size, set{});
      if (fences_.any()) fences_after_[t].assign(size, set{});
    }
    for (std::size_t m = 0; m < members_.size(); ++m) {
      after_[members_[m].thread][members_[m].index].set(m);
      if (fences_[m]) reach_back(g, m);
    }
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::size_t i = g.of(t).size(); i-- > 0;)
        suffix_[t][i] = suffix_[t][i + 1] | after_[t][i];
  }

  // reach_back enters fence `m` at all events that happen before it.
  void reach_back(graph& g, std::size_t m) {
    const event& fence = g.at(members_[m]);
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::size_t i = 0; i < g.of(t).size(); ++i)
        if (g.of(t)[i].id != fence.id && fence.before.has(g.of(t)[i].id)) {
          fences_after_[t][i].set(m);
          after_[t][i].set(m);
        }
  }

  [[nodiscard]] const set& right(event_id id) const { return after_[id.thread][id.index]; }

  // first_after: the first event of thread t that happens after `id` (strictly).
  [[nodiscard]] static std::size_t first_after(const graph& g, event_id id, std::size_t t) {
    const auto& events = g.of(t);
    if (t == id.thread) return id.index + 1U;
    std::size_t low = 0;
    std::size_t high = events.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (events[middle].before.has(id)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // step_from: the seq_cst events that member `a` has to precede by one step of psc.
  [[nodiscard]] set step_from(graph& g, event_id id, std::size_t a) {
    set found = scb_from(g, id);
    if (!fences_[a]) return found;
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::size_t i = first_after(g, id, t); i < g.of(t).size(); ++i) {
        found |= scb_from(g, g.of(t)[i].id);
        found |= eco_from(g, g.of(t)[i].id);
      }
    return found | fences_after_[id.thread][id.index];
  }

  // scb_from: right ends of everything after `id` in sb, sb;hb;sb, hb on one location, mo and rb.
  [[nodiscard]] set scb_from(graph& g, event_id id) {
    const event& e = g.at(id);
    set found = suffix_[id.thread][id.index + 1U];
    if (e.id.index + 1U < g.of(id.thread).size()) {
      const event_id next{id.thread, static_cast<std::uint16_t>(id.index + 1)};
      for (std::size_t t = 0; t < threads_max; ++t) {
        const std::size_t first = first_after(g, next, t);
        if (first + 1 < suffix_[t].size()) found |= suffix_[t][first + 1];
      }
    }
    if (e.location == no_location) return found;
    const graph_location& place = g.location(e.location);
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::int32_t i = place.last[t]; i >= 0; i = g.of(t)[i].previous) {
        const event& other = g.of(t)[i];
        if (other.id == id || !other.before.has(id)) continue;
        found |= right(other.id);
      }
    for_each_later_write(g, e, [&](event_id write) { found |= right(write); });
    return found;
  }

  // eco_from: fences that happen after something that follows `id` in extended coherence order.
  [[nodiscard]] set eco_from(graph& g, event_id id) {
    set found;
    const event& e = g.at(id);
    if (e.location == no_location) return found;
    const std::uint32_t least = e.written ? e.position : g.position_of(e.source) + 1;
    for_each_later_write(
        g, e, [&](event_id write) { found |= fences_after_[write.thread][write.index]; });
    const graph_location& place = g.location(e.location);
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::int32_t i = place.last[t]; i >= 0; i = g.of(t)[i].previous) {
        const event& reader = g.of(t)[i];
        if (reader.id == id || !is_reader(reader.kind)) continue;
        if (!is_initial(reader.source) && g.position_of(reader.source) >= least)
          found |= fences_after_[t][i];
      }
    return found;
  }

  template <class Visit>
  static void for_each_later_write(graph& g, const event& e, Visit visit) {
    const std::uint32_t at = e.written ? e.position : g.position_of(e.source);
    const auto& writes = g.location(e.location).writes;
    for (std::size_t i = at; i < writes.size(); ++i)
      if (writes[i] != e.id) visit(writes[i]);
  }

  [[nodiscard]] bool acyclic() {
    // Events without a predecessor are taken away until none is left, or a cycle is.
    set left;
    for (std::size_t a = 0; a < steps_.size(); ++a) left.set(a);
    for (bool progress = true; progress && left.any();) {
      progress = false;
      for (std::size_t a = 0; a < steps_.size(); ++a)
        if (left[a] && (steps_[a] & left).none()) {
          left.reset(a);
          progress = true;
        }
    }
    return left.none();
  }

  std::vector<event_id> members_;
  set fences_;
  set light_;
  set heavy_;
  std::vector<set> steps_;
  std::array<std::vector<set>, threads_max> after_;
  std::array<std::vector<set>, threads_max> suffix_;
  std::array<std::vector<set>, threads_max> fences_after_;
};

class sequential_order {
 public:
  // exists: whether all seq_cst events of `g` fit into one order. Precondition: at most
  // sequential_max of them. Most executions have few, whose sets are a word each.
  [[nodiscard]] bool exists(graph& g) {
    if (g.sequential() < 2) return true;
    return g.sequential() <= 64 ? few_.exists(g) : many_.exists(g);
  }

  // still_exists: the same, where it is known of `g` without its fresh events.
  [[nodiscard]] bool still_exists(graph& g, const fresh_events& fresh) {
    if (fresh.is_whole()) return exists(g);
    if (lead_nowhere(g, fresh.listed())) return true;
    if (g.sequential_fences() > 0 && !is_planted(fault::no_order_by_fences)) return exists(g);
    for (const event_id id : fresh.listed()) {
      if (g.at(id).strength != order::seq_cst) continue;
      if (g.sequential() <= 64 ? few_.has_cycle_through(g, id) : many_.has_cycle_through(g, id))
        return false;
    }
    return true;
  }

 private:
  // lead_nowhere: no fresh event has to precede any other, but for those listed after it.
  [[nodiscard]] static bool lead_nowhere(graph& g, std::span<const event_id> fresh) {
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const event& e = g.at(fresh[i]);
      if (e.location == no_location) continue;
      const auto& writes = g.location(e.location).writes;
      const auto after = fresh.subspan(i + 1);
      for (std::size_t w = e.written ? e.position : g.position_of(e.source); w < writes.size(); ++w)
        if (std::ranges::find(after, writes[w]) == after.end()) return false;
    }
    return true;
  }

  sequential_order_of<64> few_;
  sequential_order_of<sequential_max> many_;
};

}  // namespace model
