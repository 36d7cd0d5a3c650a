// account turns a failing run into facts that a report can print: the order to tell it in, whether
// an ordinary interleaving shows it, its replay string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/engine.hpp"
#include "model/replay.hpp"

namespace model {

class account {
 public:
  explicit account(const engine& from) : graph_(from.execution()), order_(from.trace()) {
    for (const event_id id : order_) done_.count[id.thread] = id.index + 1;
  }

  [[nodiscard]] const graph& execution() const { return graph_; }

  // order is the order in which the run did its events: causes before effects.
  [[nodiscard]] const std::vector<event_id>& order() const { return order_; }

  // is_done: the event belongs to what the failing run did.
  [[nodiscard]] bool is_done(event_id id) const { return is_initial(id) || done_.has(id); }

  // interleaving returns an order in which every read reads the newest write, as on a machine with
  // one processor; empty if there is none, and then the failure needs weak memory.
  [[nodiscard]] std::vector<event_id> interleaving() const {
    std::vector<event_id> found;
    clock at;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint16_t t = 0; t < threads_max; ++t)
        while (at.count[t] < done_.count[t] && is_ready({t, at.count[t]}, at)) {
          found.push_back({t, at.count[t]++});
          progress = true;
        }
    }
    if (found.size() != order_.size()) found.clear();
    return found;
  }

  // replay writes the run down in the order it was done in.
  [[nodiscard]] std::string replay() const {
    recorder text;
    clock at;
    for (const event_id id : order_) {
      const event& e = graph_.at(id);
      replay_step s;
      s.thread = id.thread;
      s.spurious = e.spurious;
      if (e.kind == event_kind::choose) s.distance = e.read.low;
      if (is_reader(e.kind)) s.distance = later_writes(e, graph_.position_of(e.source), at);
      if (e.kind == event_kind::store) s.distance = later_writes(e, e.position, at);
      text.note(s);
      at.count[id.thread] = static_cast<std::uint16_t>(id.index + 1);
    }
    return text.text();
  }

  // newer lists the writes that were done before the read (in the given order) and that it passed
  // over.
  [[nodiscard]] std::vector<event_id> newer(const event& read, const clock& at) const {
    std::vector<event_id> found;
    for (const event_id id : graph_.location(read.location).writes)
      if (at.has(id) && graph_.at(id).position > graph_.position_of(read.source) && id != read.id)
        found.push_back(id);
    return found;
  }

 private:
  [[nodiscard]] std::uint64_t later_writes(const event& e, std::uint32_t position,
                                           const clock& at) const {
    std::uint64_t sum = 0;
    for (const event_id id : graph_.location(e.location).writes)
      sum += at.has(id) && id != e.id && graph_.at(id).position > position;
    return sum;
  }

  // is_ready: everything that an interleaving has to put before the event is in `at`.
  [[nodiscard]] bool is_ready(event_id id, const clock& at) const {
    const event& e = graph_.at(id);
    const event_id born = graph_.born(id.thread);
    if (id.index == 0 && !is_initial(born) && !at.has(born)) return false;
    const bool reads = is_reader(e.kind);
    if ((reads || e.kind == event_kind::join) && !is_initial(e.source) && !at.has(e.source))
      return false;
    if (e.location == no_location) return true;
    // No write that follows what it read may be there already, and none that precedes what it
    // writes may be missing; and whoever still reads an earlier write goes first.
    const std::uint32_t least = reads ? graph_.position_of(e.source) : e.position;
    for (const event_id other : graph_.location(e.location).writes) {
      const std::uint32_t position = graph_.at(other).position;
      if (other == id || !is_done(other)) continue;
      if (position > least && at.has(other)) return false;
      if (e.written && position < e.position && !at.has(other)) return false;
    }
    if (!e.written) return true;
    for (std::uint16_t t = 0; t < threads_max; ++t)
      for (std::uint16_t i = at.count[t]; i < done_.count[t]; ++i) {
        const event& reader = graph_.of(t)[i];
        if (reader.location == e.location && is_reader(reader.kind) && reader.id != id &&
            graph_.position_of(reader.source) < e.position)
          return false;
      }
    return true;
  }

  const graph& graph_;
  const std::vector<event_id>& order_;
  clock done_;
};

}  // namespace model
