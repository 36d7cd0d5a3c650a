// The handler of reports, and the line that stands for it.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <smarm/report.hpp>

#include "base/captured_stack.hpp"
#include "base/raw_mutex.hpp"

namespace smarm {

namespace {

// Guards the handler's pointer; not held while it is called.
detail::outer_mutex& handler_lock() noexcept {
  static detail::outer_mutex lock;
  return lock;
}
std::shared_ptr<const report_handler>& handler() noexcept {
  // Outlives every actor; not from the heap, as shared_state is not.
  alignas(std::shared_ptr<const report_handler>) static std::byte
      place[sizeof(std::shared_ptr<const report_handler>)];
  static auto* const only = ::new (place) std::shared_ptr<const report_handler>;
  return *only;
}

void print(const report& what) {
  if (what.kind == report_kind::progress) return;
  std::fputs((to_string(what) + "\n").c_str(), stderr);
}

}  // namespace

std::string_view to_string(report_kind kind) noexcept {
  switch (kind) {
    case report_kind::crash:
      return "crash";
    case report_kind::server_terminate:
      return "server terminate";
    case report_kind::child_terminated:
      return "child terminated";
    case report_kind::start_error:
      return "start error";
    case report_kind::shutdown:
      return "shutdown";
    case report_kind::shutdown_error:
      return "shutdown error";
    case report_kind::progress:
      return "progress";
    case report_kind::unexpected:
      return "unexpected";
  }
  return "unknown";
}

std::string to_string(const report& what) {
  std::string line = "smarm: " + std::string(to_string(what.kind)) + ": " + to_string(what.who);
  if (!what.name.empty()) line += " \"" + what.name + "\"";
  if (what.child.is_valid() || !(what.id == term())) {
    line += ", child " + to_string(what.id);
    if (what.child.is_valid()) line += " " + to_string(what.child);
  }
  line += ": " + what.reason.message();
  if (!what.text.empty()) line += " (" + what.text + ")";
  // A server's last words are followed at once by its actor's, which have the stack.
  if (what.kind != report_kind::server_terminate) line += detail::indented_stack(what.reason);
  return line;
}

report_handler set_report_handler(report_handler fresh) {
  auto next = fresh ? std::make_shared<const report_handler>(std::move(fresh)) : nullptr;
  {
    const std::lock_guard guard(handler_lock());
    handler().swap(next);
  }
  return next == nullptr ? report_handler() : *next;
}

void emit_report(const report& what) noexcept {
  try {
    std::shared_ptr<const report_handler> now;
    {
      const std::lock_guard guard(handler_lock());
      now = handler();
    }
    if (now == nullptr) {
      print(what);
    } else {
      (*now)(what);
    }
  } catch (...) {
    // A report that cannot be made must not end who reports.
  }
}

}  // namespace smarm
