// search visits every consistent execution graph exactly once, without interleavings and without a
// memory of where it has been: the TruSt algorithm (Kokologiannakis, Marmanis, Gladstein,
// Vafeiadis: "Truly Stateless, Optimal Dynamic Partial Order Reduction", POPL 2022).
//
// A graph grows one event at a time. A read tries every source that coherence leaves it; a write
// every place in modification order, and then it may become the source of an *older* read: what was
// added after that read and is no cause of the write is deleted first. Such a revisit is taken only
// from the one graph in which everything deleted had been added in the standard way (newest source,
// last place): so each graph has one parent.
//
// Invariants
//   1. An item of work says at which stamp its graph is cut back; items of a frame are done last
//   first.
//   2. A revisit works on a graph of its own, a frame; frames nest like the revisits do.
//   3. A frame lists what of its graph is not judged yet, an item what of it was not when the item
//      was made; all else was found consistent.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "model/sc.hpp"
#include "model/steps.hpp"
#include "model/strategy.hpp"

namespace model {

class search final : public strategy {
 public:
  search() { frames_.push_back(std::make_unique<frame>()); }

  [[nodiscard]] bool next() override {
    if (std::exchange(first_, false)) return true;
    while (!frames_.empty()) {
      if (top().work.empty()) {
        if (spare_.size() < 8) spare_.push_back(std::move(frames_.back()));
        frames_.pop_back();
        continue;
      }
      item job = std::move(top().work.back());
      top().work.pop_back();
      if (install(job)) return true;
    }
    return false;
  }

  [[nodiscard]] graph& current() override { return top().g; }

  [[nodiscard]] extension extend(event_id id, const access& a) override {
    event e = draft(top().g, id, a);
    if (is_reader(a.kind)) return extend_read(e, a);
    settle(top().g, e, a);
    if (a.kind == event_kind::choose)
      for (std::uint64_t k = a.alternatives; k-- > 1;) {
        e.read.low = k;
        push_append(e);
      }
    e.read.low = a.operand.low;
    event& added = append(e);
    if (a.kind == event_kind::store) return extend_store(added);
    return is_consistent() ? extension::added : extension::abandon;
  }

  [[nodiscard]] extension complete(event_id id, const access& a) override {
    graph& g = top().g;
    if (g.at(id).pending) {
      const event old = g.at(id);
      event e = draft(g, id, a);
      e.stamp = old.stamp;
      e.previous = old.previous;
      resolve(g, e, a, old.source, old.spurious);
      if (may_fail(g, e, a)) {
        item& job = push(item::spurious);
        job.read = id;
      }
      e.pending = false;
      g.strengthen(g.at(id), e.strength);
      g.at(id) = e;
    }
    top().fresh.add(id);
    if (g.at(id).exclusive && !g.at(id).written && !write_update(id)) return extension::abandon;
    return is_consistent() ? extension::added : extension::abandon;
  }

 private:
  struct item {
    enum kind : std::uint8_t { append, place, revisit, spurious };
    kind what;
    std::uint32_t cut;
    std::uint32_t position = 0;
    event added{};
    event_id read{};  // whose source is the added write
    fresh_events fresh{};
  };
  struct frame {
    graph g;
    std::vector<item> work;
    event_id revisited = initial;  // the read that this frame gave another source
    fresh_events fresh{};
  };

  [[nodiscard]] frame& top() { return *frames_.back(); }

  // push leaves work for later, on the graph as it is now.
  item& push(item::kind what) {
    item& job = top().work.emplace_back(what, top().g.next_stamp());
    job.fresh = top().fresh;
    return job;
  }
  void push_append(const event& e) { push(item::append).added = e; }

  event& append(const event& e) {
    top().fresh.add(e.id);
    return top().g.append(e);
  }

  [[nodiscard]] bool is_consistent() {
    const event_id revisited = top().revisited;
    // What a read with a new source knows is not computed yet: judge when it is.
    if (!is_initial(revisited) && top().g.at(revisited).pending) return true;
    if (is_planted(fault::no_sequential_order)) return true;
    const bool consistent = sequential_.still_exists(top().g, top().fresh);
    top().fresh.clear();
    return consistent;
  }

  // extend_read: the newest source is taken now, the others are work for later. A waiting read that
  // is not content only counts if it reads the newest: only then can a later write wake it.
  [[nodiscard]] extension extend_read(const event& base, const access& a) {
    graph& g = top().g;
    const auto newest = static_cast<std::uint32_t>(g.location(a.location).writes.size());
    std::uint32_t floor = floor_for(g, base.id, a.location, a.system);
    if (is_planted(fault::no_stale_read) && a.kind == event_kind::load) floor = newest;
    for (std::uint32_t position = floor; position <= newest; ++position) {
      event e = base;
      resolve(g, e, a, g.write_at(a.location, position), false);
      if (e.blocked && position != newest) continue;
      if (is_planted(fault::failed_cas_latest) && a.kind == event_kind::cas && !e.exclusive &&
          position != newest)
        continue;
      if (may_fail(g, e, a)) {
        event failed = base;
        resolve(g, failed, a, e.source, true);
        push_append(failed);
      }
      if (position != newest) {
        push_append(e);
        continue;
      }
      const event_id id = append(e).id;
      if (e.exclusive && !write_update(id)) return extension::abandon;
    }
    return is_consistent() ? extension::added : extension::abandon;
  }

  [[nodiscard]] extension extend_store(const event& added) {
    graph& g = top().g;
    const event e = added;
    push_revisits(e.id);
    push_places(e.id, event_id{});
    g.write(g.at(e.id), static_cast<std::uint32_t>(g.location(e.location).writes.size()) + 1);
    return is_consistent() ? extension::added : extension::abandon;
  }

  // push_places leaves for later every place in modification order but the last.
  void push_places(event_id id, event_id revisited) {
    graph& g = top().g;
    const event& e = g.at(id);
    const auto newest = static_cast<std::uint32_t>(g.location(e.location).writes.size());
    std::uint32_t least = floor_for(g, id, e.location, false);
    if (!is_initial(revisited))
      least = std::max(least, floor_for(g, revisited, e.location, g.at(revisited).system));
    if (is_planted(fault::stores_last)) return;
    for (std::uint32_t position = least + 1; position <= newest; ++position) {
      if (g.splits(e.location, position) && !is_planted(fault::split_update)) continue;
      item& job = push(item::place);
      job.position = position;
      job.added.id = id;
      job.read = revisited;
    }
  }

  // write_update puts an update's write right behind what it read; false if that place is taken.
  // The revisits are due even then: they are how the other order of two updates is reached.
  [[nodiscard]] bool write_update(event_id id) {
    graph& g = top().g;
    const std::uint32_t position = g.position_of(g.at(id).source) + 1;
    const bool taken = g.splits(g.at(id).location, position) && !is_planted(fault::split_update);
    if (taken && is_planted(fault::conflict_dropped)) return false;
    push_revisits(id);
    if (taken) return false;
    g.write(g.at(id), position);
    return true;
  }

  // push_revisits: precondition: the write's event is in the graph, its write part is not.
  void push_revisits(event_id id) {
    graph& g = top().g;
    if (is_planted(fault::no_revisit)) return;
    const event& write = g.at(id);
    const graph_location& place = g.location(write.location);
    for (std::size_t t = 0; t < threads_max; ++t)
      for (std::int32_t i = place.last[t]; i >= 0; i = g.of(t)[i].previous) {
        const event& read = g.of(t)[i];
        if (write.causes.has(read.id) || read.id == id) break;
        if (!is_reader(read.kind)) continue;
        if (is_planted(fault::revisit_skips_cas) && read.kind == event_kind::cas) continue;
        if (!is_maximal(write, read) && !is_planted(fault::revisit_not_maximal)) continue;
        item& job = push(item::revisit);
        job.added = write;
        job.read = read.id;
      }
  }

  [[nodiscard]] bool is_maximal(const event& write, const event& read);
  [[nodiscard]] bool reads_newest(const event& write, const event& e);
  [[nodiscard]] bool is_unread_and_newest(const event& write, const event& e);

  // install makes the graph that an item of work stands for; false if nobody needs to run it.
  [[nodiscard]] bool install(const item& job) {
    graph& g = top().g;
    g.cut(job.cut);
    top().fresh = job.fresh;
    switch (job.what) {
      case item::append: {
        const event_id id = append(job.added).id;
        if (g.at(id).exclusive && !write_update(id)) return false;
        return is_consistent();
      }
      case item::place:
        g.write(g.at(job.added.id), job.position);
        if (is_initial(job.read)) return is_consistent();
        g.at(job.read).pending = true;
        g.at(job.read).spurious = false;
        return true;
      case item::spurious:
        g.at(job.read).pending = true;
        g.at(job.read).spurious = true;
        return true;
      case item::revisit:
        return install_revisit(job);
    }
    return false;
  }

  [[nodiscard]] bool install_revisit(const item& job);

  std::vector<std::unique_ptr<frame>> frames_;
  std::vector<std::unique_ptr<frame>> spare_;
  sequential_order sequential_;
  bool first_ = true;
};

}  // namespace model
