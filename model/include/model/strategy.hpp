// strategy decides what a run does that the graph does not yet say: the exhaustive search, the
// random ones and the repetition of a recorded run are strategies.
#pragma once

#include <cstddef>
#include <vector>

#include "model/access.hpp"
#include "model/graph.hpp"

namespace model {

class strategy {
 public:
  enum class extension : std::uint8_t {
    added,    // the event is in the graph
    waits,    // nothing acceptable to read so far: ask again after another thread's step
    abandon,  // the execution is inconsistent, or seen elsewhere
  };

  strategy() = default;
  strategy(const strategy&) = delete;
  strategy& operator=(const strategy&) = delete;
  virtual ~strategy() = default;

  // next prepares the graph of the next run; false when there is none.
  [[nodiscard]] virtual bool next() = 0;
  // current is that graph.
  [[nodiscard]] virtual graph& current() = 0;
  // extend adds the thread's next event for `a`.
  [[nodiscard]] virtual extension extend(event_id id, const access& a) = 0;
  // complete finishes an event of the graph whose source was replaced or whose write is due.
  [[nodiscard]] virtual extension complete(event_id id, const access& a) = 0;
  // pick chooses among the threads that can go on.
  [[nodiscard]] virtual std::size_t pick(const std::vector<std::size_t>& able) {
    return able.front();
  }
  // is_stepwise: pick is asked before each step and not only when a thread cannot go on.
  [[nodiscard]] virtual bool is_stepwise() const { return false; }
  // finished tells how long the run was.
  virtual void finished(std::size_t /*steps*/) {}
};

}  // namespace model
