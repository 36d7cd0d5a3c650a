// exit_reason says why an actor ended: what join, monitor and supervision report.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace smarm {

enum class exit_kind : std::uint8_t {
  normal,         // its function returned
  failed,         // an exception left its function; exception() holds it
  stopped,        // request_stop unwound it
  no_such_actor,  // there was nobody under that pid when the question was asked
};

class exit_reason {
 public:
  // A default exit reason is a normal one.
  exit_reason() noexcept = default;

  [[nodiscard]] static exit_reason normal() noexcept { return {}; }
  [[nodiscard]] static exit_reason stopped() noexcept { return exit_reason(exit_kind::stopped); }
  [[nodiscard]] static exit_reason no_such_actor() noexcept {
    return exit_reason(exit_kind::no_such_actor);
  }
  [[nodiscard]] static exit_reason failed(std::exception_ptr why) noexcept {
    exit_reason reason(exit_kind::failed);
    reason.exception_ = std::move(why);
    return reason;
  }

  [[nodiscard]] exit_kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_normal() const noexcept { return kind_ == exit_kind::normal; }
  [[nodiscard]] bool is_failed() const noexcept { return kind_ == exit_kind::failed; }
  [[nodiscard]] bool is_stopped() const noexcept { return kind_ == exit_kind::stopped; }

  // exception is the exception that ended the actor; null unless the kind is failed.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }

  // message is one line for people: the kind, and what() of the exception where there is one.
  [[nodiscard]] std::string message() const {
    switch (kind_) {
      case exit_kind::normal:
        return "normal";
      case exit_kind::stopped:
        return "stopped";
      case exit_kind::no_such_actor:
        return "no such actor";
      case exit_kind::failed:
        break;
    }
    try {
      std::rethrow_exception(exception_);
    } catch (const std::exception& e) {
      return std::string("failed: ") + e.what();
    } catch (...) {
      return "failed: an exception that is no std::exception";
    }
  }

 private:
  explicit exit_reason(exit_kind kind) noexcept : kind_(kind) {}

  std::exception_ptr exception_;
  exit_kind kind_ = exit_kind::normal;
};

}  // namespace smarm
