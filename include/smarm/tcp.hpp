// TCP: a listener that accepts connections, and the connection itself.
//
// stream.hpp says what holds for every call here, and has those that read and write.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/stream_socket.hpp>
#include <smarm/fd.hpp>
#include <smarm/io_result.hpp>
#include <smarm/stream.hpp>

namespace smarm {

// tcp_address is one end of a connection: an address in numbers, and a port.
struct tcp_address {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const tcp_address&, const tcp_address&) = default;
};

// to_string writes "192.0.2.1:80" or "[2001:db8::1]:80".
[[nodiscard]] std::string to_string(const tcp_address& address);

// resolver_category holds the errors of name resolution (the EAI_ codes of getaddrinfo).
[[nodiscard]] const std::error_category& resolver_category() noexcept;

class tcp_stream : public stream {
 public:
  // A stream that is not open; every call answers bad_file_descriptor.
  tcp_stream() noexcept = default;

  // adopt makes a stream of a connected socket and switches it to non-blocking mode.
  [[nodiscard]] static io_result<tcp_stream> adopt(unique_fd connected);

  // connect tries the host's addresses one after the other until one accepts and returns the last
  // error where none does. A numeric host is not looked up; any other name is, on a thread of the
  // blocking pool. The deadline covers all of it. TCP_NODELAY is on.
  [[nodiscard]] static io_result<tcp_stream> connect(const std::string& host, std::uint16_t port,
                                                     deadline until = deadline::never());

  // set_nodelay turns Nagle's algorithm off (true) or on; it is off from the start.
  io_result<void> set_nodelay(bool on) noexcept;

  [[nodiscard]] io_result<tcp_address> local_address() const;
  [[nodiscard]] io_result<tcp_address> peer_address() const;

 private:
  friend class tcp_listener;
  explicit tcp_stream(detail::stream_socket socket) noexcept : stream(std::move(socket)) {}
};

struct tcp_listen_options {
  int backlog = 1024;       // connections that the kernel keeps until they are accepted
  bool reuse_port = false;  // SO_REUSEPORT: several listeners share the port
};

class tcp_listener {
 public:
  // A listener that is not open; accept answers bad_file_descriptor.
  tcp_listener() noexcept = default;

  // bind listens on the host's first address that can be bound. An empty host means every address
  // of the machine, IPv6 and IPv4; port 0 means one that the kernel chooses (see local_address).
  // SO_REUSEADDR is on. A name that is not numeric is looked up as by tcp_stream::connect, so the
  // call may park; with a numeric host it does not.
  [[nodiscard]] static io_result<tcp_listener> bind(const std::string& host, std::uint16_t port,
                                                    const tcp_listen_options& options = {});

  // accept waits for a connection. A connection that was reset before it could be accepted is
  // passed over. Where the process or the system has no descriptor left, accept pauses (10 ms at
  // first, 200 ms at most) and tries again, until the deadline; it does not spin. One actor at a
  // time. Parks; a stop point.
  [[nodiscard]] io_result<tcp_stream> accept(deadline until = deadline::never());

  // close stops listening; an actor in accept gets bad_file_descriptor. Any thread; never parks.
  void close() noexcept { socket_.close(); }

  [[nodiscard]] io_result<tcp_address> local_address() const;
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

 private:
  explicit tcp_listener(detail::stream_socket socket) noexcept : socket_(std::move(socket)) {}

  detail::stream_socket socket_;
};

}  // namespace smarm
