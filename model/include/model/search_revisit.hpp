// The part of the search that takes revisits: from which graphs, and what they leave.
#pragma once

#include <memory>
#include <utility>

#include "model/search.hpp"

namespace model {

// is_maximal: the read, and everything that its revisit would delete, was added in the standard
// way.
inline bool search::is_maximal(const event& write, const event& read) {
  graph& g = top().g;
  if (!reads_newest(write, read)) return false;
  for (std::size_t t = 0; t < threads_max; ++t) {
    const auto& events = g.of(t);
    for (std::size_t i = events.size(); i-- > write.causes.count[t];) {
      const event& e = events[i];
      if (e.written && e.write_stamp > read.stamp && !is_unread_and_newest(write, e)) return false;
      if (e.stamp < read.stamp || e.id == read.id) break;
      if (is_reader(e.kind) && !reads_newest(write, e)) return false;
      if (e.kind == event_kind::choose && e.read.low != 0) return false;
    }
  }
  return true;
}

// was_there: the part of an event with this stamp is older than `stamp` or a cause of the write.
[[nodiscard]] inline bool was_there(const event& write, event_id id, std::uint32_t its_stamp,
                                    std::uint32_t stamp) {
  return its_stamp <= stamp || write.causes.has(id);
}

inline bool search::reads_newest(const event& write, const event& e) {
  graph& g = top().g;
  if (e.spurious) return false;
  if (!is_initial(e.source) &&
      (!g.at(e.source).written || !was_there(write, e.source, g.at(e.source).write_stamp, e.stamp)))
    return false;
  const auto& writes = g.location(e.location).writes;
  for (std::size_t i = g.position_of(e.source); i < writes.size(); ++i) {
    const event& other = g.at(writes[i]);
    if (other.id != e.id && was_there(write, other.id, other.write_stamp, e.stamp)) return false;
  }
  return true;
}

inline bool search::is_unread_and_newest(const event& write, const event& e) {
  graph& g = top().g;
  const graph_location& place = g.location(e.location);
  for (std::size_t i = e.position; i < place.writes.size(); ++i) {
    const event& other = g.at(place.writes[i]);
    if (was_there(write, other.id, other.write_stamp, e.write_stamp)) return false;
  }
  for (std::size_t t = 0; t < threads_max; ++t)
    for (std::int32_t i = place.last[t]; i >= 0; i = g.of(t)[i].previous) {
      const event& other = g.of(t)[i];
      if (is_reader(other.kind) && other.source == e.id &&
          was_there(write, other.id, other.stamp, e.write_stamp))
        return false;
    }
  return true;
}

// install_revisit opens a frame with what the revisit keeps, and the write as the read's new
// source.
inline bool search::install_revisit(const item& job) {
  std::unique_ptr<frame> fresh;
  if (spare_.empty()) {
    fresh = std::make_unique<frame>();
  } else {
    fresh = std::move(spare_.back());
    spare_.pop_back();
  }
  fresh->work.clear();
  fresh->g = top().g;
  frames_.push_back(std::move(fresh));
  graph& g = top().g;
  const std::uint32_t limit = g.at(job.read).stamp;
  const event& write = job.added;
  g.restrict([&](std::uint32_t stamp, const event& e) {
    return stamp <= limit || write.causes.has(e.id);
  });
  top().revisited = job.read;
  top().fresh = job.fresh;
  top().fresh.keep_those_in(g);
  top().fresh.add(job.read);
  event& read = g.at(job.read);
  read.source = write.id;
  read.pending = true;
  read.spurious = read.blocked = read.exclusive = false;
  const std::uint32_t floor = floor_for(g, read.id, write.location, read.system);
  const auto newest = static_cast<std::uint32_t>(g.location(write.location).writes.size());
  if (write.kind == event_kind::store) {
    push_places(write.id, read.id);
    g.write(g.at(write.id), newest + 1);
    return true;
  }
  const std::uint32_t position = g.position_of(g.at(write.id).source) + 1;
  if (position <= floor || (g.splits(write.location, position) && !is_planted(fault::split_update)))
    return false;
  g.write(g.at(write.id), position);
  return true;
}

}  // namespace model
