// waiters are the blocked pops (BLPOP, BRPOP) of one shard: who waits for which list.
//
// The protocol of a pop that may block, over any number of keys and shards:
//   1. The connection makes one pop_target and shows it, key by key in the order of the command, to
//      the shard of each key. A shard whose list has an element offers it at once; otherwise it
//      registers the target behind those that wait for that key already.
//   2. Whenever a list gains elements, its shard offers one to the first target registered,
//      then to the next, while elements and targets last.
//   3. A target takes one offer in all, whichever shard makes it first: the claim is decided where
//      the offers meet, at the connection's end. A refused element goes back to the end of the
//      list that it came from before the shard does anything else, so nobody sees that it was gone.
//   4. When it has an element, a timeout, or no client any more, the connection closes the target
//      and tells the shards to forget it. Between these two a shard may still offer, and is
//      refused.
//   5. A shard that crashes tells each target that is registered there, which ends the wait with an
//      error, unless another shard was faster.
// So exactly one element is popped or none, and none is lost but in the way Redis loses one: the
// client vanishes after it was served and before it read the reply.
//
// Invariant: a key stands in the map only while somebody waits for it.
// Threads: one owner, the shard's actor. A pop_target's offer is called from any shard's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store.hpp"

namespace sider {

enum class pop_end : std::uint8_t { left, right };

struct popped {
  std::string key;
  std::string element;
};

class pop_target {
 public:
  virtual ~pop_target() = default;
  // offer takes `found` and returns true, or leaves it as it was and returns false: another shard
  // was faster, or nobody waits any more. Never parks.
  [[nodiscard]] virtual bool offer(popped& found) = 0;
  // lose tells that a shard at which it waits has crashed. Never parks.
  virtual void lose() noexcept = 0;
};

class waiter_registry {
 public:
  enum class outcome : std::uint8_t { served, waiting, refused, wrong_type };

  // pop_or_wait offers an element of `key` to `target`, or registers it if there is none.
  outcome pop_or_wait(shard_store& store, key_ref key, std::int64_t now_ms, pop_end end,
                      const std::shared_ptr<pop_target>& target);

  // serve offers the elements of `key` to those that wait for it, first come first served.
  void serve(shard_store& store, key_ref key, std::int64_t now_ms);

  // forget removes every registration of `target` for `key`.
  void forget(std::string_view key, const pop_target* target);

  // abandon tells every target that the shard is lost.
  void abandon() noexcept;

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

 private:
  struct waiter {
    std::shared_ptr<pop_target> target;
    pop_end end;
  };

  static bool offer_one(list_value& items, std::string_view key, const waiter& to);

  std::unordered_map<std::string, std::deque<waiter>> waiting_;
};

}  // namespace sider
