// engine runs one execution: it starts the model threads as fibers, lets each do again what the
// graph says, and asks the strategy how to go on from there.
//
// Invariants
//   1. Threads are switched only inside perform(), pause() and at their end: code between two
//   accesses
//      is atomic. Plain memory is nevertheless right in every race-free program, because an event
//      is done again only after all its causes.
//   2. A run that is given up leaves its fibers where they are; nothing is unwound.
// Threads: one OS thread; model threads call in from their fibers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/access.hpp"
#include "model/arena.hpp"
#include "model/options.hpp"
#include "model/places.hpp"
#include "model/sc.hpp"
#include "model/strategy.hpp"
#include "model/threads.hpp"

namespace model {

enum class run_end : std::uint8_t { complete, blocked, inconsistent, failed, bound, misuse };

class engine {
 public:
  engine(const options& wished, strategy& how) : options_(wished), strategy_(how) {}
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  // current is the engine whose run the caller is part of, or null outside of a run.
  [[nodiscard]] static engine* current() noexcept { return active_; }
  // is_user: a model thread is executing code that is not the checker's.
  [[nodiscard]] static bool is_user() noexcept { return active_ != nullptr && active_->user_ > 0; }

  // is_arena: the address is of a run's memory, whether or not a run is going on.
  [[nodiscard]] static bool is_arena(const void* address) noexcept {
    return arena::is_reserved(address);
  }

  // run executes the strategy's current graph to its end.
  [[nodiscard]] run_end run(void (*body)(void*), void* closure);

  // ---- for model threads ----

  // perform does one access; it returns when the access has a place in the execution.
  step perform(const access& a);
  // start makes a thread; it returns its number.
  std::size_t start(void (*body)(void*), void* closure, const char* name, std::uint32_t site);
  // join waits for the end of a thread.
  void join(std::size_t thread, std::uint32_t site);
  // pause ends an iteration of a loop that waits for others.
  void pause(std::uint32_t site);
  // assume gives the run up quietly unless `holds`.
  void assume(bool holds);
  // fail ends the run: the execution is wrong.
  [[noreturn]] void fail(std::string kind, std::string message);
  // misuse ends the exploration: the model breaks a rule of the checker.
  [[noreturn]] void misuse(std::string message);
  // race: two accesses of which one is plain and one a write, and no order between them.
  void race(const place& p, const char* kind, const char* what, std::uint32_t site,
            std::uint32_t other_site, std::size_t other_thread);

  // allocate takes memory of the run; `kept`: it is the checker's and no leak.
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment, std::uint32_t site,
                               bool kept);
  // release gives a block back. It ends the run if there is no such block, or not any more.
  void release(void* address);
  // expect_live ends the run if the block is gone already, before its destructor runs a second
  // time.
  void expect_live(void* address);

  // now is the moment at which the calling thread is.
  [[nodiscard]] epoch now() const {
    return {static_cast<std::uint16_t>(thread_), static_cast<std::uint16_t>(self().count + 1)};
  }
  // seen is what the calling thread knows at this moment.
  [[nodiscard]] const clock& seen() {
    static const clock nothing{};
    const event_id next{static_cast<std::uint16_t>(thread_), self().count};
    const event* earlier = graph_->predecessor(next);
    return earlier != nullptr ? earlier->before : nothing;
  }

  // is_outside: the address belongs to no memory of this run, so what is there outlives it.
  [[nodiscard]] bool is_outside(const void* address) const {
    if (arena_.holds(address)) return false;
    for (const thread_state& s : threads_)
      if (s.stack.holds(address)) return false;
    return true;
  }

  // ---- parts and findings ----

  [[nodiscard]] arena& memory() { return arena_; }
  [[nodiscard]] places& objects() { return places_; }
  [[nodiscard]] std::size_t thread() const { return thread_; }
  [[nodiscard]] thread_state& self() { return threads_[thread_]; }
  [[nodiscard]] const thread_state& self() const { return threads_[thread_]; }
  [[nodiscard]] const thread_state& of(std::size_t thread) const { return threads_[thread]; }
  [[nodiscard]] const graph& execution() const { return *graph_; }
  [[nodiscard]] const std::vector<event_id>& trace() const { return trace_; }
  // work grows with everything that model threads do.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  // last_place says where the calling thread last touched shared state.
  [[nodiscard]] std::string last_place() const {
    const auto& events = graph_->of(thread_);
    if (self().count == 0) return "its start";
    const event& e = events[self().count - 1U];
    return std::string{sites.at(e.site).what} + " at " + where(e.site);
  }
  [[nodiscard]] const options& wishes() const { return options_; }
  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] std::uint64_t races() const { return races_; }

  // system_scope marks the checker's own work on a model thread.
  class system_scope {
   public:
    explicit system_scope(engine* e) : engine_(e) {
      if (engine_ != nullptr) --engine_->user_;
    }
    ~system_scope() {
      if (engine_ != nullptr) ++engine_->user_;
    }
    system_scope(const system_scope&) = delete;
    system_scope& operator=(const system_scope&) = delete;

   private:
    engine* engine_;
  };

 private:
  static void enter();
  void begin();
  void resume(std::size_t thread);
  void yield(thread_status status);
  [[noreturn]] void stop(run_end end);
  void replay_all();
  void extend_all();
  void collect_able(std::vector<std::size_t>& able);
  [[nodiscard]] bool can_go_on(std::size_t thread);
  [[nodiscard]] run_end judge();
  [[nodiscard]] bool was_woken(std::size_t thread) const;
  [[nodiscard]] bool is_final(std::size_t thread) const;
  [[nodiscard]] bool find_leak();
  [[nodiscard]] std::string describe_stuck() const;
  void await_source(const event& e);
  void check_same(event_id id, const access& a);
  void check_plain(const event& e);
  void took(const event& e, const access& a);
  [[nodiscard]] std::size_t number_of_child();

  static inline engine* active_ = nullptr;

  const options& options_;
  strategy& strategy_;
  graph* graph_ = nullptr;
  arena arena_;
  places places_;
  std::array<thread_state, threads_max> threads_;
  fiber scheduler_;
  std::size_t thread_ = 0;
  int user_ = 0;
  bool replaying_ = false;
  bool over_ = false;
  run_end end_ = run_end::complete;
  std::size_t steps_ = 0;
  std::uint64_t work_ = 0;
  std::vector<event_id> trace_;
  std::string kind_;
  std::string message_;
  std::uint64_t races_ = 0;
  std::vector<bool> plain_;  // locations that somebody accesses without atomicity
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> children_;
  std::size_t known_threads_ = 1;
};

}  // namespace model
