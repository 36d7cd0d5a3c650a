// graph is an execution: what each thread did, from where each read took its value, and in what
// order each location was written. The search grows it, cuts it back and never keeps anything else.
//
// Invariants
//   1. A thread's events have growing stamps, so a cut at a stamp leaves a prefix of each thread.
//   2. order_of(location) lists writes by `position`, which starts at 1; 0 is the initial write.
//   3. Whatever an event depends on (its thread's past, its source, its thread's spawn) is present,
//      except while a source is being replaced (`pending`).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/event.hpp"

namespace model {

struct graph_location {
  std::vector<event_id> writes;  // modification order, without the initial write
  std::array<std::int32_t, threads_max> last;
  graph_location() { last.fill(-1); }
};

class graph {
 public:
  [[nodiscard]] std::vector<event>& of(std::size_t thread) { return threads_[thread]; }
  [[nodiscard]] const std::vector<event>& of(std::size_t thread) const { return threads_[thread]; }
  [[nodiscard]] event& at(event_id id) { return threads_[id.thread][id.index]; }
  [[nodiscard]] const event& at(event_id id) const { return threads_[id.thread][id.index]; }

  [[nodiscard]] graph_location& location(std::uint32_t id) {
    if (locations_.size() <= id) locations_.resize(id + 1);
    return locations_[id];
  }
  [[nodiscard]] const graph_location& location(std::uint32_t id) const { return locations_[id]; }
  [[nodiscard]] const std::vector<graph_location>& locations() const { return locations_; }
  [[nodiscard]] std::uint32_t next_stamp() const { return next_stamp_; }
  [[nodiscard]] std::size_t sequential() const { return sequential_; }
  [[nodiscard]] std::size_t sequential_fences() const { return sequential_fences_; }
  [[nodiscard]] std::size_t size() const {
    std::size_t sum = 0;
    for (const auto& events : threads_) sum += events.size();
    return sum;
  }

  // weak_failures counts the exchanges that have failed without a reason.
  [[nodiscard]] std::size_t weak_failures() const {
    std::size_t sum = 0;
    for (const auto& events : threads_)
      for (const event& e : events) sum += e.spurious;
    return sum;
  }

  // position_of gives a write's place in modification order.
  [[nodiscard]] std::uint32_t position_of(event_id write) const {
    return is_initial(write) ? 0 : at(write).position;
  }
  // write_at is the inverse of position_of.
  [[nodiscard]] event_id write_at(std::uint32_t location, std::uint32_t position) {
    return position == 0 ? initial : this->location(location).writes[position - 1];
  }

  // floor_of: the earliest write of the location that somebody who knows `seen` may still read, and
  // after which a new write of his has to stand.
  [[nodiscard]] std::uint32_t floor_of(std::uint32_t location_id, const clock& seen) {
    std::uint32_t floor = 0;
    const graph_location& place = location(location_id);
    for (std::size_t t = 0; t < threads_max; ++t) {
      std::int32_t index = place.last[t];
      while (index >= 0 && index >= seen.count[t]) index = threads_[t][index].previous;
      if (index < 0) continue;
      const event& e = threads_[t][index];
      floor = std::max(floor, e.written ? e.position : position_of(e.source));
    }
    return floor;
  }

  // splits: a write at `position` would come between an update and the write it read.
  [[nodiscard]] bool splits(std::uint32_t location_id, std::uint32_t position) {
    const auto& writes = location(location_id).writes;
    return position <= writes.size() && at(writes[position - 1]).exclusive;
  }

  // append adds the event as its thread's next, without its write part.
  event& append(const event& e) {
    event& added = threads_[e.id.thread].emplace_back(e);
    added.written = false;
    added.stamp = next_stamp_++;
    if (e.location != no_location) {
      std::int32_t& last = location(e.location).last[e.id.thread];
      added.previous = last;
      last = e.id.index;
    }
    sequential_ += is_sequential(e.strength);
    sequential_fences_ += is_sequential_fence(e);
    return added;
  }

  // write puts the event's write part at `position` of its location's modification order.
  void write(event& e, std::uint32_t position) {
    auto& writes = location(e.location).writes;
    writes.insert(writes.begin() + (position - 1), e.id);
    for (std::size_t i = position; i < writes.size(); ++i) ++at(writes[i]).position;
    e.written = true;
    e.position = position;
    e.write_stamp = next_stamp_++;
  }

  // restrict removes every part of an event for which keep(stamp, event) is false. What is kept has
  // to be closed under causes.
  template <class Keep>
  void restrict(Keep keep) {
    for (auto& events : threads_)
      for (event& e : events)
        if (e.written && !keep(e.write_stamp, e)) {
          e.written = false;
          unlink_write(e);
        }
    for (auto& events : threads_)
      while (!events.empty() && !keep(events.back().stamp, events.back())) {
        const event& e = events.back();
        if (e.location != no_location) locations_[e.location].last[e.id.thread] = e.previous;
        sequential_ -= is_sequential(e.strength);
        sequential_fences_ -= is_sequential_fence(e);
        events.pop_back();
      }
  }

  // cut removes everything that was added at `stamp` or later.
  void cut(std::uint32_t stamp) {
    if (stamp >= next_stamp_) return;
    restrict([stamp](std::uint32_t s, const event&) { return s < stamp; });
    next_stamp_ = stamp;
  }

  // born says by which event a thread was started.
  [[nodiscard]] event_id born(std::size_t thread) const { return born_[thread]; }
  void set_born(std::size_t thread, event_id spawn) { born_[thread] = spawn; }

  // predecessor gives what thread and place `id` know without the event itself: the event before
  // it, or the one that started the thread, or null for the first of all.
  [[nodiscard]] const event* predecessor(event_id id) const {
    if (id.index > 0) return &threads_[id.thread][id.index - 1U];
    return is_initial(born_[id.thread]) ? nullptr : &at(born_[id.thread]);
  }

  // strengthen changes an event's order when the value it reads decides about it.
  void strengthen(event& e, order strength) {
    sequential_ -= is_sequential(e.strength);
    sequential_ += is_sequential(strength);
    e.strength = strength;
  }

 private:
  [[nodiscard]] static bool is_sequential_fence(const event& e) {
    return e.kind == event_kind::fence && is_sequential(e.strength);
  }

  void unlink_write(const event& e) {
    auto& writes = locations_[e.location].writes;
    for (std::size_t i = e.position; i < writes.size(); ++i) --at(writes[i]).position;
    writes.erase(writes.begin() + (e.position - 1));
  }

  std::array<std::vector<event>, threads_max> threads_;
  std::array<event_id, threads_max> born_{};
  std::vector<graph_location> locations_;
  std::uint32_t next_stamp_ = 0;
  std::size_t sequential_ = 0;
  std::size_t sequential_fences_ = 0;
};

}  // namespace model
