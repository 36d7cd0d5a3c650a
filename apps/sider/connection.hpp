// A connection is the actor that serves one client: read, parse, ask the shards, write.
//
// One round: wait for bytes; parse every command that is complete into a batch; send the batch to
// the shards it concerns, a message each; merge their replies; write them all at once. Commands
// that are the connection's own are answered on the way. Some of those must not overtake or be
// overtaken
// ("barriers": BLPOP, SUBSCRIBE, RENAME across shards, PUBLISH ...): the batch so far is
// finished first.
//
// Invariants
//   1. Replies leave in the order of the requests.
//   2. LIMIT: what is held for a client is the request it is sending (client-query-buffer-limit),
//   the
//      replies of one batch up to about a megabyte a shard and one reply, and its outbox. While
//      replies wait to be written nothing more is read.
//   3. Between rounds a client that is in no request holds no buffer: it waits with a small one on
//      its stack.
//   4. Once subscriber_ is there, only its pusher writes to the stream.
//   5. An exception that leaves run() takes this client along and nobody else: what the client
//      holds elsewhere, its registration, its subscriptions, its place among those who wait for a
//      list, goes by destructors.
// A shard that crashes costs no connection: the commands it had answer with an error.
// Threads: the actor's own, but for what client.hpp and pubsub.hpp share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <smarm/deadline.hpp>
#include <smarm/monitor.hpp>
#include <smarm/start.hpp>

#include "client.hpp"
#include "command.hpp"
#include "exchange.hpp"
#include "pubsub.hpp"
#include "resp.hpp"
#include "server.hpp"

namespace sider {

// serve_client is the body of the actor of the client that is registered under that number: it
// returns when the connection is over, and the client is registered no more. Parks.
void serve_client(smarm::starting& me, server& host, std::uint64_t id);

class connection {
 public:
  connection(server& host, std::shared_ptr<client> whose);
  // Waits until the pusher has written what is left. Parks.
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void run();

 private:
  struct own_command;
  static const own_command own_commands[];

  // connection.cpp: the rounds
  [[nodiscard]] bool fill();
  template <std::size_t Size>
  [[nodiscard]] bool fill_idle();
  [[nodiscard]] smarm::deadline idle_deadline() const;
  void serve_input();
  void dispatch(std::size_t count);
  void run_own(const command& what, std::size_t count);
  void finish_batch();
  void write_out();
  void release_buffers();
  [[nodiscard]] static bool is_allowed(const command& what);
  [[nodiscard]] bool is_subscribed() const;

  // connection_commands.cpp: commands about the connection and the server
  void ping(argument_list arguments, reply_writer reply);
  void echo(argument_list arguments, reply_writer reply);
  void select(argument_list arguments, reply_writer reply);
  void hello(argument_list arguments, reply_writer reply);
  void quit(argument_list arguments, reply_writer reply);
  void reset(argument_list arguments, reply_writer reply);
  void time(argument_list arguments, reply_writer reply);
  void shutdown(argument_list arguments, reply_writer reply);
  void config(argument_list arguments, reply_writer reply);
  void set_config(argument_list pairs, reply_writer reply);
  void command_info(argument_list arguments, reply_writer reply);
  void info(argument_list arguments, reply_writer reply);
  void info_server(std::string& text);
  void info_clients(std::string& text);
  void info_memory(std::string& text);
  void info_stats(std::string& text);
  void info_roles(std::string& text);
  void info_keyspace(std::string& text);

  // debug_command.cpp
  void debug(argument_list arguments, reply_writer reply);
  void panic(argument_list arguments, reply_writer reply);
  void panic_shard(argument_list arguments, reply_writer reply);
  void panic_expiry(reply_writer reply);
  void panic_pusher(std::string_view client_id, reply_writer reply);
  void kill_actor(argument_list arguments, reply_writer reply);
  void sleep(std::string_view seconds, reply_writer reply);

  // client_command.cpp
  void client_command(argument_list arguments, reply_writer reply);
  bool set_name(std::string_view name, reply_writer reply);
  void list_clients(argument_list arguments, reply_writer reply);
  void kill_clients(argument_list arguments, reply_writer reply);

  // ordered_commands.cpp: commands that take several steps
  void rename(argument_list arguments, reply_writer reply);
  void pop_blocking(argument_list arguments, reply_writer reply);
  void forget_pop(const std::vector<key_ref>& waiting, const blocked_pop* gone) noexcept;
  [[nodiscard]] pop_outcome take_pop(argument_list names, pop_end end, smarm::deadline until);
  [[nodiscard]] pop_outcome wait_for_pop(smarm::receiver<pop_outcome>& outcomes,
                                         const std::shared_ptr<blocked_pop>& target,
                                         smarm::deadline until);
  void subscribe(argument_list arguments, reply_writer reply);
  void unsubscribe(argument_list arguments, reply_writer reply);
  void publish(argument_list arguments, reply_writer reply);
  void pubsub(argument_list arguments, reply_writer reply);
  void start_pusher();

  server& server_;
  const std::shared_ptr<client> client_;
  request_parser parser_;
  std::shared_ptr<exchange> exchange_;      // null while the client is in no request
  std::shared_ptr<subscriber> subscriber_;  // shared with its pusher
  smarm::monitor_handle pusher_;            // watches the pusher
  std::minstd_rand random_;
  smarm::deadline idle_deadline_;  // when a client that sends no command is closed
  bool pipelines_ = false;         // its last requests filled the small buffer
  bool closing_ = false;           // no further command is run; replies are still written
};

}  // namespace sider
