// Stacks for people: return addresses to functions, files and lines.
//
// With libbacktrace, which reads what -g leaves in a program and names inlined functions too; else
// by dladdr, which knows the functions that a program exports (-rdynamic) and those of shared
// libraries. All of it on a thread of its own: to take a long name apart needs more stack than an
// actor may have.
#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/exit_reason.hpp>

#include "base/captured_stack.hpp"
#include "base/raw_mutex.hpp"

#if defined(SMARM_LIBBACKTRACE)
#include <backtrace.h>
#endif

namespace smarm {

namespace detail {

namespace {

std::string readable(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::unique_ptr<char, void (*)(void*)> owner(text, &std::free);
  return status == 0 ? text : name;
}

std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

#if defined(SMARM_LIBBACKTRACE)

struct finding {
  std::vector<std::string> lines;
  const char* symbol = nullptr;
};

void ignore(void*, const char*, int) {}

int note_function(void* argument, std::uintptr_t, const char* file, int line, const char* name) {
  if (name == nullptr) return 0;
  std::string text = readable(name);
  if (file != nullptr) {
    text += " at " + std::string(last_part(file)) + ":" + std::to_string(line);
  }
  static_cast<finding*>(argument)->lines.push_back(std::move(text));
  return 0;
}

void note_symbol(void* argument, std::uintptr_t, const char* name, std::uintptr_t, std::uintptr_t) {
  static_cast<finding*>(argument)->symbol = name;
}

// The functions at that address: an inlined one before the one it has become part of. One thread
// at a time: of several that come first each would read all of the debug information.
std::vector<std::string> functions_at(std::uintptr_t address) {
  // Guards state and what the library keeps there. No leaf: it allocates. Never held at a park:
  // this is no actor.
  static outer_mutex lock;
  const std::lock_guard guard(lock);
  static backtrace_state* const state = backtrace_create_state(nullptr, 0, &ignore, nullptr);
  if (state == nullptr) return {};
  finding found;
  backtrace_pcinfo(state, address, &note_function, &ignore, &found);
  if (found.lines.empty()) {
    backtrace_syminfo(state, address, &note_symbol, &ignore, &found);
    if (found.symbol != nullptr) found.lines.push_back(readable(found.symbol));
  }
  return std::move(found.lines);
}

#else

std::vector<std::string> functions_at(std::uintptr_t) { return {}; }

#endif

std::string offset_text(const char* module, std::uintptr_t offset) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "+0x%llx", static_cast<unsigned long long>(offset));
  return std::string(last_part(module)) + text.data();
}

std::string exported_at(std::uintptr_t address) {
  Dl_info found{};
  // SAFETY: looked up, not read.
  if (dladdr(reinterpret_cast<void*>(address), &found) == 0) return offset_text("", address);
  if (found.dli_sname != nullptr) return readable(found.dli_sname);
  return offset_text(found.dli_fname, address - reinterpret_cast<std::uintptr_t>(found.dli_fbase));
}

void describe(std::span<void* const> frames, std::vector<std::string>& lines) {
  for (void* const frame : frames) {
    // The call lies before the address it returns to, which may be another function's already.
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(frame) - 1;
    std::vector<std::string> functions = functions_at(address);
    if (functions.empty()) functions.push_back(exported_at(address));
    for (std::string& each : functions) lines.push_back(std::move(each));
  }
}

}  // namespace

std::vector<std::string> lines_of(std::span<void* const> frames) {
  std::vector<std::string> lines;
  if (frames.empty()) return lines;
  try {
    std::thread([&] {
      try {
        describe(frames, lines);
      } catch (const std::bad_alloc&) {
        // What there was memory for.
      }
    }).join();
  } catch (const std::system_error&) {
    // No thread, no text.
  }
  return lines;
}

std::string indented_stack(const exit_reason& why) {
  std::string text;
  for (const std::string& line : lines_of(why.stack())) text += "\n    " + line;
  return text;
}

}  // namespace detail

std::string exit_reason::stack_text() const {
  std::string text;
  for (const std::string& line : detail::lines_of(stack())) text += line + '\n';
  return text;
}

}  // namespace smarm
