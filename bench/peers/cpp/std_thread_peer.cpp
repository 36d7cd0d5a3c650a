// Peer benchmark: plain std::thread with mutex and condition variable. Only
// the workloads for which OS threads are a sensible answer.
//
//   std_thread_peer <bench> <threads>
//   std_thread_peer tcp_server <threads> <port>   one blocking thread per connection
//
// threads = 1 pins the process to one CPU; more leaves it to the kernel (so 2
// and 8 are the same thing). See bench/README.md.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/harness.hpp"

using harness::check;
static const char* const peer = "std_thread";

template <class T>
class channel {  // unbounded, many producers, one consumer
 public:
  void push(T v) {
    {
      std::lock_guard lk(m_);
      q_.push_back(std::move(v));
    }
    cv_.notify_one();
  }
  T pop() {
    std::unique_lock lk(m_);
    cv_.wait(lk, [&] { return !q_.empty(); });
    T v = std::move(q_.front());
    q_.pop_front();
    return v;
  }

 private:
  std::mutex m_;
  std::condition_variable cv_;
  std::deque<T> q_;
};

static void chained_spawn(int n) {
  for (int i = 0; i < n; ++i) std::thread([] {}).join();
}

static void ping_pong(uint64_t n) {
  channel<uint64_t> ping, pong;
  std::thread ponger([&] {
    for (uint64_t i = 0; i < n; ++i) pong.push(ping.pop() + 1);
  });
  std::thread pinger([&] {
    uint64_t v = 0;
    for (uint64_t i = 0; i < n; ++i) {
      ping.push(v);
      v = pong.pop();
    }
    check(v == n, "ping_pong");
  });
  pinger.join();
  ponger.join();
}

static void mpsc(int producers, uint64_t each) {
  channel<uint64_t> ch;
  uint64_t sum = 0;
  std::thread consumer([&] {
    for (uint64_t i = 0; i < producers * each; ++i) sum += ch.pop();
  });
  std::vector<std::thread> ts;
  for (int p = 0; p < producers; ++p)
    ts.emplace_back([&] {
      for (uint64_t i = 0; i < each; ++i) ch.push(i);
    });
  for (auto& t : ts) t.join();
  consumer.join();
  check(sum == producers * each * (each - 1) / 2, "mpsc");
}

static void fork_join_throughput(int members, uint64_t each) {
  std::vector<channel<uint64_t>> boxes(members);
  std::vector<std::thread> ts;
  for (auto& box : boxes)
    ts.emplace_back([&box, each] {
      uint64_t sum = 0;
      for (uint64_t i = 0; i < each; ++i) sum += box.pop();
      check(sum == each * (each - 1) / 2, "fork_join_throughput");
    });
  for (uint64_t i = 0; i < each; ++i)
    for (auto& box : boxes) box.push(i);
  for (auto& t : ts) t.join();
}

// A message without a promise is an increment, one with it asks for the count.
static void counting(uint64_t n) {
  using message = std::unique_ptr<std::promise<uint64_t>>;
  channel<message> box;
  std::thread counter([&] {
    uint64_t count = 0;
    for (;;) {
      if (message m = box.pop()) {
        m->set_value(count);
        return;
      }
      ++count;
    }
  });
  std::thread producer([&] {
    for (uint64_t i = 0; i < n; ++i) box.push(nullptr);
    auto reply = std::make_unique<std::promise<uint64_t>>();
    auto answer = reply->get_future();
    box.push(std::move(reply));
    check(answer.get() == n, "counting");
  });
  producer.join();
  counter.join();
}

static void fan_out(int tasks) {
  std::vector<std::thread> ts;
  for (int i = 0; i < tasks; ++i)
    ts.emplace_back([] { check(harness::count_primes(200'000) == 17984, "primes"); });
  for (auto& t : ts) t.join();
}

static void mutex_contention(int tasks, int each) {
  std::mutex m;
  uint64_t counter = 0;
  std::vector<std::thread> ts;
  for (int i = 0; i < tasks; ++i)
    ts.emplace_back([&] {
      for (int j = 0; j < each; ++j) {
        std::lock_guard lk(m);
        ++counter;
      }
    });
  for (auto& t : ts) t.join();
  check(counter == uint64_t(tasks) * each, "mutex");
}

static void tcp_server(uint16_t port) {
  int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(l, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && listen(l, 2048) == 0, "listen");
  for (;;) {
    int c = accept4(l, nullptr, nullptr, SOCK_CLOEXEC);
    check(c >= 0, "accept");
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    std::thread([c] {
      char buf[4096];
      for (ssize_t n; (n = read(c, buf, sizeof buf)) > 0;)
        if (write(c, buf, n) != n) break;
      close(c);
    }).detach();
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: std_thread_peer <bench> <threads> [port]\n");
    return 2;
  }
  std::string bench = argv[1];
  int threads = std::atoi(argv[2]);
  if (threads == 1) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  auto run = [&](double n, auto f) { harness::measure(peer, bench, threads, n, f); };
  if (bench == "chained_spawn")
    run(10'000, [] { chained_spawn(10'000); });
  else if (bench == "ping_pong")
    run(100'000, [] { ping_pong(100'000); });
  else if (bench == "mpsc_contention")
    run(160'000, [] { mpsc(8, 20'000); });
  else if (bench == "uncontended_channel")
    run(1'000'000, [] { mpsc(1, 1'000'000); });
  else if (bench == "fan_out_compute")
    run(8, [] { fan_out(8); });
  else if (bench == "fork_join_throughput")
    run(1'200'000, [] { fork_join_throughput(60, 20'000); });
  else if (bench == "counting")
    run(1'000'000, [] { counting(1'000'000); });
  else if (bench == "mutex_contention")
    run(400'000, [] { mutex_contention(8, 50'000); });
  else if (bench == "tcp_server")
    tcp_server(static_cast<uint16_t>(std::atoi(argv[3])));
  else
    harness::skip(peer, bench, threads);
}
