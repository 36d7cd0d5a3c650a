// The error types that several parts of the public surface share.
//
// What happens in normal running comes back as a value (std::expected); misuse of the library is an
// exception derived from std::logic_error; a broken core prints one line and aborts.
#pragma once

#include <stdexcept>
#include <string>

#include <smarm/pid.hpp>

namespace smarm {

// no_such_actor answers every call that was given a pid under which nobody lives: one that has
// ended, a forged one, or (inside an actor) one of another runtime.
struct no_such_actor {
  pid who;
  friend bool operator==(const no_such_actor&, const no_such_actor&) noexcept = default;
};

[[nodiscard]] inline std::string to_string(const no_such_actor& error) {
  return "no such actor: " + to_string(error.who);
}

// misuse is thrown where a call makes no sense where it was made: self() on a thread that is no
// actor, run() inside an actor, join() on an empty handle.
class misuse : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// config_error names the field of config that is out of range, its value and the allowed range.
class config_error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace smarm
