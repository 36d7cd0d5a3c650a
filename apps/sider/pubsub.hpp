// Publish and subscribe: who listens to what, and the queue of each listener.
//
// A connection that subscribes stops writing to its socket. Everything for it, messages and its own
// replies, goes into its outbox, and an actor of its own, the pusher, writes that out. So messages
// arrive while the connection waits for the next command, and order is the outbox's order: the
// confirmation of a subscription stands before its first message, for both are appended under
// the hub's lock.
//
// Invariants
//   1. Publishing never waits for a client: a message is appended, or the client is over its limit.
//   2. LIMIT: an outbox whose unwritten bytes exceed the limit closes its client.
// Lock order: hub, outbox, client registry. Threads: any actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <smarm/condition_variable.hpp>
#include <smarm/mutex.hpp>

#include "client.hpp"

namespace sider {

class outbox {
 public:
  outbox(std::shared_ptr<client> owner, client_registry& clients)
      : owner_(std::move(owner)), clients_(clients) {}

  // append queues text to be written. Beyond `bytes_max` it drops everything and closes the client.
  void append(std::string_view text, std::size_t bytes_max);

  // finish lets the pusher end once everything queued is written.
  void finish();

  // push is the body of the pusher: it writes until finish() or until the client is gone. Parks.
  void push();

 private:
  const std::shared_ptr<client> owner_;
  client_registry& clients_;
  smarm::mutex mutex_;
  smarm::condition_variable changed_;
  std::string pending_;    // guarded by mutex_, as all below
  bool finished_ = false;  // nothing will be appended any more
  bool broken_ = false;    // nobody reads any more; what is appended is dropped
};

// subscriber is a connection's part in the hub. Guarded by the hub's lock.
struct subscriber {
  subscriber(std::shared_ptr<client> owner, client_registry& clients)
      : whose(owner), queue(std::move(owner), clients) {}

  const std::shared_ptr<client> whose;
  outbox queue;
  std::set<std::string, std::less<>> channels;
  std::set<std::string, std::less<>> patterns;
};

class pubsub_hub {
 public:
  enum class kind : std::uint8_t { channel, pattern };

  // subscribe and unsubscribe confirm each step in the subscriber's outbox. unsubscribe without
  // names means all of them; without any subscription it confirms that once.
  void subscribe(subscriber& who, kind what, std::string_view name, std::size_t bytes_max);
  void unsubscribe(subscriber& who, kind what, argument_list names, std::size_t bytes_max);

  // forget removes every subscription without a word.
  void forget(subscriber& who);

  // publish queues the message at everybody who listens and returns to how many.
  std::size_t publish(std::string_view channel, std::string_view message, std::size_t bytes_max);

  // The three of PUBSUB.
  [[nodiscard]] std::vector<std::string> channels(std::string_view pattern);
  [[nodiscard]] std::size_t subscriber_count(std::string_view channel);
  [[nodiscard]] std::size_t pattern_count();

 private:
  using directory = std::map<std::string, std::vector<subscriber*>, std::less<>>;

  static void leave(directory& from, std::string_view name, const subscriber& who);
  [[nodiscard]] static std::string confirmation(std::string_view verb, const std::string* name,
                                                const subscriber& who);

  smarm::mutex mutex_;
  directory channels_;  // guarded by mutex_; no entry is empty
  directory patterns_;  // guarded by mutex_; no entry is empty
};

// append_unsubscribed writes what UNSUBSCRIBE answers a client that has no subscriptions at all.
void append_unsubscribed(reply_writer reply, std::string_view verb, argument_list names);

}  // namespace sider
