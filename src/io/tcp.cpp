// TCP on top of stream_socket; see smarm/tcp.hpp.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include <smarm/tcp.hpp>

#include "io/address.hpp"
#include "io/system_call.hpp"

namespace smarm {
namespace {

using detail::error_of;
using detail::socket_address;
using detail::stream_socket;

io_result<stream_socket> open_socket(int family) {
  const int fd = detail::make_socket(family);
  if (fd < 0) return std::unexpected(error_of(fd));
  return stream_socket::adopt(unique_fd(fd), false);
}

io_result<tcp_address> address_of(const stream_socket& socket, bool peer) {
  sockaddr_storage address{};
  if (const auto named = socket.name(peer, &address); !named) {
    return std::unexpected(named.error());
  }
  return detail::to_tcp_address(address);
}

io_result<stream_socket> connect_one(const socket_address& to, deadline until) {
  auto socket = open_socket(to.family());
  if (!socket) return socket;
  if (const auto done = socket->connect(&to.storage, to.size, until); !done) {
    return std::unexpected(done.error());
  }
  return socket;
}

io_result<stream_socket> listen_one(const socket_address& on, const tcp_listen_options& options) {
  auto socket = open_socket(on.family());
  if (!socket) return socket;
  const int fd = socket->native_handle();
  int result = detail::set_socket_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result == 0 && options.reuse_port) {
    result = detail::set_socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  }
  // "Every address" is IPv6 and IPv4, whatever the machine's default for IPv6 sockets says.
  if (result == 0 && on.family() == AF_INET6) {
    result = detail::set_socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  // The connections that are accepted inherit it: no call for each of them.
  if (result == 0) result = detail::set_socket_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (result == 0) result = detail::bind_socket(fd, &on.storage, on.size);
  if (result == 0) result = detail::listen_socket(fd, options.backlog);
  if (result < 0) return std::unexpected(error_of(result));
  return socket;
}

}  // namespace

io_result<tcp_stream> tcp_stream::adopt(unique_fd connected) {
  if (const int result = detail::set_nonblocking(connected.get()); result < 0) {
    return std::unexpected(error_of(result));
  }
  auto socket = stream_socket::adopt(std::move(connected), false);
  if (!socket) return std::unexpected(socket.error());
  return tcp_stream(std::move(*socket));
}

io_result<tcp_stream> tcp_stream::connect(const std::string& host, std::uint16_t port,
                                          deadline until) {
  const auto addresses = detail::resolve(host, port, until);
  if (!addresses) return std::unexpected(addresses.error());
  std::error_code last;
  for (const socket_address& to : *addresses) {
    auto socket = connect_one(to, until);
    if (socket) {
      tcp_stream stream(std::move(*socket));
      if (const auto set = stream.set_nodelay(true); !set) return std::unexpected(set.error());
      return stream;
    }
    last = socket.error();
    if (last == std::errc::timed_out && until.has_passed()) break;
  }
  return std::unexpected(last);
}

io_result<void> tcp_stream::set_nodelay(bool on) noexcept {
  return socket().set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
}

io_result<tcp_address> tcp_stream::local_address() const { return address_of(socket(), false); }
io_result<tcp_address> tcp_stream::peer_address() const { return address_of(socket(), true); }

io_result<tcp_listener> tcp_listener::bind(const std::string& host, std::uint16_t port,
                                           const tcp_listen_options& options) {
  const auto addresses = detail::resolve(host, port, deadline::never());
  if (!addresses) return std::unexpected(addresses.error());
  std::error_code last;
  for (const socket_address& on : *addresses) {
    auto socket = listen_one(on, options);
    if (socket) return tcp_listener(std::move(*socket));
    last = socket.error();
    if (last == std::errc::address_in_use) break;  // another family would be another port
  }
  return std::unexpected(last);
}

io_result<tcp_stream> tcp_listener::accept(deadline until) {
  auto connection = socket_.accept(until);
  if (!connection) return std::unexpected(connection.error());
  auto socket = stream_socket::adopt(std::move(*connection), false);
  if (!socket) return std::unexpected(socket.error());
  return tcp_stream(std::move(*socket));
}

io_result<tcp_address> tcp_listener::local_address() const { return address_of(socket_, false); }

}  // namespace smarm
