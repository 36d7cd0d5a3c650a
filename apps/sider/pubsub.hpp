// Publish and subscribe: who listens to what, and the queue of each listener.
//
// A connection that subscribes stops writing to its socket. Everything for it, messages and its own
// replies, goes into its outbox, and an actor of its own, the pusher, writes that out. So messages
// arrive while the connection waits for the next command, and order is the outbox's order: the
// confirmation of a subscription stands before its first message, for both are appended under
// the hub's lock.
//
// The hub is no actor but state under a lock, since a message is published by appending it, and an
// actor in between would be one more hop for each and one more thing to crash. What crashes is
// somebody who works on it. A pusher takes its client along and is not started again, for nobody
// can tell how much of its last batch has been written; by whatever it ends, it breaks the outbox
// off, so nothing gathers there, and closes the stream, so the connection ends and leaves the hub.
//
// Invariants
//   1. Publishing never waits for a client: a message is appended, or the client is over its limit.
//   2. LIMIT: an outbox whose unwritten bytes exceed the limit closes its client.
//   3. What the hub does is one step for a stop or a kill: it falls before or after. Where memory
//      runs out in the middle, the caller's forget() sets right what is left of its own.
//   4. A subscriber in the directories has a connection, which forgets it before it ends.
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
#include <smarm/pid.hpp>

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

  // push is the body of the pusher: it writes until finish() or until the client is gone, and
  // closes the client's stream however it ends. Parks.
  void push();

  // panic crashes the pusher.
  void panic();

 private:
  void break_off();

  const std::shared_ptr<client> owner_;
  client_registry& clients_;
  smarm::mutex mutex_;
  smarm::condition_variable changed_;
  std::string pending_;    // guarded by mutex_, as all below
  bool finished_ = false;  // nothing will be appended any more
  bool broken_ = false;    // nobody reads any more; what is appended is dropped
  bool panic_due_ = false;
};

// subscriber is a connection's part in the hub. Guarded by the hub's lock.
struct subscriber {
  subscriber(std::shared_ptr<client> owner, client_registry& clients)
      : whose(owner), queue(std::move(owner), clients) {}

  const std::shared_ptr<client> whose;
  smarm::pid pusher;  // constant once it subscribes
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

  // list_actors appends the pushers of all who subscribe.
  void list_actors(std::vector<tree_actor>& into);
  // panic crashes the pusher of that client; false: it is subscribed to nothing.
  bool panic(std::uint64_t client_id);

 private:
  using directory = std::map<std::string, std::vector<subscriber*>, std::less<>>;

  [[nodiscard]] std::map<std::uint64_t, subscriber*> by_client() const;
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
