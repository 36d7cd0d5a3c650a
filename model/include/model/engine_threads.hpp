// The part of the engine that starts threads, joins them, and lets them wait in loops.
#pragma once

#include <string>
#include <utility>

#include "model/engine_run.hpp"

namespace model {

// number_of_child: a thread's number depends on who starts it and on how many he started before.
inline std::size_t engine::number_of_child() {
  const std::pair<std::size_t, std::size_t> key{thread_, self().children++};
  const auto known = children_.find(key);
  if (known != children_.end()) return known->second;
  if (known_threads_ == threads_max)
    misuse("more than " + std::to_string(threads_max) + " threads in one execution");
  children_.emplace(key, known_threads_);
  return known_threads_++;
}

inline std::size_t engine::start(void (*body)(void*), void* closure, const char* name,
                                 std::uint32_t site) {
  system_scope scope{this};
  const std::size_t child = number_of_child();
  const event_id id{static_cast<std::uint16_t>(thread_), self().count};
  access a;
  a.kind = event_kind::spawn;
  a.site = site;
  a.operand.low = child;
  graph_->set_born(child, id);
  perform(a);
  thread_state& s = threads_[child];
  s.body = body;
  s.closure = closure;
  s.restart();
  s.name = name;
  s.status = thread_status::ready;
  s.stack.prepare(&engine::enter);
  return child;
}

inline void engine::join(std::size_t thread, std::uint32_t site) {
  system_scope scope{this};
  access a;
  a.kind = event_kind::join;
  a.site = site;
  const bool recorded = self().count < graph_->of(thread_).size();
  if (recorded) {
    a.source = graph_->of(thread_)[self().count].source;
  } else {
    // While a graph is repeated nobody adds to it, not even the end of a thread that is over.
    if (replaying_ || strategy_.is_stepwise()) yield(thread_status::frontier);
    self().partner = thread;
    self().waits_at = site;
    while (threads_[thread].status != thread_status::done) yield(thread_status::joining);
    a.source = {static_cast<std::uint16_t>(thread),
                static_cast<std::uint16_t>(threads_[thread].count - 1)};
  }
  perform(a);
}

// pause: a round of the loop that did nothing but read is not done again: every value that could
// end the loop can be had by the reads of this round, in another execution. The first round of a
// loop is known as such only if the thread did nothing but read at all; else the second one is the
// first.
inline void engine::pause(std::uint32_t site) {
  system_scope scope{this};
  thread_state& me = self();
  const bool again = me.loop == site;
  if (me.iteration == me.count) {
    if (++me.idle > idle_max)
      misuse("a loop at " + where(site) + " waits without reading anything that others write");
    return;
  }
  bool only_reads = again || me.loop == no_location;
  const auto& events = graph_->of(thread_);
  for (std::size_t i = me.iteration; i < me.count; ++i)
    only_reads = only_reads && is_reader(events[i].kind) && !events[i].exclusive;
  me.loop = me.waits_at = site;
  me.round = me.iteration;
  me.iteration = me.count;
  me.idle = 0;
  if (!only_reads) return;
  me.shared_steps = steps_;
  yield(thread_status::spinning);
}

inline void engine::assume(bool holds) {
  if (holds) return;
  system_scope scope{this};
  yield(thread_status::assuming);
}

}  // namespace model
