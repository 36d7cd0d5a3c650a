// Datagrams to the service manager; see the header.
#include "io/notify_socket.hpp"

#include <errno.h>

#include <span>

#include <smarm/fd.hpp>

#include "io/local_address.hpp"
#include "io/system_call.hpp"

namespace smarm::detail {

io_result<void> notify(const std::string& address, std::string_view state, deadline until) {
  const io_result<local_address> to = to_local_address(address);
  if (!to) return std::unexpected(to.error());
  const unique_fd socket(make_local_datagram_socket());
  if (!socket) return std::unexpected(error_of(socket.get()));
  if (const int connected = connect_to(socket.get(), &to->address, to->size); connected < 0) {
    return std::unexpected(error_of(connected));
  }
  for (;;) {
    const ssize_t sent = send_bytes(socket.get(), std::as_bytes(std::span(state)));
    if (sent >= 0) return {};
    if (sent != -EAGAIN) return std::unexpected(error_of(sent));
    if (const auto room = wait_writable(socket.get(), until); !room) return room;
  }
}

}  // namespace smarm::detail
