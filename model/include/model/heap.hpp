// make and destroy are new and delete in the memory of a run: what is not destroyed is a leak, what
// is destroyed twice or used after is found. outside() is for what a model keeps across its runs.
#pragma once

#include <new>
#include <source_location>
#include <utility>

#include "model/thread.hpp"

namespace model {

// allocate takes bytes of the run's memory.
[[nodiscard]] inline void* allocate(std::size_t size, std::size_t alignment = 16,
                                    std::source_location where = std::source_location::current()) {
  return detail::inside().allocate(size, alignment, detail::site_of(where, "allocate"), false);
}

// deallocate gives them back.
inline void deallocate(void* address) {
  if (address != nullptr) detail::inside().release(address);
}

// make constructs a T in the run's memory.
template <class T, class... Arguments>
[[nodiscard]] T* make(Arguments&&... arguments) {
  return ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Arguments>(arguments)...);
}

// destroy ends what make began.
template <class T>
void destroy(T* object) {
  if (object == nullptr) return;
  engine& e = detail::inside();
  e.expect_live(object);
  object->~T();
  e.release(object);
}

// name gives an atomic, cell, mutex or condition variable a name for reports. The text has to live
// on.
template <class Object>
void name(const Object& object, const char* text) {
  engine* e = engine::current();
  if (e == nullptr) return;
  const engine::system_scope scope{e};
  if (place* p = e->objects().find(&object)) p->name = text;
}

// outside runs code that touches what outlives the run: results that the model collects. With the
// global operator new adopted (adopt_new.hpp) it allocates from the ordinary heap.
template <class Body>
auto outside(Body&& body) {
  const engine::system_scope scope{engine::current()};
  return std::forward<Body>(body)();
}

}  // namespace model
