// fiber_fixture is a hand-driven miniature of a scheduler for this folder's tests: it starts a
// fiber on a stack of a pool, resumes it from any adopted thread, and lets the fiber's body park.
//
// Threads: whoever calls resume() runs the fiber; the test hands it from thread to thread by
// joining.
#pragma once

#include <functional>
#include <utility>

#include "fiber/fiber.hpp"
#include "fiber/stack.hpp"

namespace smarm::detail::test {

// adopted_thread makes the calling thread able to run fibers for a scope.
struct adopted_thread {
  adopted_thread() { adopt_thread(native); }
  fiber native;
};

// test_fiber is one fiber with a body; it parks where the body calls park().
class test_fiber {
 public:
  test_fiber(stack_pool& pool, std::function<void(test_fiber&)> body)
      : pool_(pool), body_(std::move(body)) {}
  test_fiber(const test_fiber&) = delete;
  test_fiber& operator=(const test_fiber&) = delete;
  ~test_fiber() { SMARM_ASSERT(!has_stack_, "a test fiber was run to its end"); }

  // resume runs the fiber on the calling thread until it parks or ends; false when it has ended.
  bool resume(adopted_thread& thread) {
    resumer_ = &thread.native;
    switch_message message;
    if (!has_stack_) {
      self_ = fiber{};
      self_.stack = pool_.acquire(stack_size_default).value();
      has_stack_ = true;
      message = start_fiber(thread.native, self_, &enter, this, 0);
    } else {
      message = switch_fiber(thread.native, self_, this, 0);
    }
    if (message.what == ended) {
      pool_.release(self_.stack);
      has_stack_ = false;
      return false;
    }
    return true;
  }

  // park goes back to whoever resumed the fiber. PARKS.
  [[gnu::noinline]] void park() { static_cast<void>(switch_fiber(self_, *resumer_, this, parked)); }

  [[nodiscard]] stack_span stack() const { return self_.stack; }

 private:
  static constexpr std::uintptr_t parked = 1;
  static constexpr std::uintptr_t ended = 2;

  static void enter(void* from, std::uintptr_t) {
    auto& me = *static_cast<test_fiber*>(from);
    me.body_(me);
    leave_fiber(me.self_, *me.resumer_, &me, ended);
  }

  stack_pool& pool_;
  std::function<void(test_fiber&)> body_;
  fiber self_;
  fiber* resumer_ = nullptr;
  bool has_stack_ = false;
};

}  // namespace smarm::detail::test
