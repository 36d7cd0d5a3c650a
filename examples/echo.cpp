// echo: a TCP server with an actor for each connection, and a hundred clients that try it.
//
//   example_echo          serves on a port of the kernel's choice, runs the clients, ends
//   example_echo PORT     serves on that port until SIGINT or SIGTERM
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <smarm/smarm.hpp>

using namespace std::chrono_literals;

namespace {

// Sends back what comes, until the peer has no more to say, fails, or keeps silent for a minute.
void serve(smarm::tcp_stream peer) {
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const auto got = peer.read_some(buffer, 60s);
    if (!got || *got == 0) return;
    if (!peer.write_all(std::span(buffer).first(*got), 10s)) return;
  }
}

void accept_all(smarm::tcp_listener& listener) {
  while (auto peer = listener.accept()) {
    smarm::spawn({.name = "connection", .stack_size = std::size_t{32} * 1024},
                 [peer = std::move(*peer)]() mutable { serve(std::move(peer)); });
  }
}

// One client: says its number, and tells whether the same came back.
bool try_it(std::uint16_t port, int number) {
  auto server = smarm::tcp_stream::connect("127.0.0.1", port, 5s);
  if (!server) return false;
  const std::string said = "client " + std::to_string(number);
  if (!server->write_all(said) || !server->shutdown_write()) return false;

  std::string heard;
  std::array<std::byte, 64> buffer;
  for (;;) {
    const auto got = server->read_some(buffer, 5s);
    if (!got) return false;
    if (*got == 0) return heard == said;
    heard.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
}

int run_clients(std::uint16_t port) {
  std::vector<smarm::join_handle<bool>> clients;
  clients.reserve(100);
  for (int i = 0; i < 100; ++i) {
    clients.push_back(smarm::spawn([port, i] { return try_it(port, i); }));
  }
  int satisfied = 0;
  for (auto& client : clients) satisfied += client.join().value_or(false) ? 1 : 0;
  return satisfied;
}

}  // namespace

int main(int argc, char** argv) {
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  return smarm::run([port] {
    auto listener = smarm::tcp_listener::bind("127.0.0.1", port);
    if (!listener) {
      std::fprintf(stderr, "echo: %s\n", listener.error().message().c_str());
      return 1;
    }
    // Started first: the reference stays good, since root joins the acceptor before it returns.
    auto acceptor = smarm::spawn({.name = "acceptor"}, [&] { accept_all(*listener); });
    if (port == 0) {
      std::printf("%d of 100 clients heard themselves\n",
                  run_clients(listener->local_address()->port));
    } else {
      (void)smarm::signals({SIGINT, SIGTERM}).recv();
    }
    listener->close();
    (void)acceptor.join();
    return 0;
  });
}
