// walk is what the strategies have in common that follow one path at a time and keep no work for
// later: the random ones, and the repetition of a recorded run. A read that waits is asked again
// after each step of another thread instead of being an event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/sc.hpp"
#include "model/steps.hpp"
#include "model/strategy.hpp"

namespace model {

class walk : public strategy {
 public:
  [[nodiscard]] graph& current() override { return graph_; }
  [[nodiscard]] bool is_stepwise() const override { return true; }
  [[nodiscard]] extension complete(event_id, const access&) override { return extension::abandon; }

  [[nodiscard]] extension extend(event_id id, const access& a) override {
    event e = draft(graph_, id, a);
    if (is_reader(a.kind)) return extend_read(e, a);
    settle(graph_, e, a);
    if (a.kind == event_kind::choose) {
      std::vector<way> ways;
      for (std::uint32_t k = 0; k < a.alternatives; ++k) ways.push_back({k, false});
      const std::size_t taken = decide(ways, 0);
      if (taken >= ways.size()) return extension::abandon;
      e.read.low = taken;
    }
    if (a.kind != event_kind::store) {
      graph_.append(e);
      return is_consistent_with(id) ? extension::added : extension::abandon;
    }
    return extend_store(e);
  }

 protected:
  // way is what a step may do: read the write at a position, write there, or take an alternative.
  struct way {
    std::uint32_t position;
    bool spurious;
  };

  // decide returns the index of one of `ways`, or their number for none of them; `usual` is the
  // position that a sequential machine would take.
  [[nodiscard]] virtual std::size_t decide(const std::vector<way>& ways, std::uint32_t usual) = 0;
  // takes_blocked: a read that is not content may become an event all the same.
  [[nodiscard]] virtual bool takes_blocked() const { return false; }

  void forget() { graph_ = graph{}; }

 private:
  // is_consistent_with: the graph, which was without it, is consistent with its newest event.
  [[nodiscard]] bool is_consistent_with(event_id newest) {
    fresh_events fresh;
    fresh.add(newest);
    return sequential_.still_exists(graph_, fresh);
  }

  [[nodiscard]] extension extend_read(const event& base, const access& a) {
    const auto newest = static_cast<std::uint32_t>(graph_.location(a.location).writes.size());
    const std::uint32_t floor = floor_for(graph_, base.id, a.location, a.system);
    std::vector<way> ways;
    for (std::uint32_t position = floor; position <= newest; ++position) {
      event e = base;
      resolve(graph_, e, a, graph_.write_at(a.location, position), false);
      if (e.blocked && !takes_blocked()) continue;
      if (may_fail(graph_, e, a)) ways.push_back({position, true});
      if (e.exclusive && graph_.splits(a.location, position + 1)) continue;
      ways.push_back({position, false});
    }
    while (!ways.empty()) {
      const std::size_t taken = decide(ways, newest);
      if (taken >= ways.size()) return extension::abandon;
      event e = base;
      const std::uint32_t stamp = graph_.next_stamp();
      resolve(graph_, e, a, graph_.write_at(a.location, ways[taken].position),
              ways[taken].spurious);
      event& added = graph_.append(e);
      if (e.exclusive) graph_.write(added, ways[taken].position + 1);
      if (is_consistent_with(e.id)) return extension::added;
      graph_.cut(stamp);
      ways.erase(ways.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    return extension::waits;
  }

  [[nodiscard]] extension extend_store(const event& e) {
    const auto newest = static_cast<std::uint32_t>(graph_.location(e.location).writes.size());
    std::vector<way> places;
    for (std::uint32_t at = floor_for(graph_, e.id, e.location, false) + 1; at <= newest + 1; ++at)
      if (at == newest + 1 || !graph_.splits(e.location, at)) places.push_back({at, false});
    while (!places.empty()) {
      const std::size_t taken = decide(places, newest + 1);
      if (taken >= places.size()) return extension::abandon;
      const std::uint32_t stamp = graph_.next_stamp();
      graph_.write(graph_.append(e), places[taken].position);
      if (is_consistent_with(e.id)) return extension::added;
      graph_.cut(stamp);
      places.erase(places.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    return extension::abandon;
  }

  graph graph_;
  sequential_order sequential_;
};

}  // namespace model
