// shared is what atomics and cells have in common: they register where they live, and an access
// finds its place and checks that the object is there and that its construction is known to the
// accessor.
#pragma once

#include <cstring>
#include <source_location>
#include <string>

#include "model/call_site.hpp"
#include "model/engine_judge.hpp"
#include "model/engine_threads.hpp"

namespace model::detail {

// constructed registers an object; outside of a run it does nothing.
inline void constructed(const void* address, const value& first,
                        const std::source_location& where) {
  engine* e = engine::current();
  if (e == nullptr) return;
  engine::system_scope scope{e};
  place& p = e->objects().add(address, e->thread());
  p.first = first;
  p.made = e->now();
  p.site = sites.intern(where, "construct", order::plain, order::plain, false);
}

// find returns the living place at the address; it ends the run if there is none. An object that
// outlives the runs begins each of them with what its first `size` bytes hold.
inline place& find(engine& e, const void* address, std::uint32_t site, std::size_t size) {
  place* p = e.objects().find(address);
  if (p == nullptr) {
    if (!e.is_outside(address))
      e.misuse("the access at " + where(site) +
               " is to an object that was not constructed in the model");
    p = &e.objects().add_static(address);
    std::memcpy(&p->first, address, size);
  }
  if (p->dead)
    e.fail(e.memory().is_freed(address) ? "use after free" : "use after destruction",
           std::string{sites.at(site).what} + " at " + where(site) +
               " of an object that is gone; it was made at " + where(p->site));
  const std::size_t t = e.thread();
  if (!p->is_static && p->made.thread != t && !p->made.is_before(e.seen()))
    e.race(*p, "data race", "construction races with an access", site, p->site, p->made.thread);
  p->uses[t] = e.now().count;
  p->use_sites[t] = site;
  return *p;
}

// destroyed ends an object's life: its construction has to happen before, and every access. If one
// of these does not, there is an order of the two in which it is a use after the end.
inline void destroyed(const void* address) {
  engine* e = engine::current();
  if (e == nullptr) return;
  engine::system_scope scope{e};
  place* p = e->objects().find(address);
  if (p == nullptr || p->dead) return;
  p->dead = true;
  const clock& seen = e->seen();
  if (!p->is_static && p->made.thread != e->thread() && !p->made.is_before(seen))
    e->race(*p, "data race", "construction races with the end of the object", p->site, p->site,
            p->made.thread);
  for (std::size_t t = 0; t < threads_max; ++t)
    if (t != e->thread() && p->uses[t] > seen.count[t]) {
      const bool heap = e->memory().holds(address);
      e->race(*p, heap ? "use after free" : "use after destruction",
              "the end of the object races with an access", p->site, p->use_sites[t], t);
    }
}

}  // namespace model::detail
