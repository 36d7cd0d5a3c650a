// assert: the failing path. One line is put together in a buffer on the stack and written at once.
#include "base/assert.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/atomic.hpp"

namespace smarm::detail {

namespace {

using describe_function = void (*)(char*, std::size_t);

// Written at start-up by the layer that knows the running actor, read by a failing thread.
constinit atomic<describe_function> context_hook{nullptr};

// line_buffer gathers one line without allocating and drops what does not fit, but never the
// newline.
class line_buffer {
 public:
  [[gnu::format(printf, 2, 3)]] void print(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    print_list(format, arguments);
    va_end(arguments);
  }

  void print_list(const char* format, std::va_list arguments) noexcept {
    const int wanted = std::vsnprintf(text_ + length_, text_max - length_, format, arguments);
    if (wanted > 0) {
      length_ = std::min(length_ + static_cast<std::size_t>(wanted), text_max - 1);
    }
  }

  // write_line sends the line by one system call, so that lines of several threads do not mix.
  void write_line() noexcept {
    text_[length_] = '\n';
    std::size_t written = 0;
    while (written <= length_) {
      const ssize_t count = ::write(STDERR_FILENO, text_ + written, length_ + 1 - written);
      if (count <= 0) {
        return;  // Nobody to tell; the abort that follows still says that something broke.
      }
      written += static_cast<std::size_t>(count);
    }
  }

 private:
  static constexpr std::size_t text_max = 1023;
  char text_[text_max + 1];
  std::size_t length_ = 0;
};

// short_path keeps the folder and the file of a path: enough to find it, and the line stays short.
const char* short_path(const char* path) noexcept {
  const char* result = path;
  int slashes = 0;
  for (const char* at = path + std::strlen(path); at != path; --at) {
    if (at[-1] == '/' && ++slashes == 2) {
      result = at;
      break;
    }
  }
  return result;
}

void print_value(line_buffer& line, const assert_value& value) noexcept {
  switch (value.kind_) {
    case assert_value::kind::signed_integer:
      line.print(" %s=%lld", value.name_, static_cast<long long>(value.signed_));
      break;
    case assert_value::kind::unsigned_integer:
      line.print(" %s=%llu", value.name_, static_cast<unsigned long long>(value.unsigned_));
      break;
    case assert_value::kind::boolean:
      line.print(" %s=%s", value.name_, value.unsigned_ != 0 ? "true" : "false");
      break;
    case assert_value::kind::pointer:
      line.print(" %s=%p", value.name_, value.pointer_);
      break;
    case assert_value::kind::text:
      line.print(" %s=\"%.*s\"", value.name_, static_cast<int>(value.text_.size()),
                 value.text_.data());
      break;
  }
}

}  // namespace

void set_assert_context(void (*describe)(char* buffer, std::size_t size)) noexcept {
  context_hook.store(describe, release);  // pairs with assert_failed(): acquire load
}

void assert_failed(const char* words, const char* condition, const char* file, int line_number,
                   std::initializer_list<assert_value> values) noexcept {
  line_buffer line;
  line.print("smarm: broken invariant: %s [%s] at %s:%d", words, condition, short_path(file),
             line_number);
  if (values.size() != 0) {
    line.print(":");
  }
  for (const assert_value& value : values) {
    print_value(line, value);
  }
  // pairs with set_assert_context(): what the hook reads was set up before it was registered.
  if (const describe_function describe = context_hook.load(acquire); describe != nullptr) {
    char context[160] = "";
    describe(context, sizeof context);
    if (context[0] != '\0') {
      line.print(" (actor: %s)", context);
    }
  }
  line.write_line();
  std::abort();
}

void fatal(const char* format, ...) noexcept {
  line_buffer line;
  line.print("smarm: ");
  std::va_list arguments;
  va_start(arguments, format);
  line.print_list(format, arguments);
  va_end(arguments);
  line.write_line();
  std::abort();
}

}  // namespace smarm::detail
