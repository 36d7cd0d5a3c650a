// The part of the engine that judges: what an execution's end means, and what is wrong with it.
#pragma once

#include <string>
#include <utility>

#include "model/engine.hpp"
#include "model/steps.hpp"

namespace model {

inline void engine::fail(std::string kind, std::string message) {
  kind_ = std::move(kind);
  message_ = std::move(message);
  stop(run_end::failed);
}

inline void engine::misuse(std::string message) {
  message_ = std::move(message);
  stop(run_end::misuse);
}

inline void engine::race(const place& p, const char* kind, const char* what, std::uint32_t site,
                         std::uint32_t other_site, std::size_t other_thread) {
  if (is_planted(fault::no_race_check)) return;
  ++races_;
  if (!options_.races_fail) return;
  std::string name = p.name != nullptr ? p.name : "the object made at " + where(p.site);
  fail(kind, std::string{what} + ": thread " + std::to_string(thread_) + " at " + where(site) +
                 " and thread " + std::to_string(other_thread) + " at " + where(other_site) +
                 " access " + name + ", and neither happens before " + "the other");
}

// check_plain looks for a race of `e` with the events on the same location that are done already.
inline void engine::check_plain(const event& e) {
  if (plain_.size() <= e.location) plain_.resize(e.location + 1);
  if (e.strength == order::plain) plain_[e.location] = true;
  if (!plain_[e.location]) return;
  const graph_location& at = graph_->location(e.location);
  for (std::size_t t = 0; t < threads_max; ++t)
    for (std::int32_t i = at.last[t]; i >= 0; i = graph_->of(t)[i].previous) {
      const event& other = graph_->of(t)[i];
      if (t == e.id.thread || i >= threads_[t].count || e.before.has(other.id)) continue;
      const bool writes = e.exclusive || e.kind == event_kind::store || other.exclusive ||
                          other.kind == event_kind::store;
      const bool plain = e.strength == order::plain || other.strength == order::plain;
      if (writes && plain)
        race(*places_.of(e.location), "data race", "two accesses", e.site, other.site, t);
    }
}

// was_woken: the thread waits in this execution, but a write that it has passed over wakes it in
// another.
inline bool engine::was_woken(std::size_t thread) const {
  const access& a = *threads_[thread].waits_for;
  if (!a.sticky) return false;
  const event& e = graph_->of(thread).back();
  const auto& writes = graph_->location(e.location).writes;
  for (std::size_t i = floor_for(*graph_, e.id, e.location, false); i < writes.size(); ++i)
    if (a.accepts(graph_->at(writes[i]).wrote)) return true;
  return false;
}

// is_final: nothing that may still happen can wake the thread.
inline bool engine::is_final(std::size_t thread) const {
  const thread_state& s = threads_[thread];
  const auto reads_newest = [this](const event& e) {
    if (e.spurious) return false;
    const auto& writes = graph_->location(e.location).writes;
    return writes.empty() || e.source == writes.back();
  };
  switch (s.status) {
    case thread_status::done:
    case thread_status::joining:
      return true;
    case thread_status::retrying:
      return !s.timed;
    case thread_status::waiting:
      return !s.timed && reads_newest(graph_->of(thread).back()) && !was_woken(thread);
    case thread_status::spinning:
      if (is_planted(fault::spin_is_stuck)) return true;
      for (std::size_t i = s.round; i < s.count; ++i)
        if (!reads_newest(graph_->of(thread)[i])) return false;
      return true;
    default:
      return false;
  }
}

// judge: no thread can go on; what does that mean?
inline run_end engine::judge() {
  bool all_done = true;
  bool all_final = true;
  for (std::size_t t = 0; t < known_threads_; ++t) {
    const thread_status status = threads_[t].status;
    if (status == thread_status::unborn) continue;
    all_done = all_done && status == thread_status::done;
    all_final = all_final && is_final(t);
  }
  if (all_done) return options_.leaks_fail && find_leak() ? run_end::failed : run_end::complete;
  if (!all_final || is_planted(fault::deadlock_ignored)) return run_end::blocked;
  bool spinning = false;
  for (std::size_t t = 0; t < known_threads_; ++t)
    spinning = spinning || threads_[t].status == thread_status::spinning;
  kind_ = spinning ? "livelock" : "deadlock";
  message_ = describe_stuck();
  return run_end::failed;
}

// find_leak looks through the arena after a complete run.
inline bool engine::find_leak() {
  std::size_t leaks = 0;
  arena_.for_each([&](std::size_t thread, const block& b, const char* address) {
    if (b.freed && !arena::is_untouched(b, address)) {
      kind_ = "use after free";
      message_ = "a block of " + std::to_string(b.size) + " bytes, allocated by thread " +
                 std::to_string(thread) + " at " + where(b.site) +
                 ", was written after it was freed";
    }
    if (b.freed || b.kept || ++leaks > 1 || !kind_.empty()) return;
    kind_ = "leak";
    message_ = "a block of " + std::to_string(b.size) + " bytes, allocated by thread " +
               std::to_string(thread) + " at " + where(b.site) + ", is never freed";
  });
  return !kind_.empty();
}

inline void* engine::allocate(std::size_t size, std::size_t alignment, std::uint32_t site,
                              bool kept) {
  system_scope scope{this};
  void* address = arena_.allocate(thread_, size, alignment, site, kept);
  if (address == nullptr)
    misuse("thread " + std::to_string(thread_) + " allocates more than a run may have");
  return address;
}

inline void engine::expect_live(void* address) {
  system_scope scope{this};
  const block* b = arena_.holds(address) ? arena_.find(address) : nullptr;
  if (b == nullptr || arena_.address_of(*b, address) != address)
    fail("bad free", "an address is freed that was never allocated");
  if (b->freed)
    fail("double free", "a block of " + std::to_string(b->size) + " bytes, allocated at " +
                            where(b->site) + ", is freed twice");
}

inline void engine::release(void* address) {
  system_scope scope{this};
  expect_live(address);
  block* b = arena_.find(address);
  for (place& p : places_.all()) {
    const auto* at = static_cast<const char*>(p.address);
    if (at >= address && at < static_cast<char*>(address) + b->size) p.dead = true;
  }
  arena_.free(*b, address);
}

inline std::string engine::describe_stuck() const {
  std::string text;
  for (std::size_t t = 0; t < known_threads_; ++t) {
    const thread_state& s = threads_[t];
    if (s.status == thread_status::unborn || s.status == thread_status::done) continue;
    if (!text.empty()) text += "; ";
    text += "thread " + std::to_string(t);
    const std::string at = where(s.waits_at);
    if (s.status == thread_status::joining) {
      text += " waits for thread " + std::to_string(s.partner);
    } else if (s.status == thread_status::spinning) {
      text += " spins for ever at " + at;
    } else {
      text += std::string{" is in "} + sites.at(s.waits_at).what + " at " + at + " for ever";
    }
  }
  return text;
}

}  // namespace model
