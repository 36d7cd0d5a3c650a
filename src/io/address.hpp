// address turns host names and ports into socket addresses and back.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <smarm/deadline.hpp>
#include <smarm/io_result.hpp>
#include <smarm/tcp.hpp>

namespace smarm::detail {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

// numeric_address reads a host that is an address in numbers, IPv6 with or without a %scope;
// nothing where it is none. Any thread; asks nobody but the kernel, for the scope.
[[nodiscard]] std::optional<socket_address> numeric_address(const std::string& host,
                                                            std::uint16_t port);

// resolve gives the addresses of a host, at least one. A numeric host costs nothing; a name is
// looked up on a thread of the blocking pool, which parks (on a thread that is no actor: blocks).
// A lookup cannot be called off, but a stop or the deadline leaves it behind. An empty host means
// every address of the machine; one with a zero byte is refused.
[[nodiscard]] io_result<std::vector<socket_address>> resolve(const std::string& host,
                                                             std::uint16_t port, deadline until);

// to_tcp_address gives the address in numbers. Precondition: IPv4 or IPv6.
[[nodiscard]] tcp_address to_tcp_address(const sockaddr_storage& address);

}  // namespace smarm::detail
