// Starting, accepting and ending; see server.hpp.
#include "server.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>

#include <smarm/application.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>
#include <smarm/report.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "connection.hpp"

namespace sider {

namespace {

using namespace std::chrono_literals;

// How long clients that do not read their replies can delay the end, and how long they then have to
// notice that they are closed.
constexpr auto grace_period = 10s;
constexpr auto close_period = 5s;

// The whole tree's time to end: the farewell's and a few seconds for everybody else.
constexpr auto stop_time = 60s;

// How many restarts are too many. What crashes as soon as it is started uses any number up within
// moments; and a crash now and then, of whichever actor, must not end the server. Shards crash by
// what they execute, so a client may crash them as fast as it sends: forty a second are borne. The
// others run no client's commands; twice what somebody (chaos_test.py) does who kills one each
// second, all of them here. That is eleven in ten seconds, since the period counts in whole ones.
constexpr unsigned shard_restarts = 200;
constexpr auto shard_restart_period = 5s;
constexpr unsigned tree_restarts = 22;
constexpr auto tree_restart_period = 10s;

constexpr auto describe_wait = 5s;

// Where the gate ends without having been told to, its supervisor is looked at for so long: does it
// end as well? For two actors that are stopped at once this is an age.
constexpr auto gate_doubt = 1s;

constexpr int exit_success = 0;
constexpr int exit_failure = 1;  // by a second signal, and whatever else went wrong
constexpr int exit_unusable = 2;

void complain(std::string_view what, const std::string& where, const std::error_code& why) {
  std::fprintf(stderr, "sider: %.*s %s: %s\n", static_cast<int>(what.size()), what.data(),
               where.c_str(), why.message().c_str());
}

// log_report writes what supervisors and failing actors report, a line each.
void log_report(const smarm::report& what) {
  if (what.kind == smarm::report_kind::progress) return;
  constexpr std::string_view prefix = "smarm: ";
  std::string line = smarm::to_string(what);
  if (line.starts_with(prefix)) line.erase(0, prefix.size());
  if (line.contains("bad_alloc")) line += " (out of memory)";
  std::fprintf(stderr, "sider: %s\n", line.c_str());
}

// dynamic_supervisor is one whose children come and go, and are never started again.
smarm::child_spec dynamic_supervisor(const char* name) {
  return smarm::supervisor_spec(
      smarm::atom(name), {.strategy = smarm::restart_strategy::simple_one_for_one, .name = name},
      {{.id = smarm::atom(name), .restart = smarm::child_restart::temporary}});
}

// wait_for_end returns when the supervisor tells the calling actor to end.
void wait_for_end(smarm::starting& me) {
  smarm::trap_exit(true);
  me.ready();
  static_cast<void>(smarm::receive<smarm::exit_signal>());
}

}  // namespace

server::server(const options& from, unsigned schedulers)
    : options_(from),
      schedulers_(schedulers),
      started_ms_(unix_time_ms()),
      settings_(from),
      clients_([this] { drained_.release(); }),
      timetable_(from.shards == 0 ? schedulers : from.shards),
      exchanges_(from.shards == 0 ? schedulers : from.shards) {
  const std::size_t count = from.shards == 0 ? schedulers : from.shards;
  for (std::size_t i = 0; i < count; ++i) shards_.emplace_back(i);
}

int server::run() {
  if (!listen()) return exit_unusable;
  smarm::set_report_handler(log_report);
  const int code =
      smarm::run_application({.runtime = {.schedulers = schedulers_}, .stop_time = stop_time},
                             [this] { return start_tree(); });
  return code == smarm::application_ended ? exit_success : exit_failure;
}

bool server::listen() {
  auto tcp = smarm::tcp_listener::bind(options_.bind, options_.port);
  if (!tcp) {
    complain("cannot listen on", options_.bind + ":" + std::to_string(options_.port), tcp.error());
    return false;
  }
  tcp_ = std::move(*tcp);
  if (const auto bound = tcp_.local_address()) settings_.set_port(bound->port);
  if (options_.unix_path.empty()) return true;
  auto local = smarm::unix_listener::bind(options_.unix_path);
  if (!local) {
    complain("cannot listen on", options_.unix_path, local.error());
    return false;
  }
  unix_ = std::move(*local);
  return true;
}

// ---- the tree ----------------------------------------------------------------------------------

smarm::start_result server::start_tree() {
  std::vector<smarm::child_spec> children = {
      shards_spec(), expiry_spec(), dynamic_supervisor(tree::pubsub),
      dynamic_supervisor(tree::connections), farewell_spec()};
  if (tcp_.is_open()) children.push_back(listener_spec("listener tcp", tcp_));
  if (unix_.is_open()) children.push_back(listener_spec("listener unix", unix_));
  auto started =
      smarm::start_supervisor_link({.strategy = smarm::restart_strategy::one_for_one,
                                    .intensity = tree_restarts,
                                    .period = tree_restart_period,
                                    .auto_shutdown = smarm::auto_shutdown_kind::any_significant,
                                    .name = tree::root},
                                   std::move(children));
  if (started) announce();
  return started;
}

// The shards' supervisor is significant: where it gives up, or ends in whatever other way, so does
// the root. It is not started again, for a closed inbox stays closed.
smarm::child_spec server::shards_spec() {
  std::vector<smarm::child_spec> children = {gate_spec()};
  for (shard_inbox& inbox : shards_) {
    const std::string name = "shard " + std::to_string(inbox.index());
    const auto serve = [this, &inbox](smarm::starting& me) { serve_shard(me, inbox, timetable_); };
    // A handler may print a long double of 5,000 digits, hence a stack above the usual.
    children.push_back({.id = smarm::atom(name), .start = [name, serve] {
                          return smarm::start_link(
                              {.name = name, .stack_size = std::size_t{256} << 10}, serve);
                        }});
  }
  auto spec = smarm::supervisor_spec(smarm::atom(tree::shards),
                                     {.strategy = smarm::restart_strategy::one_for_one,
                                      .intensity = shard_restarts,
                                      .period = shard_restart_period,
                                      .name = tree::shards},
                                     std::move(children));
  spec.restart = smarm::child_restart::temporary;
  spec.significant = true;
  return spec;
}

// The gate ends after the last shard and closes the inboxes: who still waits for a shard, or asks
// one later, gets an error. So it does where its supervisor is killed, and where the whole tree is.
// One that is killed alone closes nothing, for the shards go on, and the next gate takes its place.
smarm::child_spec server::gate_spec() {
  const auto keep = [this](smarm::starting& me) {
    smarm::monitor_handle supervisor = smarm::monitor(me.parent());
    bool is_told = false;
    const auto close = [&supervisor, &is_told](std::deque<shard_inbox>* all) {
      const smarm::stop_shield shield;
      if (!is_told && !supervisor.recv_for(gate_doubt)) return;
      for (shard_inbox& each : *all) each.close();
    };
    const std::unique_ptr<std::deque<shard_inbox>, decltype(close)> closing(&shards_, close);
    wait_for_end(me);
    is_told = true;
    smarm::exit(smarm::exit_reason::shutdown());
  };
  return {.id = smarm::atom("gate"),
          .start = [keep] { return smarm::start_link({.name = "gate"}, keep); },
          .restart = smarm::child_restart::permanent};
}

smarm::child_spec server::expiry_spec() {
  const auto serve = [this](smarm::starting& me) { serve_expiry(me, timetable_, shards_); };
  return {.id = smarm::atom(tree::expiry),
          .start = [serve] { return smarm::start_link({.name = tree::expiry}, serve); }};
}

smarm::child_spec server::farewell_spec() {
  const auto keep = [this](smarm::starting& me) {
    wait_for_end(me);
    say_farewell();
    smarm::exit(smarm::exit_reason::shutdown());
  };
  return {.id = smarm::atom("farewell"),
          .start = [keep] { return smarm::start_link({.name = "farewell"}, keep); },
          .shutdown = grace_period + close_period};
}

template <typename Listener>
smarm::child_spec server::listener_spec(const char* name, Listener& from) {
  const auto serve = [this, &from](smarm::starting& me) {
    me.ready();
    accept_from(from);
  };
  return {.id = smarm::atom(name),
          .start = [name, serve] { return smarm::start_link({.name = name}, serve); }};
}

void server::announce() const {
  const auto bound = tcp_.local_address();
  std::printf("sider: ready on %s%s%s, shards: %zu, schedulers: %u\n",
              bound ? smarm::to_string(*bound).c_str() : "?",
              options_.unix_path.empty() ? "" : " and ", options_.unix_path.c_str(), shard_count(),
              schedulers_);
  std::fflush(stdout);
}

// ---- clients -----------------------------------------------------------------------------------

template <typename Listener>
void server::accept_from(Listener& listener) {
  for (;;) {
    auto accepted = listener.accept();
    if (accepted) {
      try {
        welcome(client_stream(std::move(*accepted)));
      } catch (const std::bad_alloc&) {
        smarm::sleep_for(100ms);  // the connection is closed; memory may be there for the next
      }
    } else {
      // Nothing that accept knows how to wait out; do not let it become a busy loop.
      complain("cannot accept a connection on", "the listener", accepted.error());
      smarm::sleep_for(100ms);
    }
  }
}

void server::welcome(client_stream stream) {
  const smarm::stop_shield shield;  // who has been accepted is served, or told
  const std::shared_ptr<client> added = clients_.add(stream, settings_.clients_max());
  if (added == nullptr) {
    // A socket that has just been made has room for this, so it is written or the peer has gone.
    static_cast<void>(
        stream.write_all("-ERR max number of clients reached\r\n", smarm::deadline::from_ns(0)));
    return;
  }
  // Until its actor is ready, which then sees to it: one that finds no stack never is.
  const auto unregister = [this](client* gone) { clients_.remove(*gone); };
  std::unique_ptr<client, decltype(unregister)> registered(added.get(), unregister);
  const auto started =
      smarm::supervisor_ref(tree::connections).start_dynamic([this, id = added->id] {
        return start_client(id);
      });
  if (started) static_cast<void>(registered.release());
}

// start_client starts the actor of a client. The functions, which are kept for as long as it lives,
// hold two words, for which a std::function needs no memory of its own.
smarm::start_result server::start_client(std::uint64_t id) {
  const auto serve = [this, id](smarm::starting& me) { serve_client(me, *this, id); };
  return smarm::start_link({.name = "client " + std::to_string(id)}, serve);
}

void server::terminate() {
  // By another actor than the caller, whose end the stop waits for.
  smarm::spawn({.name = "terminate"}, [] {
    static_cast<void>(smarm::supervisor_ref(tree::root).stop());
  }).detach();
}

std::vector<tree_actor> server::tree_actors() {
  std::vector<tree_actor> found;
  for (const char* name : {tree::root, tree::shards}) {
    const auto info = smarm::supervisor_ref(name).describe(describe_wait);
    if (!info) continue;  // it ends just now, or stops its children
    for (const smarm::child_info& each : info->children) {
      if (each.type != smarm::child_type::worker || !each.who.is_valid()) continue;
      found.push_back({std::string(each.id.as_atom()), each.who});
    }
  }
  clients_.list_actors(found);
  hub_.list_actors(found);
  return found;
}

void server::say_farewell() {
  tcp_.close();
  unix_.close();
  clients_.begin_drain();
  if (drained_.try_acquire_for(grace_period)) return;
  // Out of time: cut off whoever still does not read.
  clients_.close_if([](const client&) { return true; });
  drained_.acquire();
}

}  // namespace sider
