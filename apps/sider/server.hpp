// The server: what all actors of sider share, and the root that starts and ends them.
//
// Actors: the root; a shard each; a listener for TCP and one for the unix socket; one for signals;
// one for each client, a second one for a client that subscribes. The root waits for the first
// SIGTERM, SIGINT or SHUTDOWN, then closes the listeners and drains: each client gets the replies
// to what it had sent and is closed, after grace_period at the latest. A second signal ends the
// process at once. When the last client has gone the shards' senders are dropped, and everything
// ends.
//
// Invariant: a server outlives its actors, for run() returns after all of them have ended.
// Threads: any actor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/io_result.hpp>
#include <smarm/tcp.hpp>
#include <smarm/unix_socket.hpp>

#include "base/atomic.hpp"
#include "client.hpp"
#include "exchange.hpp"
#include "options.hpp"
#include "pubsub.hpp"
#include "settings.hpp"
#include "shard.hpp"

namespace sider {

enum class control_event : std::uint8_t { terminate, drained };

class server {
 public:
  // `schedulers` is the runtime's number, which is the default for the shards.
  server(const options& from, unsigned schedulers);

  // run is the root actor's body; it returns the exit status of the process. Parks.
  int run();

  [[nodiscard]] const options& started_with() const { return options_; }
  [[nodiscard]] settings& config() { return settings_; }
  [[nodiscard]] client_registry& clients() { return clients_; }
  [[nodiscard]] pubsub_hub& hub() { return hub_; }
  [[nodiscard]] exchange_pool& exchanges() { return exchanges_; }

  [[nodiscard]] std::size_t shard_count() const { return shard_count_; }
  [[nodiscard]] const shard_sender& shard(std::size_t index) const { return shards_[index]; }
  [[nodiscard]] std::size_t shard_index(std::uint64_t hash) const { return hash % shard_count_; }
  [[nodiscard]] const shard_sender& shard_of(key_ref key) const {
    return shards_[shard_index(key.hash)];
  }

  // terminate begins the end, as SIGTERM does. Never parks.
  void terminate();

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
  void start_shards();
  void announce() const;
  template <typename Listener>
  void accept_from(Listener& listener);
  void welcome(client_stream stream);
  void drain();

  const options options_;
  const unsigned schedulers_;
  const std::size_t shard_count_;
  const std::int64_t started_ms_;
  settings settings_;
  smarm::sender<control_event> control_;
  smarm::receiver<control_event> events_;
  client_registry clients_;
  pubsub_hub hub_;
  exchange_pool exchanges_;
  std::vector<shard_sender> shards_;
  smarm::tcp_listener tcp_;
  smarm::unix_listener unix_;
  smarm::detail::atomic<std::uint64_t> commands_{0};
};

}  // namespace sider
