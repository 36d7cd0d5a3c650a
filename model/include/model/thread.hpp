// thread is a thread of the model; with it the small words of a model: expect, assume, choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "model/shared.hpp"

namespace model {

namespace detail {
// site_of interns a call that is not an access.
[[nodiscard]] inline std::uint32_t site_of(const std::source_location& where, const char* what) {
  const engine::system_scope scope{engine::current()};
  return sites.intern(where, what, order::relaxed, order::relaxed, false);
}

// inside returns the engine; a call outside of a model is an error of the caller's.
[[nodiscard]] inline engine& inside() {
  engine* e = engine::current();
  if (e == nullptr) {
    std::fputs("model: this call belongs inside of a model\n", stderr);
    std::abort();
  }
  return *e;
}
}  // namespace detail

class thread {
 public:
  thread() = default;

  // thread starts `body` as a thread of its own. What `body` captured by reference has to live on.
  template <class Body>
    requires(!std::is_same_v<std::remove_cvref_t<Body>, thread>)
  explicit thread(Body&& body, const char* name = nullptr,
                  std::source_location where = std::source_location::current()) {
    using kept = std::decay_t<Body>;
    engine& e = detail::inside();
    const std::uint32_t site = detail::site_of(where, "spawn");
    void* memory = e.allocate(sizeof(kept), alignof(kept), site, true);
    auto* closure = ::new (memory) kept(std::forward<Body>(body));
    number_ = e.start(
        [](void* object) {
          auto* run = static_cast<kept*>(object);
          (*run)();
          run->~kept();
        },
        closure, name, site);
  }

  // join waits for the thread's end; everything it did happens before the return.
  void join(std::source_location where = std::source_location::current()) {
    detail::inside().join(number_, detail::site_of(where, "join"));
    number_ = 0;
  }
  [[nodiscard]] bool joinable() const { return number_ != 0; }

 private:
  std::size_t number_ = 0;
};

// spawn starts a thread; who drops the result lets it run on its own.
template <class Body>
thread spawn(Body&& body, const char* name = nullptr,
             std::source_location where = std::source_location::current()) {
  return thread{std::forward<Body>(body), name, where};
}

// parallel runs the bodies as threads and waits for all of them.
template <class... Bodies>
void parallel(Bodies&&... bodies) {
  std::tuple threads{thread{std::forward<Bodies>(bodies)}...};
  std::apply([](auto&... each) { (each.join(), ...); }, threads);
}

// expect states what has to hold; if it does not, the execution is a failure.
inline void expect(bool holds, const std::string& message = "expectation",
                   std::source_location where = std::source_location::current()) {
  if (holds) return;
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  e.fail("assertion",
         message + " (" + short_file(where.file_name()) + ":" + std::to_string(where.line()) + ")");
}

// fail says that this execution is wrong.
[[noreturn]] inline void fail(const std::string& message,
                              std::source_location where = std::source_location::current()) {
  expect(false, message, where);
  std::abort();
}

// assume gives up an execution that is of no interest: neither passed nor failed.
inline void assume(bool holds) { detail::inside().assume(holds); }

// choose returns each number below `alternatives`, in one execution each.
inline std::uint64_t choose(std::uint64_t alternatives,
                            std::source_location where = std::source_location::current()) {
  engine& e = detail::inside();
  engine::system_scope scope{&e};
  access a;
  a.kind = event_kind::choose;
  a.alternatives = alternatives;
  a.site = detail::site_of(where, "choose");
  return e.perform(a).read.low;
}

}  // namespace model
