// exit_reason says why an actor ended: what join, monitors, links and supervisors report.
//
// The kinds are Erlang's, by their names there. An exception that left the actor's function is an
// `error`, and whoever watches from C++ finds the exception itself in it; exit(reason) ends an
// actor with any of the other kinds. A reason is a value: copies share what they carry, == compares
// kind and contents (errors: the same exception), and to_term gives the form that can leave the
// process.
//
// Sources: Erlang reference manual, "Processes"; OTP's supervisor(3) for shutdown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <smarm/term.hpp>

namespace smarm {

namespace detail {
class captured_stack;
}  // namespace detail

enum class exit_kind : std::uint8_t {
  normal,        // its function returned, or it said so
  error,         // an exception left its function; exception() holds it
  stopped,       // request_stop unwound it
  killed,        // a kill signal unwound it
  shutdown,      // it was told to end, or chose to, in good order; detail() may say more
  noproc,        // there was nobody under that pid or name when the question was asked
  noconnection,  // the connection to the node it lives on was lost
  custom,        // a reason of the user's: detail()
};

class exit_reason {
 public:
  // A default exit reason is a normal one.
  exit_reason() noexcept {}
  exit_reason(const exit_reason& other) noexcept : form_(other.form_) {
    if (is_error()) {
      share_error(other);
    } else if (other.detail_ != nullptr) {
      detail_ = share(*other.detail_);
    }
  }
  exit_reason(exit_reason&& other) noexcept { swap(other); }
  exit_reason& operator=(exit_reason other) noexcept {
    swap(other);
    return *this;
  }
  ~exit_reason() {
    if (is_error()) {
      drop_error();
    } else if (detail_ != nullptr) {
      drop(*detail_);
    }
  }

  // A reason of the user's own: exit_reason(atom("boom")). The atoms that name a kind give that
  // kind, and {shutdown, detail} gives a shutdown, so that term and reason go there and back.
  explicit exit_reason(const term& value);
  explicit exit_reason(atom value) : exit_reason(term(std::move(value))) {}

  [[nodiscard]] static exit_reason normal() noexcept { return {}; }
  [[nodiscard]] static exit_reason stopped() noexcept { return exit_reason(exit_kind::stopped); }
  [[nodiscard]] static exit_reason killed() noexcept { return exit_reason(exit_kind::killed); }
  [[nodiscard]] static exit_reason shutdown() noexcept { return exit_reason(exit_kind::shutdown); }
  [[nodiscard]] static exit_reason shutdown(const term& detail);
  [[nodiscard]] static exit_reason noproc() noexcept { return exit_reason(exit_kind::noproc); }
  [[nodiscard]] static exit_reason noconnection() noexcept {
    return exit_reason(exit_kind::noconnection);
  }
  [[nodiscard]] static exit_reason error(std::exception_ptr why) noexcept;

  [[nodiscard]] exit_kind kind() const noexcept { return form_.kind; }
  [[nodiscard]] bool is_normal() const noexcept { return form_.kind == exit_kind::normal; }
  [[nodiscard]] bool is_error() const noexcept { return form_.kind == exit_kind::error; }
  [[nodiscard]] bool is_stopped() const noexcept { return form_.kind == exit_kind::stopped; }
  [[nodiscard]] bool is_killed() const noexcept { return form_.kind == exit_kind::killed; }
  // is_shutdown: with or without a detail.
  [[nodiscard]] bool is_shutdown() const noexcept { return form_.kind == exit_kind::shutdown; }
  // is_orderly: normal, or a shutdown: the ends that need no report and no restart of a transient
  // child.
  [[nodiscard]] bool is_orderly() const noexcept { return is_normal() || is_shutdown(); }

  // exception is the exception that ended the actor; null unless the kind is error.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept;
  // type_name is the C++ type of that exception, as people write it; empty unless an error.
  [[nodiscard]] std::string type_name() const;
  // text is what() of that exception, where it is a std::exception; otherwise empty.
  [[nodiscard]] std::string text() const;
  // stack is where that exception was thrown (or thrown again last): return addresses, the deepest
  // function's first, 32 at most. Empty unless an error, where the exception did not end an actor
  // by leaving its function or a server's handler, and where there was no memory to keep it.
  // Any thread; valid as long as the reason or a copy of it.
  [[nodiscard]] std::span<void* const> stack() const noexcept;
  // stack_text is the same for people: a line a function, the deepest first, each ended by '\n':
  // "parse(char const*) at source.cpp:12", or what of that is known, else module and offset. The
  // first one of a process reads its debug information: tenths of a second for 10 MB. It is
  // worked out on a thread of its own, for which the caller's scheduler waits, since the stack of
  // an actor may be too small for it. Empty where stack() is, and where no thread can be had.
  [[nodiscard]] std::string stack_text() const;

  // detail is what a custom reason is, or what a shutdown carries; null where there is none.
  [[nodiscard]] const term* detail() const noexcept;
  // is tells whether this is the user's reason atom(name).
  [[nodiscard]] bool is(std::string_view name) const noexcept {
    const term* const value = detail();
    return form_.kind == exit_kind::custom && value->is_atom(name);
  }

  // to_term is the reason as a term: an atom, {shutdown,Detail}, {error,Type,Text} for an
  // exception, or the user's own.
  [[nodiscard]] term to_term() const;

  // message is one line for people: the term, but "failed: what()" for an exception and "no such
  // actor" for noproc.
  [[nodiscard]] std::string message() const;

  friend bool operator==(const exit_reason& left, const exit_reason& right) noexcept;

  // swap trades the two reasons; what they hold is one word that may be moved as bytes.
  void swap(exit_reason& other) noexcept;

 private:
  friend class detail::captured_stack;

  // What shutdown and custom carry; counted by reference, so that copies cost no allocation and
  // a reason can be handed on at an actor's end whatever the state of memory.
  struct shared_term;
  static shared_term* share(shared_term& shared) noexcept;
  static void drop(shared_term& shared) noexcept;

  void share_error(const exit_reason& other) noexcept;
  void drop_error() noexcept;

  explicit exit_reason(exit_kind kind) noexcept : form_{kind} {}
  exit_reason(exit_kind kind, const term& detail);

  // Which member lives: for errors error_, or traced_, which has the exception and its stack; else
  // detail_, which may be null.
  union {
    std::exception_ptr error_;
    detail::captured_stack* traced_;
    shared_term* detail_ = nullptr;
  };
  struct form {
    exit_kind kind = exit_kind::normal;
    bool has_stack = false;
  };
  form form_;
};

static_assert(sizeof(exit_reason) == 16);

inline void exit_reason::swap(exit_reason& other) noexcept {
  // SAFETY: an exception_ptr is one pointer that may be relocated: it knows nothing of its address.
  static_assert(sizeof(std::exception_ptr) == sizeof(shared_term*));
  std::byte mine[sizeof(std::exception_ptr)];
  std::memcpy(mine, static_cast<const void*>(&detail_), sizeof mine);
  std::memcpy(static_cast<void*>(&detail_), static_cast<const void*>(&other.detail_), sizeof mine);
  std::memcpy(static_cast<void*>(&other.detail_), mine, sizeof mine);
  std::swap(form_, other.form_);
}

// exit_request is what exit(reason) throws: it ends the actor with that reason, unless somebody
// catches it on the way, as one may in Erlang. It is no std::exception, so handlers for errors let
// it pass.
struct exit_request {
  exit_reason why;
};

// to_string is message().
[[nodiscard]] inline std::string to_string(const exit_reason& why) { return why.message(); }

}  // namespace smarm
