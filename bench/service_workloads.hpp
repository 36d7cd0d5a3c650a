// The workloads of services: a server that is called, and a child that is killed and restarted.
//
// Both on what the library has for them (server.hpp, supervisor.hpp), as Erlang's programs are on
// gen_server and supervisor. Each checks its own result.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <smarm/link.hpp>
#include <smarm/report.hpp>
#include <smarm/server.hpp>
#include <smarm/smarm.hpp>
#include <smarm/supervisor.hpp>

#include "bench/harness.hpp"

namespace services {

using harness::check;

struct adder {
  struct add {
    std::uint64_t value;
    using reply = std::uint64_t;
  };
  std::uint64_t sum = 0;
  std::uint64_t handle(add message) { return sum += message.value; }
};

// server_call: one client calls one server n times; the server answers with the sum so far.
inline void server_call(std::uint64_t n) {
  const auto server = smarm::start_server<adder>();
  check(server.has_value(), "start");
  auto client = smarm::spawn([n, server = *server] {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 1; i <= n; ++i) sum = server.call(adder::add{i}).value();
    return sum;
  });
  check(client.join().value() == n * (n + 1) / 2, "server_call");
  check(server->stop().has_value(), "stop");
}

// supervised_restart: n times, a permanent child is killed and its supervisor starts it again; each
// start says who it is, and that is awaited.
inline void supervised_restart(std::uint64_t n) {
  const auto quiet = smarm::set_report_handler([](const smarm::report&) {});
  auto [tx, rx] = smarm::channel<smarm::pid>();
  const auto start_child = [tx = std::move(tx)] {
    return smarm::start_link({}, [tx](smarm::starting& me) {
      check(tx.send(smarm::self()).has_value(), "child");
      me.ready();
      smarm::sleep_for(std::chrono::hours(1));
    });
  };
  const auto tree = smarm::start_supervisor_link(
      {.intensity = 1'000'000}, {{.id = smarm::atom("child"), .start = start_child}});
  check(tree.has_value(), "tree");
  smarm::pid child = rx.recv().value();
  for (std::uint64_t i = 0; i < n; ++i) {
    smarm::kill(child);
    const smarm::pid next = rx.recv().value();
    check(next != child, "restart");
    child = next;
  }
  smarm::unlink(*tree);
  check(smarm::supervisor_ref(*tree).stop().has_value(), "stop");
  smarm::set_report_handler(quiet);
}

}  // namespace services
