// semaphore is permits with the checks of a public class.
#include <memory>
#include <new>
#include <string>

#include <smarm/semaphore.hpp>

#include "sched/wait.hpp"
#include "sync/permits.hpp"

namespace smarm {

namespace {

detail::permits& permits_of(std::byte* place) noexcept {
  // SAFETY: the constructor put a permits there.
  return *std::launder(reinterpret_cast<detail::permits*>(place));
}

}  // namespace

semaphore::semaphore(std::size_t permits) {
  static_assert(sizeof(core_) == sizeof(detail::permits));
  static_assert(alignof(detail::permits) <= 8);
  if (permits > max()) {
    throw misuse("semaphore: " + std::to_string(permits) + " permits, at most " +
                 std::to_string(max()) + " can be held");
  }
  ::new (core_) detail::permits(static_cast<std::int64_t>(permits));
}

semaphore::~semaphore() { std::destroy_at(&permits_of(core_)); }

void semaphore::acquire() { (void)try_acquire_until(deadline::never()); }

bool semaphore::try_acquire() noexcept { return permits_of(core_).try_take(); }

bool semaphore::try_acquire_until(deadline until) {
  detail::stop_point();
  detail::permits& permits = permits_of(core_);
  if (permits.try_take()) return true;
  detail::waiter me;
  const auto taken = permits.take(me, detail::wait_reason::semaphore_acquire, until);
  return taken == detail::permits::taken::free || taken == detail::permits::taken::waited;
}

void semaphore::release(std::size_t permits) {
  if (permits > max() || !permits_of(core_).add(static_cast<std::int64_t>(permits),
                                                static_cast<std::int64_t>(max()))) {
    throw misuse("semaphore: release(" + std::to_string(permits) + ") would go beyond " +
                 std::to_string(max()) + " permits");
  }
}

std::size_t semaphore::available() const noexcept {
  // SAFETY: the object itself is not const; only a hint is read.
  return static_cast<std::size_t>(permits_of(const_cast<std::byte*>(core_)).free_count());
}

}  // namespace smarm
