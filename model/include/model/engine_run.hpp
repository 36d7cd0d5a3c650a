// The part of the engine that moves: fibers, the repetition of a graph, its extension by an access.
#pragma once

#include <exception>
#include <string>

#include "model/engine.hpp"
#include "model/steps.hpp"

namespace model {

// enter is where each fiber begins; it never returns.
inline void engine::enter() {
  engine& e = *active_;
  fiber::begin(e.scheduler_);
  thread_state& me = e.self();
  e.user_ = 1;
  try {
    me.body(me.closure);
  } catch (const std::exception& escaped) {
    e.fail("exception", std::string{"an exception leaves the thread: "} + escaped.what());
  } catch (...) {
    e.fail("exception", "an exception leaves the thread");
  }
  engine::system_scope scope{&e};
  access last;
  last.kind = event_kind::end;
  e.perform(last);
  e.yield(thread_status::done);
}

inline void engine::begin() {
  active_ = this;
  arena_.reset();
  places_.reset();
  trace_.clear();
  kind_.clear();
  message_.clear();
  over_ = false;
  end_ = run_end::complete;
  steps_ = 0;
  for (std::size_t t = 0; t < known_threads_; ++t) {
    thread_state& s = threads_[t];
    s.status = thread_status::unborn;
    s.restart();
  }
}

inline run_end engine::run(void (*body)(void*), void* closure) {
  graph_ = &strategy_.current();
  begin();
  threads_[0].body = body;
  threads_[0].closure = closure;
  threads_[0].name = "main";
  threads_[0].status = thread_status::ready;
  threads_[0].stack.prepare(&engine::enter);
  if (!strategy_.is_stepwise()) replay_all();
  replaying_ = false;
  if (!over_) extend_all();
  if (!over_) end_ = judge();
  active_ = nullptr;
  strategy_.finished(steps_);
  return end_;
}

// resume lets a thread run until it comes to a place where it cannot, or may not, go on.
inline void engine::resume(std::size_t thread) {
  thread_ = thread;
  threads_[thread].status = thread_status::ready;
  scheduler_.switch_to(threads_[thread].stack);
}

// yield gives the processor back to the scheduler. It returns when the thread is resumed.
inline void engine::yield(thread_status status) {
  self().status = status;
  const int user = std::exchange(user_, 0);
  self().stack.switch_to(scheduler_);
  user_ = user;
}

inline void engine::stop(run_end end) {
  over_ = true;
  end_ = end;
  user_ = 0;
  self().stack.switch_to(scheduler_);
  std::abort();  // a fiber of a run that is over is never resumed
}

// replay_all has every thread do again what the graph holds of it.
inline void engine::replay_all() {
  replaying_ = true;
  for (bool progress = true; progress && !over_;) {
    progress = false;
    for (std::size_t t = 0; t < known_threads_ && !over_; ++t) {
      thread_state& s = threads_[t];
      const bool freed =
          s.status == thread_status::replaying && threads_[s.awaits.thread].count > s.awaits.index;
      if (s.status != thread_status::ready && !freed) continue;
      resume(t);
      progress = true;
    }
  }
  for (std::size_t t = 0; t < known_threads_ && !over_; ++t)
    if (threads_[t].count < graph_->of(t).size()) {
      over_ = true;
      end_ = run_end::misuse;
      message_ = "the model differs between two runs: thread " + std::to_string(t) +
                 " did less than before; does it depend on a clock, on randomness or on state " +
                 "that outlives a run?";
    }
}

inline bool engine::can_go_on(std::size_t thread) {
  const thread_state& s = threads_[thread];
  switch (s.status) {
    case thread_status::ready:
    case thread_status::frontier:
      return true;
    case thread_status::retrying:
      return s.shared_steps != steps_;
    case thread_status::spinning:
      // A walk lets it look again until it has seen the newest: stores become visible in the end.
      return strategy_.is_stepwise() && (s.shared_steps != steps_ || !is_final(thread));
    case thread_status::joining:
      return threads_[s.partner].status == thread_status::done;
    default:
      return false;
  }
}

inline void engine::collect_able(std::vector<std::size_t>& able) {
  able.clear();
  for (std::size_t t = 0; t < known_threads_; ++t)
    if (can_go_on(t)) able.push_back(t);
}

inline void engine::extend_all() {
  std::vector<std::size_t> able;
  while (!over_) {
    collect_able(able);
    if (able.empty()) return;
    resume(strategy_.pick(able));
  }
}

// await_source waits until the event that `e` reads from has been done again.
inline void engine::await_source(const event& e) {
  const bool depends = is_reader(e.kind) || e.kind == event_kind::join;
  if (!depends || is_initial(e.source)) return;
  while (threads_[e.source.thread].count <= e.source.index) {
    self().awaits = e.source;
    yield(thread_status::replaying);
  }
}

inline step engine::perform(const access& a) {
  system_scope scope{this};
  const event_id id{static_cast<std::uint16_t>(thread_), self().count};
  if (self().count < graph_->of(thread_).size()) {
    await_source(graph_->at(id));
    const event& known = graph_->at(id);
    check_same(id, a);
    const bool due = known.pending || (known.exclusive && !known.written);
    if (due && strategy_.complete(id, a) == strategy::extension::abandon)
      stop(run_end::inconsistent);
  } else {
    if (self().count >= options_.events_max) {
      message_ = "thread " + std::to_string(thread_) + " does not end: more than " +
                 std::to_string(options_.events_max) + " accesses, the last at " + where(a.site);
      stop(run_end::bound);
    }
    if (replaying_ || strategy_.is_stepwise()) yield(thread_status::frontier);
    for (;;) {
      const strategy::extension how = strategy_.extend(id, a);
      if (how == strategy::extension::added) break;
      if (how == strategy::extension::abandon) stop(run_end::inconsistent);
      self().shared_steps = steps_;
      self().waits_at = a.site;
      self().timed = a.timed;
      yield(thread_status::retrying);
    }
    if (graph_->sequential() > sequential_max) {
      message_ = "more than " + std::to_string(sequential_max) + " seq_cst events";
      stop(run_end::bound);
    }
  }
  took(graph_->at(id), a);
  const event& e = graph_->at(id);
  return {e.read, e.exclusive, e.spurious};
}

// took notes that the calling thread's next event has been done.
inline void engine::took(const event& e, const access& a) {
  if (e.location != no_location) check_plain(e);
  trace_.push_back(e.id);
  ++self().count;
  ++steps_;
  ++work_;
  if (!e.blocked) return;
  self().waits_at = a.site;
  self().timed = a.timed;
  self().waits_for = &a;
  yield(thread_status::waiting);
}

// check_same: a run that repeats a graph has to do the same accesses.
inline void engine::check_same(event_id id, const access& a) {
  const event& e = graph_->at(id);
  const bool same_write = e.kind != event_kind::store || e.wrote == a.operand;
  if (e.kind == a.kind && e.location == a.location && e.site == a.site && same_write) return;
  std::string now = std::string{name_of(a.kind)} + " at " + where(a.site);
  if (e.kind == a.kind && e.site == a.site)
    now += e.location != a.location ? " of another object" : " of another value";
  misuse("the model differs between two runs: event " + std::to_string(id.index) + " of thread " +
         std::to_string(id.thread) + " was " + name_of(e.kind) + " at " + where(e.site) +
         " and is now " + now + "; does it depend on a clock, on randomness or on state that " +
         "outlives a run?");
}

}  // namespace model
