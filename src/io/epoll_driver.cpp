// The epoll thread and its end; see epoll_driver.hpp.
#include "io/epoll_driver.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <system_error>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
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

// batch is what epoll_wait gave, without the event that ends the thread.
struct batch {
  std::span<const epoll_event> reports;
  bool stopping = false;
};

batch without_stop(std::span<epoll_event> events, int count) noexcept {
  SMARM_ASSERT(count >= 0, "epoll_wait succeeds on a set of ours", count);
  std::size_t kept = 0;
  bool stopping = false;
  for (const epoll_event& event : events.first(static_cast<std::size_t>(count))) {
    if (event.data.u64 == stop_data) {
      stopping = true;
    } else {
      events[kept++] = event;
    }
  }
  return {events.first(kept), stopping};
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
  call_back();
  thread_.join();
  abandon(set_);
}

void epoll_driver::watch() noexcept {
  std::array<epoll_event, dispatch_max> events;
  for (;;) {
    const int count = wait_events(set_.native_handle(), events, true);
    const batch got = without_stop(events, count);
    // Before the wakes: a scheduler that is woken by them may call back at once.
    watching_.store(0, relaxed);  // relaxed: see the field
    const bool woke_somebody = dispatch(got.reports);
    if (got.stopping) return;
    if (woke_somebody) stand_back();
    watching_.store(1, relaxed);  // relaxed: see the field
  }
}

void epoll_driver::stand_back() noexcept {
  const std::int64_t until = add_saturating(monotonic_ns(), stand_back_max_ns);
  futex_result result{};
  do {
    result = futex_wait(watching_, 0, until);
  } while (result == futex_result::interrupted ||
           // relaxed: see the field
           (result == futex_result::woken && watching_.load(relaxed) == 0));
}

void epoll_driver::call_back() noexcept {
  // relaxed: see the field. A call that is missed because the thread is just about to stand back
  // costs stand_back_max at most.
  if (watching_.load(relaxed) != 0 || watching_.exchange(1, relaxed) != 0) return;
  (void)futex_wake(watching_, 1);
}

bool epoll_driver::look() noexcept {
  std::array<epoll_event, dispatch_max> events;
  const int count = wait_events(set_.native_handle(), events, false);
  if (dispatch(without_stop(events, count).reports)) return true;
  call_back();
  return false;
}

epoll_set& epoll_set_of(runtime_core& runtime) {
  return static_cast<epoll_driver&>(runtime_driver(runtime, driver_kind::fd, make_driver)).set();
}

}  // namespace smarm::detail
