// smarm's own program in the comparison: the workloads of bench/README.md on the public headers.
//
//   smarm_peer BENCH SCHEDULERS                 one JSON line on standard output
//   smarm_peer tcp_server SCHEDULERS PORT       an echo server, runs until it is killed
//   smarm_peer idle_service SCHEDULERS PORT     a listener, 1,000 parked actors, a timer an hour
//   off smarm_peer idle|sleep1ms SCHEDULERS SECONDS
//
// SCHEDULERS = 0 leaves the number to the runtime. The workloads run inside the root actor, with
// the runtime already started, and each checks its own result. They are written as a user would
// write them: a number that needs tricks is nobody's number.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <smarm/smarm.hpp>
#include <smarm/tcp.hpp>

#include "bench/actor_workloads.hpp"
#include "bench/harness.hpp"
#include "bench/service_workloads.hpp"

namespace {

using harness::check;
using namespace std::chrono_literals;
using handles = std::vector<smarm::join_handle<void>>;

void join_all(handles& all) {
  for (auto& handle : all) check(handle.join().has_value(), "an actor failed");
}

void chained_spawn(int n) {
  for (int i = 0; i < n; ++i) check(smarm::spawn([] {}).join().has_value(), "chained_spawn");
}

void yield_many(int actors, int yields) {
  handles all;
  for (int i = 0; i < actors; ++i) {
    all.push_back(smarm::spawn([=] {
      for (int j = 0; j < yields; ++j) smarm::yield();
    }));
  }
  join_all(all);
}

void ping_pong(std::uint64_t n) {
  auto [ping_tx, ping_rx] = smarm::channel<std::uint64_t>();
  auto [pong_tx, pong_rx] = smarm::channel<std::uint64_t>();
  auto ponger = smarm::spawn([rx = std::move(ping_rx), tx = std::move(pong_tx)]() mutable {
    while (auto value = rx.recv()) check(tx.send(*value + 1).has_value(), "pong");
  });
  auto pinger = smarm::spawn([n, tx = std::move(ping_tx), rx = std::move(pong_rx)]() mutable {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      check(tx.send(value).has_value(), "ping");
      value = rx.recv().value();
    }
    return value;
  });
  check(pinger.join().value() == n, "ping_pong");
  check(ponger.join().has_value(), "ponger");
}

void ping_pong_oneshot(std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    auto [tx, rx] = smarm::oneshot<std::uint64_t>();
    smarm::spawn([i, tx = std::move(tx)]() mutable { (void)tx.send(i); });
    sum += rx.recv().value();
  }
  check(sum == n * (n - 1) / 2, "ping_pong_oneshot");
}

void spawn_storm(int n) {
  std::atomic<int> count{0};
  handles all;
  all.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    all.push_back(smarm::spawn([&count] { count.fetch_add(1, std::memory_order_relaxed); }));
  }
  join_all(all);
  check(count == n, "spawn_storm");
}

// mpsc: capacity 0 is an unbounded channel.
void mpsc(int producers, std::uint64_t each, std::size_t capacity) {
  auto [tx, rx] =
      capacity == 0 ? smarm::channel<std::uint64_t>() : smarm::channel<std::uint64_t>(capacity);
  auto consumer = smarm::spawn([rx = std::move(rx)]() mutable {
    std::uint64_t sum = 0;
    for (const std::uint64_t value : rx) sum += value;
    return sum;
  });
  for (int p = 0; p < producers; ++p) {
    smarm::spawn([each, tx = tx] {
      for (std::uint64_t i = 0; i < each; ++i) check(tx.send(i).has_value(), "send");
    });
  }
  tx.close();
  check(consumer.join().value() == static_cast<std::uint64_t>(producers) * each * (each - 1) / 2,
        "mpsc");
}

void many_timers(std::uint32_t n) {
  handles all;
  all.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    all.push_back(smarm::spawn(
        [i] { smarm::sleep_for(std::chrono::milliseconds(harness::sleep_millis(i))); }));
  }
  join_all(all);
}

void fan_out_compute(int actors) {
  handles all;
  for (int i = 0; i < actors; ++i) {
    all.push_back(
        smarm::spawn([] { check(harness::count_primes(200'000) == 17'984, "fan_out_compute"); }));
  }
  join_all(all);
}

// ring_member passes the token on; the one that gets 0 reports itself, and a negative token, once
// around, ends the ring.
void ring_member(int id, int size, smarm::receiver<long> in, const smarm::sender<long>& out,
                 const smarm::sender<int>& done) {
  for (const long left : in) {
    if (left < 0) {
      if (left > -static_cast<long>(size)) (void)out.send(left - 1);
      return;
    }
    if (left == 0) {
      (void)done.send(id);
      (void)out.send(-2);
      return;
    }
    (void)out.send(left - 1);
  }
}

void ring(int size, long hops) {
  auto [done_tx, done_rx] = smarm::channel<int>();
  auto [first, rx] = smarm::channel<long>();
  handles all;
  for (int id = 0; id < size; ++id) {
    auto [next_tx, next_rx] = smarm::channel<long>();
    all.push_back(smarm::spawn(
        [id, size, in = std::move(rx), out = id == size - 1 ? first : std::move(next_tx),
         done = done_tx]() mutable { ring_member(id, size, std::move(in), out, done); }));
    rx = std::move(next_rx);
  }
  check(first.send(hops).has_value(), "ring");
  check(done_rx.recv().value() == static_cast<int>(hops % size), "ring");
  join_all(all);
}

void skynet_node(const smarm::sender<std::uint64_t>& parent, std::uint64_t number,
                 std::uint64_t size) {
  smarm::spawn([parent, number, size] {
    if (size == 1) {
      (void)parent.send(number);
      return;
    }
    auto [tx, rx] = smarm::channel<std::uint64_t>();
    for (std::uint64_t i = 0; i < 10; ++i) skynet_node(tx, number + i * (size / 10), size / 10);
    std::uint64_t sum = 0;
    for (int i = 0; i < 10; ++i) sum += rx.recv().value();
    (void)parent.send(sum);
  });
}

void skynet(std::uint64_t leaves) {
  auto [tx, rx] = smarm::channel<std::uint64_t>();
  skynet_node(tx, 0, leaves);
  check(rx.recv().value() == leaves * (leaves - 1) / 2, "skynet");
}

void mutex_contention(int actors, int each) {
  smarm::mutex mutex;
  std::uint64_t counter = 0;
  handles all;
  for (int i = 0; i < actors; ++i) {
    all.push_back(smarm::spawn([&mutex, &counter, each] {
      for (int j = 0; j < each; ++j) {
        const std::scoped_lock lock(mutex);
        ++counter;
      }
    }));
  }
  join_all(all);
  check(counter == static_cast<std::uint64_t>(actors) * static_cast<std::uint64_t>(each),
        "mutex_contention");
}

void panic_isolation(int n) {
  int seen = 0;
  for (int i = 0; i < n; ++i) {
    const auto outcome = smarm::spawn([] { throw std::runtime_error("boom"); }).join();
    seen += !outcome && outcome.error().is_error() ? 1 : 0;
  }
  check(seen == n, "panic_isolation");
}

// idle_memory: n actors with a mailbox each are parked, get a message each, and end with their
// senders.
void idle_memory(const std::string& bench, int threads, int n) {
  const auto count = static_cast<std::size_t>(n);
  harness::memory_probe probe;
  std::atomic<int> ready{0};
  std::atomic<int> received{0};
  std::vector<smarm::sender<int>> mailboxes;
  handles all;
  mailboxes.reserve(count);
  all.reserve(count);
  for (int i = 0; i < n; ++i) {
    auto [tx, rx] = smarm::channel<int>();
    mailboxes.push_back(std::move(tx));
    all.push_back(smarm::spawn([&ready, &received, rx = std::move(rx)]() mutable {
      ready.fetch_add(1, std::memory_order_relaxed);
      for (const int value : rx) received.fetch_add(value, std::memory_order_relaxed);
    }));
  }
  while (ready.load(std::memory_order_relaxed) != n) smarm::sleep_for(1ms);
  probe.parked();
  smarm::sleep_for(200ms);
  probe.settled();
  for (const auto& mailbox : mailboxes) check(mailbox.send(1).has_value(), "idle_memory");
  while (received.load(std::memory_order_relaxed) != n) smarm::sleep_for(1ms);
  probe.woken();
  mailboxes = std::vector<smarm::sender<int>>();
  join_all(all);
  all = handles();
  probe.stopped();
  smarm::sleep_for(200ms);
  probe.report("smarm", bench, threads, n);
  std::_Exit(0);
}

void echo(smarm::tcp_stream stream) {
  std::vector<std::byte> buffer(4096);
  for (;;) {
    const auto got = stream.read_some(buffer);
    if (!got || *got == 0) return;
    if (!stream.write_all(std::span(buffer).first(*got))) return;
  }
}

void tcp_server(std::uint16_t port) {
  auto listener = smarm::tcp_listener::bind("127.0.0.1", port).value();
  for (;;) {
    auto stream = listener.accept();
    if (!stream) continue;
    smarm::spawn([stream = std::move(*stream)]() mutable { echo(std::move(stream)); });
  }
}

// idle_service is what a service looks like that nobody calls.
void idle_service(std::uint16_t port) {
  std::vector<smarm::sender<int>> mailboxes;
  for (int i = 0; i < 1'000; ++i) {
    auto [tx, rx] = smarm::channel<int>();
    mailboxes.push_back(std::move(tx));
    smarm::spawn([rx = std::move(rx)]() mutable { (void)rx.recv(); });
  }
  smarm::spawn([] { smarm::sleep_for(1h); });
  tcp_server(port);
}

void sleep_in_steps(double seconds) {
  const auto begin = harness::clock::now();
  long steps = 0;
  for (; harness::micros_since(begin) < seconds * 1e6; ++steps) smarm::sleep_for(1ms);
  std::printf("iters_per_s=%.1f\n",
              static_cast<double>(steps) / harness::micros_since(begin) * 1e6);
}

struct workload {
  double operations;
  std::function<void()> once;
};

std::map<std::string, workload> workloads() {
  return {
      {"chained_spawn", {10'000, [] { chained_spawn(10'000); }}},
      {"yield_many", {100'000, [] { yield_many(100, 1'000); }}},
      {"ping_pong", {100'000, [] { ping_pong(100'000); }}},
      {"ping_pong_oneshot", {10'000, [] { ping_pong_oneshot(10'000); }}},
      {"spawn_storm", {100'000, [] { spawn_storm(100'000); }}},
      {"mpsc_contention", {160'000, [] { mpsc(8, 20'000, 0); }}},
      {"mpsc_contention_b1024", {160'000, [] { mpsc(8, 20'000, 1'024); }}},
      {"uncontended_channel", {1'000'000, [] { mpsc(1, 1'000'000, 0); }}},
      {"uncontended_channel_b1024", {1'000'000, [] { mpsc(1, 1'000'000, 1'024); }}},
      {"many_timers", {10'000, [] { many_timers(10'000); }}},
      {"fan_out_compute", {8, [] { fan_out_compute(8); }}},
      {"ring", {1'000'000, [] { ring(503, 1'000'000); }}},
      {"skynet", {111'111, [] { skynet(100'000); }}},
      {"skynet_1m", {1'111'111, [] { skynet(1'000'000); }}},
      {"mutex_contention", {400'000, [] { mutex_contention(8, 50'000); }}},
      {"panic_isolation", {10'000, [] { panic_isolation(10'000); }}},
      {"supervised_restart", {2'000, [] { services::supervised_restart(2'000); }}},
      {"server_call", {200'000, [] { services::server_call(200'000); }}},
      {"call_reply", {200'000, [] { actors::call_reply(200'000); }}},
      {"fork_join_throughput", {1'200'000, [] { actors::fork_join_throughput(60, 20'000); }}},
      {"counting", {1'000'000, [] { actors::counting(1'000'000); }}},
      {"big", {360'000, [] { actors::big(120, 3'000); }}},
      {"philosophers", {200'000, [] { actors::philosophers(20, 10'000); }}},
      {"bank_transaction", {100'000, [] { actors::bank_transaction(1'000, 100'000); }}},
  };
}

void dispatch(const std::string& bench, int threads, const char* argument) {
  const auto all = workloads();
  if (const auto found = all.find(bench); found != all.end()) {
    harness::measure("smarm", bench, threads, found->second.operations, found->second.once);
  } else if (bench == "idle_memory_100k") {
    idle_memory(bench, threads, 100'000);
  } else if (bench == "idle_memory_1m") {
    idle_memory(bench, threads, 1'000'000);
  } else if (bench == "tcp_server") {
    tcp_server(static_cast<std::uint16_t>(std::atoi(argument)));
  } else if (bench == "idle_service") {
    idle_service(static_cast<std::uint16_t>(std::atoi(argument)));
  } else if (bench == "idle") {
    smarm::sleep_for(std::chrono::duration<double>(std::atof(argument)));
  } else if (bench == "sleep1ms") {
    sleep_in_steps(std::atof(argument));
  } else {
    harness::skip("smarm", bench, threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: smarm_peer BENCH SCHEDULERS [PORT|SECONDS]\n");
    return 2;
  }
  const int threads = std::atoi(argv[2]);
  smarm::config how;
  how.schedulers = static_cast<unsigned>(threads);
  how.max_actors = 1'200'000;
  const char* const argument = argc > 3 ? argv[3] : "5";
  smarm::run(how, [&] { dispatch(argv[1], threads, argument); });
  return 0;
}
