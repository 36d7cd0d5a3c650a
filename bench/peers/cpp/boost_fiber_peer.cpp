// Peer benchmark: Boost.Fiber.
//
//   boost_fiber_peer <bench> <threads>
//   boost_fiber_peer idle|sleep1ms <threads> <seconds>
//
// One thread uses round_robin (Boost.Fiber's default). More threads use the
// algorithm that BF_ALGO names: ws (work_stealing, idle workers spin: the
// library's default), ws_suspend (idle workers sleep), shared (shared_work,
// spins; its constructor's default suspends), shared_suspend.
// See bench/README.md.

#include <boost/fiber/all.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "bench/harness.hpp"
#include "boost_fiber_savina.hpp"

namespace bf = boost::fibers;
using harness::check;

template <class T>
using channel = bf::buffered_channel<T>;  // bounded; capacity is a power of two

static std::string g_peer = "boost_fiber";

// ------------------------------------------------------------------- runtime

static void install(const std::string& algo, unsigned threads) {
  if (threads <= 1) return;  // round_robin
  if (algo == "ws")
    bf::use_scheduling_algorithm<bf::algo::work_stealing>(threads, false);
  else if (algo == "ws_suspend")
    bf::use_scheduling_algorithm<bf::algo::work_stealing>(threads, true);
  else if (algo == "shared")
    bf::use_scheduling_algorithm<bf::algo::shared_work>(false);
  else
    bf::use_scheduling_algorithm<bf::algo::shared_work>(true);
}

// Runs body in a fiber, with threads-1 more threads to help.
static void with_runtime(unsigned threads, const std::function<void()>& body) {
  const char* env = std::getenv("BF_ALGO");
  std::string algo = env ? env : "ws";
  if (threads > 1 && algo != "ws") g_peer += "_" + algo;
  bool done = false;
  bf::mutex m;
  bf::condition_variable cv;
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back([&] {
      install(algo, threads);
      std::unique_lock lk(m);
      cv.wait(lk, [&] { return done; });
    });
  install(algo, threads);
  bf::fiber(body).join();
  {
    std::unique_lock lk(m);
    done = true;
  }
  cv.notify_all();
  for (auto& t : helpers) t.join();
}

// ----------------------------------------------------------------- workloads

static void chained_spawn(int n) {
  for (int i = 0; i < n; ++i) bf::fiber([] {}).join();
}

static void yield_many(int tasks, int yields) {
  std::vector<bf::fiber> fs;
  for (int i = 0; i < tasks; ++i)
    fs.emplace_back([=] {
      for (int j = 0; j < yields; ++j) boost::this_fiber::yield();
    });
  for (auto& f : fs) f.join();
}

static void ping_pong(uint64_t n) {
  channel<uint64_t> ping(16), pong(16);
  bf::fiber ponger([&] {
    for (uint64_t v; ping.pop(v) == bf::channel_op_status::success;) pong.push(v + 1);
  });
  bf::fiber pinger([&] {
    uint64_t v = 0;
    for (uint64_t i = 0; i < n; ++i) {
      ping.push(v);
      pong.pop(v);
    }
    check(v == n, "ping_pong");
    ping.close();
  });
  pinger.join();
  ponger.join();
}

static void ping_pong_oneshot(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    bf::promise<uint64_t> reply;
    auto result = reply.get_future();
    bf::fiber([i, p = std::move(reply)]() mutable { p.set_value(i); }).detach();
    sum += result.get();
  }
  check(sum == n * (n - 1) / 2, "ping_pong_oneshot");
}

static void spawn_storm(int n) {
  std::atomic<int> count{0};
  std::vector<bf::fiber> fs;
  fs.reserve(n);
  for (int i = 0; i < n; ++i)
    fs.emplace_back([&] { count.fetch_add(1, std::memory_order_relaxed); });
  for (auto& f : fs) f.join();
  check(count == n, "spawn_storm");
}

static void mpsc(int producers, uint64_t each, size_t capacity) {
  channel<uint64_t> ch(capacity);
  uint64_t total = producers * each, sum = 0;
  bf::fiber consumer([&] {
    for (uint64_t i = 0, v; i < total; ++i) {
      ch.pop(v);
      sum += v;
    }
  });
  std::vector<bf::fiber> fs;
  for (int p = 0; p < producers; ++p)
    fs.emplace_back([&] {
      for (uint64_t i = 0; i < each; ++i) ch.push(i);
    });
  for (auto& f : fs) f.join();
  consumer.join();
  check(sum == producers * each * (each - 1) / 2, "mpsc");
}

static void many_timers(int n) {
  std::vector<bf::fiber> fs;
  fs.reserve(n);
  for (int i = 0; i < n; ++i)
    fs.emplace_back(
        [i] { boost::this_fiber::sleep_for(std::chrono::milliseconds(harness::sleep_millis(i))); });
  for (auto& f : fs) f.join();
}

static void fan_out(int tasks) {
  std::vector<bf::fiber> fs;
  for (int i = 0; i < tasks; ++i)
    fs.emplace_back([] { check(harness::count_primes(200'000) == 17984, "primes"); });
  for (auto& f : fs) f.join();
}

// Passes a token `hops` times; then closing the channels ends the fibers.
static void ring(int size, long hops) {
  std::vector<std::unique_ptr<channel<long>>> boxes;
  for (int i = 0; i < size; ++i) boxes.push_back(std::make_unique<channel<long>>(2));
  bf::promise<int> done;
  auto result = done.get_future();
  std::vector<bf::fiber> fs;
  for (int id = 0; id < size; ++id)
    fs.emplace_back([&, id] {
      auto& in = *boxes[id];
      auto& out = *boxes[(id + 1) % size];
      for (long left; in.pop(left) == bf::channel_op_status::success;) {
        if (left == 0)
          done.set_value(id);
        else
          out.push(left - 1);
      }
    });
  boxes[0]->push(hops);
  check(result.get() == hops % size, "ring");
  for (auto& b : boxes) b->close();
  for (auto& f : fs) f.join();
}

static void skynet_node(channel<uint64_t>& parent, uint64_t num, uint64_t size) {
  if (size == 1) {
    parent.push(num);
    return;
  }
  channel<uint64_t> mine(16);
  std::vector<bf::fiber> fs;
  fs.reserve(10);
  for (uint64_t i = 0; i < 10; ++i)
    fs.emplace_back([&mine, num, size, i] { skynet_node(mine, num + i * (size / 10), size / 10); });
  uint64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += mine.value_pop();
  for (auto& f : fs) f.join();
  parent.push(sum);
}

static void skynet(uint64_t leaves) {
  channel<uint64_t> root(2);
  bf::fiber f([&] { skynet_node(root, 0, leaves); });
  check(root.value_pop() == leaves * (leaves - 1) / 2, "skynet");
  f.join();
}

static void mutex_contention(int tasks, int each) {
  bf::mutex m;
  uint64_t counter = 0;
  std::vector<bf::fiber> fs;
  for (int i = 0; i < tasks; ++i)
    fs.emplace_back([&] {
      for (int j = 0; j < each; ++j) {
        std::unique_lock lk(m);
        ++counter;
      }
    });
  for (auto& f : fs) f.join();
  check(counter == uint64_t(tasks) * each, "mutex");
}

static void panic_isolation(int n) {
  int seen = 0;
  for (int i = 0; i < n; ++i) {
    bf::packaged_task<void()> task([] { throw std::runtime_error("boom"); });
    auto result = task.get_future();
    bf::fiber(std::move(task)).detach();
    seen += result.get_exception_ptr() != nullptr;
  }
  check(seen == n, "panic_isolation");
}

static void idle_memory(const std::string& bench, int threads, int n) {
  harness::memory_probe probe;
  auto nap = [](int ms) { boost::this_fiber::sleep_for(std::chrono::milliseconds(ms)); };
  std::atomic<int> ready{0}, received{0};
  std::vector<std::unique_ptr<channel<int>>> boxes;
  std::vector<bf::fiber> fs;
  boxes.reserve(n);
  fs.reserve(n);
  for (int i = 0; i < n; ++i) {
    boxes.push_back(std::make_unique<channel<int>>(2));
    fs.emplace_back([&ready, &received, &box = *boxes.back()] {
      ready.fetch_add(1, std::memory_order_relaxed);
      for (int v; box.pop(v) == bf::channel_op_status::success;) received += v;
    });
  }
  while (ready != n) nap(1);
  probe.parked();
  nap(200);
  probe.settled();
  for (auto& box : boxes) box->push(1);
  while (received != n) nap(1);
  probe.woken();
  for (auto& box : boxes) box->close();
  for (auto& f : fs) f.join();
  fs = std::vector<bf::fiber>();
  boxes = std::vector<std::unique_ptr<channel<int>>>();
  probe.stopped();
  nap(200);
  probe.report(g_peer.c_str(), bench, threads, n);
  std::_Exit(0);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: boost_fiber_peer <bench> <threads> [seconds]\n");
    return 2;
  }
  std::string bench = argv[1];
  int threads = std::max(1, std::atoi(argv[2]));
  double secs = argc > 3 ? std::atof(argv[3]) : 5;
  with_runtime(threads, [&] {
    auto run = [&](double n, auto f) { harness::measure(g_peer.c_str(), bench, threads, n, f); };
    if (bench == "chained_spawn")
      run(10'000, [] { chained_spawn(10'000); });
    else if (bench == "yield_many")
      run(100'000, [] { yield_many(100, 1'000); });
    else if (bench == "ping_pong")
      run(100'000, [] { ping_pong(100'000); });
    else if (bench == "ping_pong_oneshot")
      run(10'000, [] { ping_pong_oneshot(10'000); });
    else if (bench == "spawn_storm")
      run(100'000, [] { spawn_storm(100'000); });
    else if (bench == "mpsc_contention")
      run(160'000, [] { mpsc(8, 20'000, 262'144); });
    else if (bench == "mpsc_contention_b1024")
      run(160'000, [] { mpsc(8, 20'000, 1024); });
    else if (bench == "uncontended_channel")
      run(1'000'000, [] { mpsc(1, 1'000'000, 1'048'576); });
    else if (bench == "uncontended_channel_b1024")
      run(1'000'000, [] { mpsc(1, 1'000'000, 1024); });
    else if (bench == "many_timers")
      run(10'000, [] { many_timers(10'000); });
    else if (bench == "fan_out_compute")
      run(8, [] { fan_out(8); });
    else if (bench == "ring")
      run(1'000'000, [] { ring(503, 1'000'000); });
    else if (bench == "skynet")
      run(111'111, [] { skynet(100'000); });
    else if (bench == "skynet_1m")
      run(1'111'111, [] { skynet(1'000'000); });
    else if (bench == "mutex_contention")
      run(400'000, [] { mutex_contention(8, 50'000); });
    else if (bench == "panic_isolation")
      run(10'000, [] { panic_isolation(10'000); });
    else if (bench == "call_reply")
      run(200'000, [] { savina::call_reply(200'000); });
    else if (bench == "fork_join_throughput")
      run(1'200'000, [] { savina::fork_join_throughput(60, 20'000, 32'768); });
    else if (bench == "counting")
      run(1'000'000, [] { savina::counting(1'000'000, 1'048'576); });
    else if (bench == "big")
      run(360'000, [] { savina::big(120, 3'000); });
    else if (bench == "philosophers")
      run(200'000, [] { savina::philosophers(20, 10'000); });
    else if (bench == "bank_transaction")
      run(100'000, [] { savina::bank_transaction(1'000, 100'000, 131'072); });
    else if (bench == "idle_memory_100k")
      idle_memory(bench, threads, 100'000);
    else if (bench == "idle_memory_1m")
      idle_memory(bench, threads, 1'000'000);
    else if (bench == "idle")
      boost::this_fiber::sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(secs)));
    else if (bench == "sleep1ms") {
      auto t0 = harness::clock::now();
      long iters = 0;
      while (harness::micros_since(t0) < secs * 1e6) {
        boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
        ++iters;
      }
      std::printf("iters_per_s=%.1f\n", iters / harness::micros_since(t0) * 1e6);
    } else
      harness::skip(g_peer.c_str(), bench, threads);
  });
}
