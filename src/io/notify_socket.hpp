// notify tells the service manager how the service fares: sd_notify(3) without systemd's library.
//
// A datagram to the socket whose address the service manager has put into NOTIFY_SOCKET. The
// socket is in non-blocking mode; where the manager's queue is full, the caller parks until there
// is room or the deadline.
//
// Source: systemd, sd_notify(3), "Notes".
#pragma once

#include <string>
#include <string_view>

#include <smarm/deadline.hpp>
#include <smarm/io_result.hpp>

namespace smarm::detail {

// notify sends one datagram, as "READY=1", to a path or an abstract name ('@'). Parks; a stop
// point. On a thread that is no actor it blocks that thread.
io_result<void> notify(const std::string& address, std::string_view state, deadline until);

}  // namespace smarm::detail
