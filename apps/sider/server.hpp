// The server: what all actors of sider share, and the tree that starts and ends them.
//
//   sider                  one_for_one; ends with the shards
//   ├── shards             one_for_one: shard 0 .. N-1, started again empty
//   │   ├── gate           first and so last to end: closes the inboxes
//   │   └── shard 0 .. N-1
//   ├── expiry             tells the shards when to erase the keys whose time has come
//   ├── pubsub             simple_one_for_one: a pusher for each client that subscribes
//   ├── connections        simple_one_for_one: the actor of each client
//   ├── farewell           when the end comes: gives each client its replies, then closes it
//   └── listener tcp, listener unix
//
// It is started in that order and ends in reverse: nobody is accepted any more, the clients get the
// replies to what they had sent and are closed (after grace_period at the latest), then go the
// pushers, the expiry, and the shards, which nobody asks any more. SIGTERM, SIGINT and SHUTDOWN
// begin the end; a second signal kills the tree.
//
// What crashes or is killed is started again by its supervisor, but for connections and pushers,
// which go with their clients. What must outlive its actor is no actor's: the sockets that listen,
// the queues of the shards, the timetable of the expiry, the hub of the subscriptions. A supervisor
// that is killed takes along what it supervises. Where a shard crashes more often than
// shard_restarts allows, the shards end, and since nothing can be served without them, so does the
// server; and so it does where the others use up tree_restarts.
//
// Invariant: a server outlives its actors, for run() returns after all of them have ended.
// Threads: any actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/io_result.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/start.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/tcp.hpp>
#include <smarm/unix_socket.hpp>

#include "base/atomic.hpp"
#include "client.hpp"
#include "exchange.hpp"
#include "expiry.hpp"
#include "options.hpp"
#include "pubsub.hpp"
#include "settings.hpp"
#include "shard.hpp"

namespace sider {

// The names under which actors of the tree are registered.
namespace tree {
inline constexpr const char* root = "sider";
inline constexpr const char* shards = "shards";
inline constexpr const char* pubsub = "pubsub";
inline constexpr const char* connections = "connections";
inline constexpr const char* expiry = "expiry";  // no supervisor
}  // namespace tree

class server {
 public:
  // `schedulers` is the runtime's number, which is the default for the shards.
  server(const options& from, unsigned schedulers);

  // run listens, runs the tree and returns the exit status of the process. Called once, by a thread
  // that is no actor, which it blocks.
  int run();

  [[nodiscard]] const options& started_with() const { return options_; }
  [[nodiscard]] settings& config() { return settings_; }
  [[nodiscard]] client_registry& clients() { return clients_; }
  [[nodiscard]] pubsub_hub& hub() { return hub_; }
  [[nodiscard]] exchange_pool& exchanges() { return exchanges_; }
  [[nodiscard]] expiry_timetable& timetable() { return timetable_; }

  [[nodiscard]] std::size_t shard_count() const { return shards_.size(); }
  [[nodiscard]] shard_inbox& shard(std::size_t index) { return shards_[index]; }
  [[nodiscard]] std::size_t shard_index(std::uint64_t hash) const { return hash % shard_count(); }
  [[nodiscard]] const shard_inbox& shard_of(key_ref key) const {
    return shards_[shard_index(key.hash)];
  }

  // terminate begins the end, as SIGTERM does. Called by actors; never parks. Throws
  // std::system_error where it finds no memory.
  static void terminate();

  // tree_actors lists who works in the tree at present, supervisors left out. Called by actors.
  // Parks; a stop point.
  [[nodiscard]] std::vector<tree_actor> tree_actors();

  // count_commands adds to the number that INFO shows.
  void count_commands(std::size_t number) {
    commands_.fetch_add(number, smarm::detail::relaxed);  // a number by itself
  }
  [[nodiscard]] std::uint64_t command_count() const {
    return commands_.load(smarm::detail::relaxed);  // likewise
  }
  [[nodiscard]] std::int64_t started_ms() const { return started_ms_; }
  [[nodiscard]] unsigned schedulers() const { return schedulers_; }

 private:
  [[nodiscard]] bool listen();
  [[nodiscard]] smarm::start_result start_tree();
  [[nodiscard]] smarm::child_spec shards_spec();
  [[nodiscard]] smarm::child_spec gate_spec();
  [[nodiscard]] smarm::child_spec expiry_spec();
  [[nodiscard]] smarm::child_spec farewell_spec();
  template <typename Listener>
  [[nodiscard]] smarm::child_spec listener_spec(const char* name, Listener& from);
  void announce() const;
  template <typename Listener>
  void accept_from(Listener& listener);
  void welcome(client_stream stream);
  [[nodiscard]] smarm::start_result start_client(std::uint64_t id);
  void say_farewell();

  const options options_;
  const unsigned schedulers_;
  const std::int64_t started_ms_;
  settings settings_;
  smarm::semaphore drained_{0};  // a permit once the last client has gone
  client_registry clients_;
  pubsub_hub hub_;
  std::deque<shard_inbox> shards_;
  expiry_timetable timetable_;
  exchange_pool exchanges_;
  smarm::tcp_listener tcp_;  // the sockets are the server's: a listener that crashes does not take
  smarm::unix_listener unix_;  // its address along
  smarm::detail::atomic<std::uint64_t> commands_{0};
};

}  // namespace sider
