// hot_paths runs one short path of the core so many times, on one scheduler, and nothing else: so
// that the instructions of a turn can be counted (bench/measure/instructions.py).
//
//   hot_paths spawn_join|yield|message|round_trip|deadline|server_call TURNS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <smarm/smarm.hpp>

#include "bench/harness.hpp"
#include "bench/service_workloads.hpp"

namespace {

using harness::check;
using namespace std::chrono_literals;

void spawn_join(std::uint64_t turns) {
  for (std::uint64_t i = 0; i < turns; ++i) check(smarm::spawn([] {}).join().has_value(), "join");
}

// Two take turns, so each yield is a switch through the run queue.
void yield(std::uint64_t turns) {
  auto other = smarm::spawn([=] {
    for (std::uint64_t i = 0; i < turns / 2; ++i) smarm::yield();
  });
  for (std::uint64_t i = 0; i < turns / 2; ++i) smarm::yield();
  check(other.join().has_value(), "yield");
}

// A message that nobody waits for: sent and received without a switch.
void message(std::uint64_t turns) {
  auto [tx, rx] = smarm::channel<std::uint64_t>();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < turns; ++i) {
    check(tx.send(i).has_value(), "send");
    sum += rx.recv().value();
  }
  check(sum == turns * (turns - 1) / 2, "message");
}

// A message there and one back, each to an actor that waits, with a deadline or without.
void round_trip(std::uint64_t turns, smarm::deadline until) {
  auto [there_tx, there_rx] = smarm::channel<std::uint64_t>();
  auto [back_tx, back_rx] = smarm::channel<std::uint64_t>();
  auto other = smarm::spawn([rx = std::move(there_rx), tx = std::move(back_tx), until]() mutable {
    while (auto value = rx.recv_until(until)) check(tx.send(*value + 1).has_value(), "send");
  });
  for (std::uint64_t i = 0; i < turns; ++i) {
    check(there_tx.send(i).has_value(), "send");
    check(back_rx.recv_until(until).value() == i + 1, "answer");
  }
  there_tx.close();
  check(other.join().has_value(), "round_trip");
}

void run(std::string_view path, std::uint64_t turns) {
  if (path == "spawn_join") return spawn_join(turns);
  if (path == "yield") return yield(turns);
  if (path == "message") return message(turns);
  if (path == "round_trip") return round_trip(turns, smarm::deadline::never());
  if (path == "deadline") return round_trip(turns, smarm::deadline(1h));
  if (path == "server_call") return services::server_call(turns);
  check(false, "no such path");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(
        stderr,
        "usage: hot_paths spawn_join|yield|message|round_trip|deadline|server_call TURNS\n");
    return 2;
  }
  const std::string_view path = argv[1];
  const auto turns = static_cast<std::uint64_t>(std::strtoull(argv[2], nullptr, 10));
  smarm::runtime({.schedulers = 1}).run([=] { run(path, turns); });
}
