// touch is an access of a model thread to an object of the model: it finds the place, applies the
// mutation that is aimed at the call, and has the engine perform what is left.
#pragma once

#include <source_location>

#include "model/shared.hpp"

namespace model {

namespace detail {

// weaker applies a site's mutation to an access; false if the access is not to happen at all.
[[nodiscard]] inline bool apply_mutation(access& a, const site& s) {
  switch (s.change) {
    case mutation::relaxed:
      a.success = order::relaxed;
      break;
    case mutation::acquire:
      a.success = order::acquire;
      break;
    case mutation::release:
      a.success = order::release;
      break;
    case mutation::acq_rel:
      a.success = order::acq_rel;
      break;
    case mutation::seq_cst:
      a.success = order::seq_cst;
      break;
    case mutation::fail_relaxed:
      a.failure = order::relaxed;
      break;
    case mutation::fail_acquire:
      a.failure = order::acquire;
      break;
    case mutation::loose:
      a.loose = true;
      break;
    case mutation::drop:
    case mutation::skip:
      return false;
    default:
      break;
  }
  return true;
}

// remembered is what the calling thread last read from or wrote to a location.
[[nodiscard]] inline value remembered(engine& e, const place& p) {
  const auto& events = e.execution().of(e.thread());
  for (std::size_t i = e.self().count; i-- > 0;)
    if (events[i].location == p.location)
      return events[i].written ? events[i].wrote : events[i].read;
  return p.first;
}

// touch performs an access to the object at `address`. Precondition: a run is going on.
inline step touch(const void* address, access& a, std::size_t size, const char* what,
                  const std::source_location& where) {
  engine& e = *engine::current();
  engine::system_scope scope{&e};
  a.site = sites.intern(where, what, a.success, a.failure, a.kind == event_kind::cas);
  site& s = sites.at(a.site);
  ++s.hits;
  const place& p = find(e, address, a.site, size);
  a.location = p.location;
  a.first = p.first;
  if (s.change == mutation::none) return e.perform(a);
  if (!apply_mutation(a, s)) return {remembered(e, p), false, false};
  if (s.change != mutation::split) return e.perform(a);
  access part = a;
  part.kind = event_kind::load;
  if (part.success == order::release || part.success == order::acq_rel)
    part.success = part.success == order::release ? order::relaxed : order::acquire;
  const step read = e.perform(part);
  part = a;
  part.kind = event_kind::store;
  part.operand = a.modify(read.read);
  if (part.success == order::acquire || part.success == order::acq_rel)
    part.success = part.success == order::acquire ? order::relaxed : order::release;
  e.perform(part);
  return read;
}

}  // namespace detail

}  // namespace model
