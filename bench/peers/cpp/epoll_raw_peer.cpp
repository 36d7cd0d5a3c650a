// The floor for tcp_echo: bare epoll loops, no tasks.
//
//   epoll_raw_peer tcp_server <threads> <port>
//
// Each thread has its own epoll instance; the first one also accepts and deals
// the connections out in turn. See bench/README.md.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "bench/harness.hpp"

using harness::check;

static void add(int ep, int fd) {
  epoll_event ev{};
  ev.events = EPOLLIN;
  ev.data.fd = fd;
  check(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0, "epoll_ctl");
}

static void loop(int ep, int listener, const std::vector<int>& eps) {
  size_t next = 0;
  char buf[4096];
  epoll_event evs[256];
  for (;;) {
    int n = epoll_wait(ep, evs, 256, -1);
    for (int i = 0; i < n; ++i) {
      int fd = evs[i].data.fd;
      if (fd == listener) {
        int c = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;
        if (c < 0) continue;
        setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        add(eps[next++ % eps.size()], c);
        continue;
      }
      ssize_t r = read(fd, buf, sizeof buf);
      if (r <= 0 || write(fd, buf, size_t(r)) != r) close(fd);
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]) != "tcp_server") {
    harness::skip("epoll_raw", argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0);
    return 0;
  }
  int threads = std::max(1, std::atoi(argv[2])), one = 1;
  int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[3])));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(l, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && listen(l, 2048) == 0, "listen");
  std::vector<int> eps;
  for (int i = 0; i < threads; ++i) eps.push_back(epoll_create1(EPOLL_CLOEXEC));
  add(eps[0], l);
  std::vector<std::thread> ts;
  for (int i = 1; i < threads; ++i) ts.emplace_back([&, i] { loop(eps[i], l, eps); });
  loop(eps[0], l, eps);
}
