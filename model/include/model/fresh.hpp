// fresh_events lists what a graph has got since its seq_cst events were last seen to fit into one
// order. Without them the graph has such an order, so that only what they add need be looked at
// (sc.hpp), and that is most often nothing.
//
// Invariants
//   1. A fresh event is its thread's last. Who reads from it is fresh, and listed after it.
//   2. A graph that has had an order keeps it when events are taken away, for then the relations
//      that it has to agree with only shrink.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/graph.hpp"

namespace model {

class fresh_events {
 public:
  // LIMIT: with more of them the whole graph counts as fresh. One event is the rule, and two, a
  // write and the read that it revisits, where they have not been judged for revisits of revisits.
  static constexpr std::size_t listed_max = 6;

  void add(event_id id) {
    if (std::ranges::find(listed(), id) != listed().end()) return;
    if (size_ == listed_max) {
      whole_ = true;
    } else {
      ids_[size_++] = id;
    }
  }

  void clear() {
    size_ = 0;
    whole_ = false;
  }

  // keep_those_in drops what a graph does not hold any more.
  void keep_those_in(const graph& g) {
    const auto kept = std::remove_if(ids_.begin(), ids_.begin() + size_, [&](event_id id) {
      return id.index >= g.of(id.thread).size();
    });
    size_ = static_cast<std::uint8_t>(kept - ids_.begin());
  }

  // is_whole: anything of the graph may be fresh, listed or not.
  [[nodiscard]] bool is_whole() const { return whole_; }
  [[nodiscard]] std::span<const event_id> listed() const { return {ids_.data(), size_}; }

 private:
  std::array<event_id, listed_max> ids_{};
  std::uint8_t size_ = 0;
  bool whole_ = false;
};

}  // namespace model
