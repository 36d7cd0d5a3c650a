// DEBUG: what shows, and tries, how the tree holds. PANIC crashes an actor by an exception, KILL
// ends one by the signal that cannot be trapped, TREE tells who supervises whom, SLEEP waits.
//
// DEBUG PANIC SHARD n          the keys of that shard go
// DEBUG PANIC SHARD n NEXT     ... when it is to execute the next command, whosever that is
// DEBUG PANIC CONNECTION       the caller goes
// DEBUG PANIC PUBSUB id        that client goes, which subscribes to something
// DEBUG PANIC EXPIRY
// DEBUG KILL [number [kind]]   the actor that stands there, counted round and round, among those of
//                              that kind, or of all; without a number, any. The reply names it.
//
// What they do has happened when they answer, but for NEXT and PUBSUB.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <smarm/link.hpp>
#include <smarm/monitor.hpp>
#include <smarm/registry.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/this_actor.hpp>

#include "connection.hpp"
#include "text.hpp"

namespace sider {

namespace {

using namespace std::chrono_literals;

// How long an actor may take to end. None computes for longer without a stop point but a shard that
// executes a command over millions of elements.
constexpr auto end_wait = 10s;

// is_kind tells whether `name` is "kind" or "kind something", in any case.
bool is_kind(std::string_view name, std::string_view kind) {
  return equals_caseless(name.substr(0, name.find(' ')), kind);
}

}  // namespace

void connection::debug(argument_list arguments, reply_writer reply) {
  const auto is = [&](std::string_view name) { return equals_caseless(arguments[1], name); };
  if (is("panic")) return panic(arguments, reply);
  if (is("kill")) return kill_actor(arguments, reply);
  if (is("tree")) {
    if (arguments.size() != 2) return write_arity_error(reply, "debug|tree");
    return reply.bulk(smarm::supervisor_ref(tree::root).explain());
  }
  if (!is("sleep")) return write_unknown_subcommand(reply, "debug", arguments[1]);
  if (arguments.size() != 3) return write_arity_error(reply, "debug|sleep");
  sleep(arguments[2], reply);
}

void connection::panic(argument_list arguments, reply_writer reply) {
  const auto is = [&](std::string_view what, std::size_t count) {
    return arguments.size() == count && equals_caseless(arguments[2], what);
  };
  if (is("connection", 3)) throw std::runtime_error("DEBUG PANIC");
  if (is("shard", 4) || (is("shard", 5) && equals_caseless(arguments[4], "next"))) {
    return panic_shard(arguments, reply);
  }
  if (is("pubsub", 4)) return panic_pusher(arguments[3], reply);
  if (is("expiry", 3)) return panic_expiry(reply);
  reply.error(
      "ERR DEBUG PANIC takes SHARD, a number and maybe NEXT; PUBSUB and the id of a client; "
      "CONNECTION; or EXPIRY");
}

void connection::panic_shard(argument_list arguments, reply_writer reply) {
  const auto index = parse_unsigned(arguments[3]);
  if (!index || *index >= server_.shard_count()) return reply.error("ERR no such shard");
  if (arguments.size() == 5) {
    server_.shard(*index).panic_next();
  } else {
    server_.shard(*index).panic();
  }
  reply.ok();
}

void connection::panic_pusher(std::string_view client_id, reply_writer reply) {
  const auto id = parse_unsigned(client_id);
  if (!id || !server_.hub().panic(*id)) return reply.error("ERR no such subscriber");
  reply.ok();
}

void connection::panic_expiry(reply_writer reply) {
  const auto who = smarm::whereis(tree::expiry);
  if (!who) return reply.error("ERR it is just being started");
  auto watch = smarm::monitor(*who);
  server_.timetable().panic();
  if (!watch.recv_for(end_wait)) return reply.error("ERR it does not end");
  reply.ok();
}

// kill_actor leaves out the supervisors, with which all they supervise would go, and the caller's
// own connection, which is to answer.
void connection::kill_actor(argument_list arguments, reply_writer reply) {
  if (arguments.size() > 4) return write_arity_error(reply, "debug|kill");
  std::uint64_t number = random_();
  if (arguments.size() > 2) {
    const auto given = parse_unsigned(arguments[2]);
    if (!given) return reply.error(not_an_integer_error);
    number = *given;
  }
  std::vector<tree_actor> candidates = server_.tree_actors();
  std::erase_if(candidates, [&](const tree_actor& each) {
    return each.who == smarm::self() ||
           (arguments.size() == 4 && !is_kind(each.name, arguments[3]));
  });
  if (candidates.empty()) return reply.error("ERR no such actor");
  const tree_actor& chosen = candidates[number % candidates.size()];
  auto watch = smarm::monitor(chosen.who);
  smarm::kill(chosen.who);
  const auto gone = watch.recv_for(end_wait);
  if (!gone) return reply.error("ERR " + chosen.name + " does not end");
  if (!gone->reason.is_killed()) return reply.error("ERR " + chosen.name + " has ended by itself");
  reply.bulk(chosen.name);
}

// sleep holds up this client only: in Redis it holds up everybody, which nobody wants of a server
// whose clients are actors.
void connection::sleep(std::string_view seconds, reply_writer reply) {
  const auto time = parse_long_double(seconds);
  if (!time) return reply.error("ERR value is not a valid float");
  // Asleep as a pop is that nobody serves: it ends if the client goes or the server does.
  auto [tx, rx] = smarm::channel<pop_outcome>(1);
  static_cast<void>(wait_for_pop(rx, std::make_shared<blocked_pop>(std::move(tx)),
                                 std::chrono::duration<long double>(*time)));
  reply.ok();
}

}  // namespace sider
