// A shard is a part of the keys, and the actor that owns them; everybody else sends it tasks.
//
// The actor takes one task after the other and runs each to its end, so within a task nothing of
// the shard changes behind the task's back. After each it notes when its next key is due; the
// expiry's actor then sends the task that erases it (expiry.hpp).
//
// A shard may crash, for what a task throws ends its actor. Its keys go with it; who waits for one
// of its lists is told; the command that it ran is answered with shard_lost_error; and its
// supervisor starts the next actor, empty, on the same inbox (shard_inbox.hpp).
//
// Threads: shard is the actor's own; shard_task::run is called in that actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <smarm/semaphore.hpp>
#include <smarm/start.hpp>
#include <smarm/this_actor.hpp>

#include "expiry.hpp"
#include "shard_inbox.hpp"
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

  // Gives way to others every now and then: a million keys take a while. Parks.
  ~shard();
};

// serve_shard is the body of a shard's actor. Parks.
void serve_shard(smarm::starting& me, shard_inbox& inbox, expiry_timetable& timetable);

// shard_lost says that the shard crashed before it had done what it was asked.
class shard_lost : public std::runtime_error {
 public:
  shard_lost() : std::runtime_error("the shard has crashed") {}
};

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
  void abandon(std::size_t) noexcept override { done_.release(); }
  Result wait() {
    done_.acquire();
    if (error_ != nullptr) std::rethrow_exception(error_);
    if (!result_) throw shard_lost();
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
// threw, or shard_lost. What it refers to on the caller's stack stays there: the wait cannot be
// stopped, and ends however the shard does. Called by actors. Parks.
template <typename Function>
auto ask_shard(const shard_inbox& to, Function function) {
  using result = decltype(function(std::declval<shard&>()));
  const smarm::stop_shield shield;
  auto task = std::make_shared<detail::call_task<Function, result>>(std::move(function));
  to.send(task);
  return task->wait();
}

}  // namespace sider
