// dispatch turns a batch of epoll reports into wakes; abandon takes leave of a set that ends.
//
// Threads: dispatch by whoever has called epoll_wait, several at a time if need be; it holds one
// entry's lock at a time and no lock at all while it wakes.
#pragma once

#include <cstddef>
#include <span>

#include "io/epoll_set.hpp"
#include "io/fd_table.hpp"

namespace smarm::detail {

inline constexpr std::size_t dispatch_max = 256;  // reports in a batch

// dispatch takes the reported waiters out of their entries, collects their wakers over the whole
// batch, and then wakes them; true: it woke somebody. Reports of a registration that is no more are
// passed over. Precondition: at most dispatch_max events.
bool dispatch(std::span<const epoll_event> events) noexcept;

// abandon forgets every registration in the set, whose thread has ended. Waiters of other runtimes
// that it served are woken and register again with their own; a socket's readiness is set, since
// reports may have been lost.
void abandon(epoll_set& set) noexcept;

// take_waiter takes the waiter of one direction out and notes why. The caller holds the entry's
// lock and wakes the waker after it. An empty waker: nobody waited.
[[nodiscard]] waker take_waiter(fd_entry& entry, fd_direction direction,
                                fd_waiter::outcome why) noexcept;

// arm_for_waiters brings the registration of a descriptor that is not ours in line with its
// waiters: one shot for the directions that are waited for, none where nobody waits. It registers
// with `own` where there is no registration yet. Under the entry's lock. 0 or a negative error.
int arm_for_waiters(fd_entry& entry, int fd, epoll_set* own) noexcept;

// unregister ends the registration, if there is one. Under the entry's lock, before the descriptor
// is closed.
void unregister(fd_entry& entry, int fd) noexcept;

}  // namespace smarm::detail
