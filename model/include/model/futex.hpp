// futex_wait and futex_wake do what the kernel's futex does to a 32-bit word.
#pragma once

#include <cstdint>
#include <source_location>

#include "model/atomic.hpp"
#include "model/wait_queue.hpp"

namespace model {

// futex_wait sleeps if `word` holds `expected`, until a wake, the deadline, or for no reason. The
// look at the word and the falling asleep are one step for every waker.
template <class T>
[[nodiscard]] wait_result futex_wait(const atomic<T>& word, T expected,
                                     std::int64_t deadline = never,
                                     std::source_location where = std::source_location::current()) {
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  const std::uint32_t site = detail::site_of(where, "futex_wait");
  const place& p = detail::find(e, &word, site, 0);
  detail::wait_queue queue{e, e.objects().companion(p.location), site};
  access look;
  look.kind = event_kind::load;
  look.system = true;
  look.location = p.location;
  look.first = p.first;
  look.site = site;
  queue.lock();
  if (!(e.perform(look).read == to_value(expected))) {
    queue.leave();
    return wait_result::value_changed;
  }
  queue.add();
  return queue.sleep(deadline, where);
}

// futex_wake wakes up to `count` sleepers of the word; it returns how many.
template <class T>
std::size_t futex_wake(const atomic<T>& word, std::size_t count,
                       std::source_location where = std::source_location::current()) {
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  const std::uint32_t site = detail::site_of(where, "wake");
  ++sites.at(site).hits;
  if (sites.at(site).change == mutation::drop) return 0;
  const place& p = detail::find(e, &word, site, 0);
  return detail::wait_queue{e, e.objects().companion(p.location), site}.wake(count);
}

}  // namespace model
