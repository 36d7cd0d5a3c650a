// Sockets of ours under the checker: reads against reports, close against everything.
//
// Proves, for one socket, one reader (and one that follows it), one epoll thread and a peer:
//   - no edge is lost: what the peer sends is read, whenever its report comes (socket_wait.hpp);
//   - a deadline or a stop that meets the report leaves the bytes to the next reader;
//   - close ends the wait of a reader, the descriptor is closed once, by the last to leave, and no
//     system call meets a closed one;
//   - who waits by its number alone learns of the close, whenever it begins;
//   - a handle of a socket that was closed does nothing to the next socket of that number.
// The source is stream_socket.cpp and what is below; the kernel is that of tests/model/kernel.hpp.
// Outside: errors and ends that the kernel reports, writes, passed descriptors, accept and connect.
#include <poll.h>

#include <array>
#include <optional>

#include <smarm/detail/stream_socket.hpp>

#include "io/fd_wait.hpp"
#include "io/socket_wait.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/kernel.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::kernel;
using under_model::stage;
using under_model::the_fd;

constexpr std::int64_t soon = 100;

stream_socket open() {
  auto made = stream_socket::adopt(unique_fd(the_fd), false);
  model::expect(made.has_value(), "the number has an entry");
  return std::move(*made);
}

std::size_t read_from(stream_socket& socket, std::size_t wanted) {
  std::array<std::byte, 8> buffer;
  std::size_t got = 0;
  while (got < wanted) {
    const auto read = socket.read_some(buffer, deadline::never());
    model::expect(read && *read > 0, "the bytes that were sent");
    got += *read;
  }
  return got;
}

PROTOCOL(socket_read_against_report) {
  stage here;
  kernel system;
  actor reader;
  stream_socket socket = open();
  model::parallel(
      [&] {
        here.run(reader, [&] { model::expect(read_from(socket, 1) == 1, "what was sent"); });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); });
}

// Who waits by the number alone is told of the close, and so is who comes after it.
PROTOCOL(socket_close_against_wait_by_number) {
  stage here;
  kernel system;
  actor waiter;
  actor late;
  stream_socket socket = open();
  const auto expect_closed = [] {
    const auto result =
        wait_fd(the_fd, fd_direction::read, deadline::never(), wait_reason::fd_readable);
    model::expect(!result && result.error() == std::errc::bad_file_descriptor, "it is told");
  };
  model::parallel([&] { here.run(waiter, expect_closed); }, [&] { socket.close(); });
  here.run(late, expect_closed);
}

PROTOCOL(socket_wait_by_number_against_report) {
  stage here;
  kernel system;
  actor waiter;
  stream_socket socket = open();
  model::parallel(
      [&] {
        here.run(waiter, [&] {
          const auto result =
              wait_fd(the_fd, fd_direction::read, deadline::never(), wait_reason::fd_readable);
          model::expect(result.has_value() && system.poll(POLLIN) != 0, "it becomes readable");
        });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); });
}

PROTOCOL(socket_two_reads_against_reports) {
  stage here;
  kernel system;
  actor reader;
  stream_socket socket = open();
  model::parallel(
      [&] {
        here.run(reader, [&] { model::expect(read_from(socket, 2) == 2, "what was sent"); });
        system.end_watch();
      },
      [&] {
        system.send(1);
        system.send(1);
      },
      [&] { system.watch(); });
}

PROTOCOL(socket_deadline_against_report) {
  stage here(true);
  kernel system;
  actor reader;
  actor next;
  stream_socket socket = open();
  model::parallel(
      [&] {
        bool done = false;
        here.run(reader, [&] {
          std::array<std::byte, 8> buffer;
          const auto read = socket.read_some(buffer, deadline::from_ns(soon));
          model::expect(read || read.error() == std::errc::timed_out);
          done = read.has_value();
        });
        if (!done) here.run(next, [&] { read_from(socket, 1); });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); }, [&] { here.fire_due(soon); });
}

PROTOCOL(socket_stop_against_report) {
  stage here;
  kernel system;
  actor reader;
  actor next;
  stream_socket socket = open();
  model::parallel(
      [&] {
        bool done = false;
        here.run(reader, [&] { done = read_from(socket, 1) == 1; });
        if (!done) here.run(next, [&] { read_from(socket, 1); });
        system.end_watch();
      },
      [&] {
        system.send(1);
        under_model::stop(reader);
      },
      [&] { system.watch(); });
}

PROTOCOL(socket_close_against_read) {
  stage here;
  kernel system;
  actor reader;
  stream_socket socket = open();
  model::parallel(
      [&] {
        here.run(reader, [&] {
          std::array<std::byte, 8> buffer;
          const auto read = socket.read_some(buffer, deadline::never());
          model::expect(!read && read.error() == std::errc::bad_file_descriptor,
                        "a closed socket has no readers");
        });
        system.end_watch();
      },
      [&] { model::expect(socket.close(), "this call closes it"); }, [&] { system.watch(); });
  model::expect(system.is_closed(), "the last to leave closes it");
}

PROTOCOL(socket_close_against_close) {
  stage here;
  kernel system;
  stream_socket socket = open();
  const int fd = socket.native_handle();
  std::array<bool, 2> closed{};
  model::parallel([&] { closed[0] = close_socket(fd, 1); },
                  [&] { closed[1] = close_socket(fd, 1); },
                  [&] {
                    const socket_hold held(fd, 1);
                    if (held) static_cast<void>(system.receive());  // open while held
                  });
  model::expect(closed[0] != closed[1] && system.is_closed(), "one of them closes it");
}

// The number comes again while a handle of the former socket is still about.
PROTOCOL(socket_reuse_against_late_handle) {
  stage here;
  kernel system;
  stream_socket first = open();
  model::cell<int> former{0};
  std::optional<stream_socket> second;
  model::parallel(
      [&] {
        model::expect(first.close(), "nobody else closes it");
        if (!system.is_closed()) return;  // the other one will, when it leaves
        system.reopen();
        second.emplace(open());
        model::expect(former.read() >= 0, "whoever was inside the former one has left");
      },
      [&] {
        const socket_hold held(the_fd, 1);
        if (!held) return;
        former.write(1);
        static_cast<void>(system.receive());
      });
  if (!second) return;
  model::expect(second->is_open() && !close_socket(the_fd, 1), "the next socket is not the first");
  const socket_hold held(the_fd, 1);
  model::expect(!held, "nobody enters the first any more");
}

// Who enters a socket, by a number that it has guessed, sees what was made of it before.
PROTOCOL(socket_adopt_against_enter) {
  stage here;
  kernel system;
  model::cell<int> made{0};
  std::optional<stream_socket> socket;
  model::parallel(
      [&] {
        made.write(1);
        socket.emplace(open());
      },
      [&] {
        const socket_hold held(the_fd, 1);
        if (!held) return;
        model::expect(made.read() == 1 && held.is_open(), "what the maker did before");
        static_cast<void>(system.receive());
      });
}

// Whoever sees a socket closed sees what its closer did before.
PROTOCOL(socket_close_against_look) {
  stage here;
  kernel system;
  model::cell<int> done{0};
  stream_socket socket = open();
  model::parallel(
      [&] {
        done.write(1);
        model::expect(close_socket(the_fd, 1), "nobody else closes it");
      },
      [&] {
        if (!system.entry.is_open(1)) model::expect(done.read() == 1, "what the closer did");
      });
}

}  // namespace
}  // namespace smarm::detail
