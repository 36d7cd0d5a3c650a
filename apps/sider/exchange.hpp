// An exchange is what a connection and the shards pass to and fro: the bytes read, and the batch of
// commands found in them.
//
// Invariants
//   1. While any shard has the batch, nobody changes the input: the arguments are views into it.
//   2. An exchange is in one place: with a connection that is in the middle of a request, or in the
//      pool. So an idle connection holds no buffer.
// It is shared by pointer with the shards, so it outlives a connection that ends in the middle.
// A shard that crashes gives its permit too; what it has not answered settle() answers.
// Threads: the connection's; run() in a shard's actor; the pool is for all actors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <smarm/mutex.hpp>
#include <smarm/semaphore.hpp>

#include "base/atomic.hpp"
#include "router.hpp"
#include "shard.hpp"

namespace sider {

class exchange final : public shard_task {
 public:
  explicit exchange(std::size_t shard_count) : work(shard_count) {}

  // run is called once in each shard that the batch was sent to.
  void run(shard& here) override;

  // abandon marks the part of a shard that will not run it, or has crashed on it.
  void abandon(std::size_t index) noexcept override;

  // settle answers what lost shards have left with an error. Called with a permit of every shard.
  void settle();

  // failed tells that a shard has had no memory for its part, so the batch can never be merged.
  // Called with a permit of every shard.
  [[nodiscard]] bool failed() const {
    return failed_.load(smarm::detail::relaxed);  // the permits order it after the shards' stores
  }

  std::string input;   // what was read and not yet dealt with
  std::string output;  // replies on their way
  batch work;
  smarm::semaphore done{0};  // a permit for each shard that is through, or lost

 private:
  smarm::detail::atomic<bool> failed_{false};  // written by shards, read by the connection
  smarm::detail::atomic<bool> lost_{false};    // written by shards, read by the connection
};

class exchange_pool {
 public:
  explicit exchange_pool(std::size_t shard_count) : shard_count_(shard_count) {}

  // take returns an empty exchange.
  [[nodiscard]] std::shared_ptr<exchange> take();

  // give takes one back. One that has grown large is let go instead.
  void give(std::shared_ptr<exchange> used);

 private:
  static constexpr std::size_t kept_max = 64;
  static constexpr std::size_t bytes_kept_max = std::size_t{256} << 10;  // by one of them

  const std::size_t shard_count_;
  smarm::mutex mutex_;
  std::vector<std::shared_ptr<exchange>> kept_;  // guarded by mutex_
};

}  // namespace sider
