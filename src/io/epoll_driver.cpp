// The epoll thread and its end; see epoll_driver.hpp.
#include "io/epoll_driver.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <system_error>

#include "base/assert.hpp"
#include "io/dispatch.hpp"
#include "io/io_thread.hpp"
#include "io/system_call.hpp"

namespace smarm::detail {
namespace {

// What the stop event carries: no registration of a descriptor has these bits.
constexpr std::uint64_t stop_data = ~std::uint64_t{0};

int checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(error_of(fd), what);
  return fd;
}

std::unique_ptr<driver> make_driver(runtime_core&) { return std::make_unique<epoll_driver>(); }

}  // namespace

epoll_driver::epoll_driver()
    : set_(checked(make_epoll(), "smarm: epoll_create1")),
      stop_(checked(make_event(), "smarm: eventfd")) {
  const int added = control(set_.native_handle(), EPOLL_CTL_ADD, stop_.get(), EPOLLIN, stop_data);
  if (added < 0) throw std::system_error(error_of(added), "smarm: epoll_ctl");
  thread_ = start_io_thread("smarm-epoll", [this] { watch(); });
}

epoll_driver::~epoll_driver() {
  const std::uint64_t one = 1;
  const ssize_t written = write_bytes(stop_.get(), std::as_bytes(std::span(&one, 1)));
  SMARM_ASSERT(written == sizeof one, "the epoll thread can be told to stop", written);
  thread_.join();
  abandon(set_);
}

void epoll_driver::watch() noexcept {
  std::array<epoll_event, dispatch_max> events;
  for (;;) {
    const int count = wait_events(set_.native_handle(), events);
    SMARM_ASSERT(count >= 0, "epoll_wait succeeds on a set of ours", count);
    std::size_t kept = 0;
    bool stopping = false;
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
      if (event.data.u64 == stop_data) {
        stopping = true;
      } else {
        events[kept++] = event;
      }
    }
    dispatch(std::span(events).first(kept));
    if (stopping) return;
  }
}

epoll_set& epoll_set_of(runtime_core& runtime) {
  return static_cast<epoll_driver&>(runtime_driver(runtime, driver_kind::fd, make_driver)).set();
}

}  // namespace smarm::detail
