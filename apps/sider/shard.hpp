// A shard is an actor that owns a part of the keys; everybody else sends it tasks.
//
// The actor takes one task after the other and runs each to its end, so within a task nothing of
// the shard changes behind the task's back. Between tasks it erases keys whose time has come: when
// it is idle, by waiting no longer than until the next deadline; when it is busy, a few each time.
// It ends when the last sender of its tasks has gone.
//
// Threads: shard is the actor's own; shard_task::run is called in that actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <smarm/channel.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/this_actor.hpp>

#include "store.hpp"
#include "waiters.hpp"

namespace sider {

// unix_time_ms is the wall clock, which deadlines of keys are counted on.
[[nodiscard]] std::int64_t unix_time_ms();

struct shard {
  std::size_t index;
  shard_store store;
  waiter_registry waiters;
  std::int64_t now_ms = 0;  // read once for each task
};

class shard_task {
 public:
  virtual ~shard_task() = default;
  // run does the work; it neither parks nor throws.
  virtual void run(shard& here) = 0;
};

using shard_sender = smarm::sender<std::shared_ptr<shard_task>>;
using shard_receiver = smarm::receiver<std::shared_ptr<shard_task>>;

// serve_shard is the body of a shard's actor. Parks.
void serve_shard(std::size_t index, shard_receiver tasks);

namespace detail {

template <typename Function, typename Result>
class call_task final : public shard_task {
 public:
  explicit call_task(Function function) : function_(std::move(function)) {}
  void run(shard& here) override {
    try {
      result_.emplace(function_(here));
    } catch (...) {
      error_ = std::current_exception();
    }
    done_.release();
  }
  Result wait() {
    done_.acquire();
    if (error_ != nullptr) std::rethrow_exception(error_);
    return std::move(*result_);
  }

 private:
  Function function_;
  std::optional<Result> result_;
  std::exception_ptr error_;
  smarm::semaphore done_{0};
};

}  // namespace detail

// ask_shard runs `function(shard&)` in the shard's actor and returns its result, or throws what it
// threw. What it refers to on the caller's stack stays there: the wait cannot be stopped. Called by
// actors. Parks.
template <typename Function>
auto ask_shard(const shard_sender& to, Function function) {
  using result = decltype(function(std::declval<shard&>()));
  const smarm::stop_shield shield;
  auto task = std::make_shared<detail::call_task<Function, result>>(std::move(function));
  // Taken for certain: the shards end after everybody who asks them.
  [[maybe_unused]] const auto sent = to.send(task);
  return task->wait();
}

}  // namespace sider
