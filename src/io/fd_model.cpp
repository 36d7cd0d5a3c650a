// Waits for descriptors under the checker, from wait_fd down to the reports of the kernel.
//
// Proves, for one descriptor, one waiter a direction (and one that follows it) and one epoll
// thread:
//   - readiness that comes before, while or after the waiter registers wakes it;
//   - a deadline or a stop takes the waiter and the registration out, and leaves nothing that would
//     harm the next one, whom the report then reaches;
//   - two directions share a registration, and each is woken;
//   - who waits when the descriptor is closed learns so, also where its number comes again.
// The kernel is that of tests/model/kernel.hpp, actors are model threads (tests/model/actors.hpp).
// Outside: the table's chunks, a runtime whose set ends (abandon), errors of epoll_ctl but for a
// closed descriptor, several schedulers that look while the thread does.
#include <poll.h>

#include <smarm/fd.hpp>

#include "io/fd_wait.hpp"
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

io_result<void> wait_for(fd_direction direction, deadline until = deadline::never()) {
  return wait_fd(the_fd, direction, until, wait_reason::fd_readable);
}

void expect_nothing_left(kernel& system) {
  model::expect(system.entry.waiters[0] == nullptr && system.entry.waiters[1] == nullptr,
                "no waiter is left behind");
  model::expect(system.entry.set == nullptr && system.entry.armed == 0,
                "no registration is left behind");
}

PROTOCOL(fd_readiness_against_wait) {
  stage here;
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          model::expect(wait_for(fd_direction::read).has_value(), "it becomes readable");
          model::expect(system.poll(POLLIN) != 0, "and it is");
        });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); });
  expect_nothing_left(system);
}

PROTOCOL(fd_deadline_against_readiness) {
  stage here(true);
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto result = wait_for(fd_direction::read, deadline::from_ns(soon));
          model::expect(result ? system.poll(POLLIN) != 0 : result.error() == std::errc::timed_out);
        });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); }, [&] { here.fire_due(soon); });
  expect_nothing_left(system);
}

PROTOCOL(fd_stop_against_readiness) {
  stage here;
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] { static_cast<void>(wait_for(fd_direction::read)); });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); }, [&] { under_model::stop(reader); });
  expect_nothing_left(system);
}

// The first wait is given up at once, with its report perhaps on the way; the next one is served.
PROTOCOL(fd_withdrawal_against_next_wait) {
  stage here;
  kernel system;
  actor reader;
  actor next;
  model::parallel(
      [&] {
        here.run(reader,
                 [&] { static_cast<void>(wait_for(fd_direction::read, deadline::from_ns(0))); });
        here.run(next, [&] {
          model::expect(wait_for(fd_direction::read).has_value(), "it is readable in the end");
        });
        system.end_watch();
      },
      [&] { system.send(1); }, [&] { system.watch(); });
  expect_nothing_left(system);
}

// The other direction comes and goes: the registration that is left serves the reader.
PROTOCOL(fd_two_directions) {
  stage here;
  kernel system;
  actor reader;
  actor writer;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          model::expect(wait_for(fd_direction::read).has_value(), "it becomes readable");
        });
        system.end_watch();
      },
      [&] {
        here.run(writer,
                 [&] { static_cast<void>(wait_for(fd_direction::write, deadline::from_ns(0))); });
        system.send(1);
      },
      [&] { system.watch(); });
  expect_nothing_left(system);
}

PROTOCOL(fd_close_against_wait) {
  stage here;
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto result = wait_for(fd_direction::read);
          model::expect(!result && result.error() == std::errc::bad_file_descriptor,
                        "who waits learns of the close");
        });
        system.end_watch();
      },
      [&] {
        system.await_registration();
        unique_fd(the_fd).reset();
      },
      [&] { system.watch(); });
}

// The number is given out again at once: who waited does not wait for the next file.
PROTOCOL(fd_close_and_reuse_against_wait) {
  stage here;
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto result = wait_for(fd_direction::read);
          model::expect(!result && result.error() == std::errc::bad_file_descriptor,
                        "who waits learns of the close");
        });
      },
      [&] {
        system.await_registration();
        unique_fd(the_fd).reset();
        system.reopen();
      });
}

// Whenever the wait begins, also between the wake and the close of the descriptor.
PROTOCOL(fd_close_against_the_beginning_of_a_wait) {
  stage here;
  kernel system;
  actor reader;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto result = wait_for(fd_direction::read);
          model::expect(!result && result.error() == std::errc::bad_file_descriptor,
                        "who waits learns of the close");
        });
      },
      [&] { unique_fd(the_fd).reset(); });
  expect_nothing_left(system);
}

PROTOCOL(fd_second_waiter_is_refused) {
  stage here;
  kernel system;
  actor first;
  actor second;
  model::parallel(
      [&] {
        here.run(first, [&] {
          const auto result = wait_for(fd_direction::read);
          model::expect(result || result.error() == std::errc::device_or_resource_busy);
        });
        system.end_watch();
      },
      [&] {
        here.run(second, [&] {
          const auto result = wait_for(fd_direction::read, deadline::from_ns(0));
          model::expect(!result, "nothing is there yet");
        });
        system.send(1);
      },
      [&] { system.watch(); });
  expect_nothing_left(system);
}

}  // namespace
}  // namespace smarm::detail
