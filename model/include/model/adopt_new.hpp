// adopt_new replaces the global operator new and delete of a program: what model threads allocate
// comes from the run's arena. So containers and everything else of the code under test are looked
// after for leaks and double frees, and their addresses are the same in every run.
//
// Include it in exactly one source file of a program of models. Code of a model that keeps
// something beyond its run wraps that in model::outside.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "model/engine.hpp"
#include "model/engine_judge.hpp"
#include "model/engine_threads.hpp"
#include "model/sanitizer_options.hpp"

namespace model::detail {

[[nodiscard]] inline void* adopt_allocate(std::size_t size, std::size_t alignment) {
  if (engine::is_user()) {
    engine& e = *engine::current();
    const engine::system_scope scope{&e};
    if (!e.wishes().adopt_new)
      e.misuse("thread " + std::to_string(e.thread()) + " allocates " + std::to_string(size) +
               " bytes outside of the arena after " + e.last_place() + ": use model::make");
    return e.allocate(size, alignment, sites.intern({}, "new", order::plain, order::plain, false),
                      false);
  }
  void* address =
      alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
          : std::malloc(size);
  if (address == nullptr) std::abort();
  return address;
}

// adopt_release: what outlives its run was forgotten with the run; there is nothing to give back.
inline void adopt_release(void* address) noexcept {
  if (address == nullptr) return;
  if (engine::is_arena(address)) {
    if (engine::is_user()) engine::current()->release(address);
    return;
  }
  std::free(address);
}

}  // namespace model::detail

// NOLINTBEGIN(misc-definitions-in-headers): one file of a program includes this, see above.
void* operator new(std::size_t size) { return model::detail::adopt_allocate(size, 16); }
void* operator new[](std::size_t size) { return model::detail::adopt_allocate(size, 16); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return model::detail::adopt_allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return model::detail::adopt_allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return model::detail::adopt_allocate(size, 16);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return model::detail::adopt_allocate(size, 16);
}
void operator delete(void* address) noexcept { model::detail::adopt_release(address); }
void operator delete[](void* address) noexcept { model::detail::adopt_release(address); }
void operator delete(void* address, std::size_t) noexcept { model::detail::adopt_release(address); }
void operator delete[](void* address, std::size_t) noexcept {
  model::detail::adopt_release(address);
}
void operator delete(void* address, std::align_val_t) noexcept {
  model::detail::adopt_release(address);
}
void operator delete[](void* address, std::align_val_t) noexcept {
  model::detail::adopt_release(address);
}
void operator delete(void* address, std::size_t, std::align_val_t) noexcept {
  model::detail::adopt_release(address);
}
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept {
  model::detail::adopt_release(address);
}
// NOLINTEND(misc-definitions-in-headers)
