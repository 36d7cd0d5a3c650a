// captured_stack is the stack that threw an exception, and then the exception itself: what the
// copies of an error reason share.
//
// It is made while the exception is on its way (sched/thrown.hpp), so that making one must not
// throw, and before its exception can be had; reason() puts that in and gives it away.
// Threads: its maker's alone until reason(); then constant, but for the count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <smarm/exit_reason.hpp>

#include "base/atomic.hpp"

namespace smarm::detail {

class captured_stack {
 public:
  // LIMIT: how many frames are kept; those farther out than that are left off.
  static constexpr std::size_t frames_max = 32;

  // make copies return addresses, the deepest first; null without memory. In an exception's search
  // for its handler: never throws, not even to catch it.
  // `level` is how many exceptions are in flight, the one whose stack it is among them.
  [[nodiscard]] static captured_stack* make(std::span<void* const> frames, unsigned level) noexcept;

  // reason is the error with that exception and this stack, which is the reason's from then on.
  [[nodiscard]] exit_reason reason(std::exception_ptr why) noexcept;

  [[nodiscard]] std::span<void* const> frames() const noexcept {
    // SAFETY: make has put so many behind the object, whose size keeps them aligned.
    return {reinterpret_cast<void* const*>(this + 1), count_};
  }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  [[nodiscard]] unsigned level() const noexcept { return level_; }

  void share() noexcept;
  void drop() noexcept;  // with the last reference it is gone

 private:
  captured_stack(std::uint32_t count, std::uint32_t level) noexcept
      : count_(count), level_(level) {}
  ~captured_stack() = default;

  std::exception_ptr error_;
  atomic<std::uint32_t> references_{1};
  const std::uint32_t count_;
  const std::uint32_t level_;
};

// lines_of tells what the frames are of, a line a function; see exit_reason::stack_text.
[[nodiscard]] std::vector<std::string> lines_of(std::span<void* const> frames);

// indented_stack is the same for a report: before each line an end of line and four blanks.
[[nodiscard]] std::string indented_stack(const exit_reason& why);

}  // namespace smarm::detail
