// Starting, accepting and ending; see server.hpp.
#include "server.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <smarm/signals.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "connection.hpp"

namespace sider {

namespace {

using namespace std::chrono_literals;

// How long clients that do not read their replies can delay the end.
constexpr auto grace_period = 10s;

// The exit status where a second signal cuts the end short.
constexpr int exit_interrupted = 1;

void complain(std::string_view what, const std::string& where, const std::error_code& why) {
  std::fprintf(stderr, "sider: %.*s %s: %s\n", static_cast<int>(what.size()), what.data(),
               where.c_str(), why.message().c_str());
}

// watch_signals turns the first signal into the end of the server. It ends by being stopped.
void watch_signals(server& whose, smarm::signals& received) {
  static_cast<void>(received.recv());
  whose.terminate();
  static_cast<void>(received.recv());
  std::_Exit(exit_interrupted);
}

}  // namespace

server::server(const options& from, unsigned schedulers)
    : options_(from),
      schedulers_(schedulers),
      shard_count_(from.shards == 0 ? schedulers : from.shards),
      started_ms_(unix_time_ms()),
      settings_(from),
      clients_([this] { static_cast<void>(control_.try_send(control_event::drained)); }),
      exchanges_(shard_count_) {
  auto [tx, rx] = smarm::channel<control_event>();
  control_ = std::move(tx);
  events_ = std::move(rx);
}

int server::run() {
  smarm::signals received{SIGTERM, SIGINT};
  if (!listen()) return 2;
  start_shards();
  auto watcher = smarm::spawn({.name = "signals"}, [&] { watch_signals(*this, received); });
  std::vector<smarm::join_handle<void>> listeners;
  if (tcp_.is_open()) {
    listeners.push_back(smarm::spawn({.name = "listener tcp"}, [&] { accept_from(tcp_); }));
  }
  if (unix_.is_open()) {
    listeners.push_back(smarm::spawn({.name = "listener unix"}, [&] { accept_from(unix_); }));
  }
  announce();
  while (events_.recv() != control_event::terminate) {
  }
  tcp_.close();
  unix_.close();
  for (auto& each : listeners) static_cast<void>(each.join());
  drain();
  watcher.request_stop();
  static_cast<void>(watcher.join());
  shards_.clear();
  return 0;
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

void server::start_shards() {
  for (std::size_t i = 0; i < shard_count_; ++i) {
    auto [tx, rx] = smarm::channel<std::shared_ptr<shard_task>>();
    shards_.push_back(std::move(tx));
    // A handler may print a long double of 5,000 digits, hence a stack above the usual.
    smarm::spawn({.name = "shard " + std::to_string(i), .stack_size = std::size_t{256} << 10},
                 [i, tasks = std::move(rx)]() mutable { serve_shard(i, std::move(tasks)); })
        .detach();
  }
}

void server::announce() const {
  const auto bound = tcp_.local_address();
  std::printf("sider: ready on %s%s%s, shards: %zu, schedulers: %u\n",
              bound ? smarm::to_string(*bound).c_str() : "?",
              options_.unix_path.empty() ? "" : " and ", options_.unix_path.c_str(), shard_count_,
              schedulers_);
  std::fflush(stdout);
}

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
    } else if (accepted.error() == std::errc::bad_file_descriptor) {
      return;  // closed, because the server ends
    } else {
      // Nothing that accept knows how to wait out; do not let it become a busy loop.
      complain("cannot accept a connection on", "the listener", accepted.error());
      smarm::sleep_for(100ms);
    }
  }
}

void server::welcome(client_stream stream) {
  const std::shared_ptr<client> added = clients_.add(stream, settings_.clients_max());
  if (added == nullptr) {
    // A socket that has just been made has room for this, so it is written or the peer has gone.
    static_cast<void>(
        stream.write_all("-ERR max number of clients reached\r\n", smarm::deadline::from_ns(0)));
    return;
  }
  // The registration goes with the actor's function, however that ends: also where the actor finds
  // no stack to run on, and its function is only destroyed.
  const auto unregister = [this](client* gone) { clients_.remove(*gone); };
  std::unique_ptr<client, decltype(unregister)> registered(added.get(), unregister);
  auto started = smarm::try_spawn(
      {.name = "client " + std::to_string(added->id)},
      [this, added, registered = std::move(registered)] { serve_client(*this, added); });
  if (started) started->detach();
}

void server::terminate() { static_cast<void>(control_.try_send(control_event::terminate)); }

void server::drain() {
  clients_.begin_drain();
  const smarm::deadline until(grace_period);
  for (bool patient = true;;) {
    const auto event = events_.recv_until(patient ? until : smarm::deadline::never());
    if (event == control_event::drained) return;
    if (!event) {  // out of time: cut off whoever still does not read
      patient = false;
      clients_.close_if([](const client&) { return true; });
    }
  }
}

}  // namespace sider
