// Closed-loop TCP echo client: one thread, epoll, one outstanding message per
// connection.
//
//   echo_client <port> <connections> <seconds> <windows> [cpu]
//
// Warms up for 0.5 s, then measures `windows` windows of `seconds` each and
// prints one JSON object: round trips per second (median, min and max over the
// windows), the latency percentiles of all windows together, the median over
// the windows of each window's p50, and the client's own CPU share (near 100 %
// means that the client, not the server, is the limit).

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using steady = std::chrono::steady_clock;
static constexpr int kSize = 64;

[[noreturn]] static void die(const char* what) {
  std::fprintf(stderr, "echo_client: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

static uint64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady::now().time_since_epoch())
      .count();
}

// Latency histogram: 64 buckets to each power of two (1.6 % resolution).
struct histogram {
  std::vector<uint64_t> n = std::vector<uint64_t>(64 * 64);
  uint64_t total = 0;
  static size_t index(uint64_t v) {
    if (v < 64) return v;
    int shift = 63 - __builtin_clzll(v) - 6;
    return (shift + 1) * 64 + ((v >> shift) - 64);
  }
  static double value(size_t i) {
    if (i < 64) return double(i);
    int shift = int(i / 64) - 1;
    return (double(i % 64) + 64.5) * double(uint64_t(1) << shift);
  }
  void add(uint64_t v) { ++n[index(v)], ++total; }
  void add(const histogram& o) {
    for (size_t i = 0; i < n.size(); ++i) n[i] += o.n[i];
    total += o.total;
  }
  double quantile_us(double q) const {
    uint64_t want = uint64_t(q * double(total)), seen = 0;
    for (size_t i = 0; i < n.size(); ++i)
      if ((seen += n[i]) > want) return value(i) / 1e3;
    return 0;
  }
};

struct conn {
  int fd;
  int got = 0;
  uint64_t sent_at = 0;
};

static void send_one(conn& c, const char* msg) {
  c.got = 0;
  c.sent_at = now_ns();
  if (write(c.fd, msg, kSize) != kSize) die("write");
}

static double cpu_s() {
  rusage ru{};
  getrusage(RUSAGE_SELF, &ru);
  return ru.ru_utime.tv_sec + ru.ru_stime.tv_sec +
         (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

static double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  size_t m = v.size() / 2;
  return v.size() % 2 ? v[m] : (v[m - 1] + v[m]) / 2;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: echo_client <port> <connections> <seconds> <windows> [cpu]\n");
    return 2;
  }
  int port = std::atoi(argv[1]), count = std::atoi(argv[2]), windows = std::atoi(argv[4]);
  double secs = std::atof(argv[3]);
  if (argc > 5) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::atoi(argv[5]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
  }
  int ep = epoll_create1(EPOLL_CLOEXEC);
  std::vector<conn> conns;
  conns.reserve(count);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < count; ++i) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    conns.push_back({fd});
    epoll_event ev{};
    ev.events = EPOLLIN;
    ev.data.u32 = uint32_t(i);
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev)) die("epoll_ctl");
  }
  char msg[kSize], buf[kSize];
  for (int i = 0; i < kSize; ++i) msg[i] = char('a' + i % 26);
  for (auto& c : conns) send_one(c, msg);

  std::vector<double> rps, p50;
  histogram all, win;
  double client_cpu = 0, measured = 0, cpu0 = 0;
  epoll_event evs[256];
  uint64_t start = now_ns(), length = 500'000'000;  // the warm-up
  int window = -1;
  while (window < windows) {
    int n = epoll_wait(ep, evs, 256, 1000);
    for (int k = 0; k < n; ++k) {
      conn& c = conns[evs[k].data.u32];
      ssize_t r = read(c.fd, buf, size_t(kSize - c.got));
      if (r <= 0) die("read");
      if (std::memcmp(buf, msg + c.got, size_t(r)) != 0) die("wrong echo");
      if ((c.got += int(r)) < kSize) continue;
      win.add(now_ns() - c.sent_at);
      send_one(c, msg);
    }
    uint64_t t = now_ns();
    if (t - start < length) continue;
    double dt = double(t - start) / 1e9;
    if (window >= 0) {
      rps.push_back(double(win.total) / dt);
      p50.push_back(win.quantile_us(0.5));
      all.add(win);
      client_cpu += cpu_s() - cpu0;
      measured += dt;
    } else {
      // The line that tells the driver to sample the server's CPU time.
      std::fprintf(stderr, "measuring\n");
    }
    win = histogram{};
    ++window;
    cpu0 = cpu_s();
    start = now_ns();
    length = uint64_t(secs * 1e9);
  }
  auto [lo, hi] = std::minmax_element(rps.begin(), rps.end());
  auto [plo, phi] = std::minmax_element(p50.begin(), p50.end());
  std::printf(
      "{\"n\":%llu,\"median_us\":%.1f,\"min_us\":%.1f,\"max_us\":%.1f,\"runs\":%d,\"rps\":%.0f,"
      "\"rps_min\":%.0f,"
      "\"rps_max\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"client_cpu_pct\":%.0f}"
      "\n",
      static_cast<unsigned long long>(all.total), median(p50), *plo, *phi, windows, median(rps),
      *lo, *hi, all.quantile_us(0.5), all.quantile_us(0.99), all.quantile_us(0.999),
      100 * client_cpu / measured);
}
