// A client is what the server knows of a connection, and what others may do to it: list it, name
// it, end it.
//
// Invariants
//   1. A client is in the registry from before its connection's actor reads the first byte until
//      that actor ends; after remove() nobody else touches its stream.
//   2. Fields marked guarded belong to the registry's lock.
// Ending a client does not stop its actor: its stream is closed, or shut for reading, and the actor
// finds out at its next read or write. So no request is cut off in the middle of its execution.
// (Its supervisor stops the actors that are left when the time to end is over.)
// Threads: any actor; the stream's reader and writer are the connection's actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/mutex.hpp>
#include <smarm/pid.hpp>
#include <smarm/stream.hpp>
#include <smarm/tcp.hpp>
#include <smarm/unix_socket.hpp>

#include "base/atomic.hpp"
#include "command.hpp"
#include "waiters.hpp"

namespace sider {

// client_stream is a connection with the names of its ends, as CLIENT LIST shows them.
class client_stream {
 public:
  explicit client_stream(smarm::tcp_stream connected);
  explicit client_stream(smarm::unix_stream connected);

  // The calls of smarm::stream; see there.
  smarm::io_result<std::size_t> read_some(std::span<std::byte> into, smarm::deadline until) {
    return stream_.read_some(into, until);
  }
  smarm::io_result<void> write_all(std::string_view text, smarm::deadline until) {
    return stream_.write_all(text, until);
  }
  void close() noexcept { stream_.close(); }
  // shut_reading lets the reader have what has arrived, and then the end. Never parks.
  void shut_reading() noexcept;
  [[nodiscard]] int native_handle() const noexcept { return stream_.native_handle(); }
  [[nodiscard]] const std::string& peer_name() const { return peer_name_; }
  [[nodiscard]] const std::string& local_name() const { return local_name_; }

 private:
  std::string peer_name_;
  std::string local_name_;
  smarm::stream stream_;
};

// pop_outcome is what wakes a connection in BLPOP: an element, the news that there is no point, or
// that a shard at which it waited is lost.
struct pop_outcome {
  bool served = false;
  bool lost = false;
  bool wrong_type = false;
  popped found = {};
};

// blocked_pop is the target of a BLPOP. Whoever claims it first decides the outcome; the claim is
// apart from the channel that carries it, for a channel has room again once its value is received.
// That a shard is lost is told by the channel's end, which needs no memory.
class blocked_pop final : public pop_target {
 public:
  explicit blocked_pop(smarm::sender<pop_outcome> into) : into_(std::move(into)) {}

  bool offer(popped& found) override;
  void lose() noexcept override {
    if (close()) into_.close();  // only who has claimed it touches the sender
  }

  // cancel ends the wait without an element, unless the outcome is decided. Never parks.
  void cancel() {
    if (close()) static_cast<void>(into_.try_send(pop_outcome{}));
  }

  // close refuses every further offer; false: the outcome is in the channel, or just about to be.
  [[nodiscard]] bool close() {
    // Relaxed: the exchange alone decides who is first; what was popped goes through the channel.
    return !claimed_.exchange(true, smarm::detail::relaxed);
  }

 private:
  smarm::sender<pop_outcome> into_;
  smarm::detail::atomic<bool> claimed_{false};  // written by whoever decides the outcome
};

// tree_actor is an actor of the tree as DEBUG KILL names it: "shard 0", "client 7", "pusher 7".
struct tree_actor {
  std::string name;
  smarm::pid who;
};

struct client {
  client(client_stream connected, std::uint64_t number);

  const std::uint64_t id;
  client_stream stream;
  const std::int64_t connected_ms;
  // The next four are written by the connection and read by CLIENT LIST and INFO; each stands for
  // itself, so every access is relaxed.
  smarm::detail::atomic<std::int64_t> active_ms;
  smarm::detail::atomic<const command*> last_command{nullptr};
  smarm::detail::atomic<std::uint32_t> channels{0};
  smarm::detail::atomic<std::uint32_t> patterns{0};
  smarm::pid actor;                      // guarded: who serves it; nobody before it runs
  std::string name;                      // guarded
  std::shared_ptr<blocked_pop> blocked;  // guarded: what it waits for in a blocking pop
};

class client_registry {
 public:
  // `drained` is called once the last client has gone after begin_drain; it must not park.
  explicit client_registry(std::function<void()> drained) : drained_(std::move(drained)) {}

  // add makes a client of a new connection; null if there are `clients_max` or the server drains.
  [[nodiscard]] std::shared_ptr<client> add(client_stream& stream, std::size_t clients_max);
  // find returns the client of that number, or null.
  [[nodiscard]] std::shared_ptr<client> find(std::uint64_t id);
  // remove closes its stream, too; of one that is not there any more it does nothing.
  void remove(const client& gone);

  [[nodiscard]] std::size_t size();
  [[nodiscard]] std::uint64_t accepted();
  [[nodiscard]] std::string name_of(const client& whose);
  void set_name(client& whose, std::string_view name);

  // set_actor says who serves the client.
  void set_actor(client& whose, smarm::pid actor);
  // list_actors appends the actors that serve clients.
  void list_actors(std::vector<tree_actor>& into);

  // set_blocked says what a client waits for, or that it no longer does (null). If the server
  // drains, the wait is cancelled at once.
  void set_blocked(client& whose, std::shared_ptr<blocked_pop> target);

  // describe returns a line of CLIENT LIST for each client that `wanted` accepts.
  [[nodiscard]] std::string describe(const std::function<bool(const client&)>& wanted);

  // close closes the stream of one client; its actors find out at their next read or write.
  void close(client& whose);

  // close_if closes the streams of the clients that `wanted` accepts and returns their number.
  std::size_t close_if(const std::function<bool(const client&)>& wanted);

  // begin_drain refuses new clients and ends the others as soon as they have no request under way.
  void begin_drain();

 private:
  smarm::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<client>> clients_;  // guarded by mutex_, as all below
  std::uint64_t next_id_ = 1;
  bool draining_ = false;
  std::function<void()> drained_;
};

}  // namespace sider
