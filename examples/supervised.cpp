// supervised: a service that is crashed from the keyboard and comes back. A supervisor keeps a
// store and a counter that depends on it: when the store fails, both are started again; when the
// counter fails, only it is.
//
// It reads lines: "crash store", "crash counter", "tree" and "quit". Crashes faster than ten in a
// second are too many for the supervisor, and the program ends.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include <smarm/smarm.hpp>

using namespace std::chrono_literals;

namespace {

struct crash {};

// A server that does nothing but fail when it is told to.
smarm::child_spec server(const std::string& name) {
  const auto serve = [name](smarm::starting& me) {
    std::printf("%s starts\n", name.c_str());
    me.ready();
    (void)smarm::receive<crash>();
    throw std::runtime_error("told to crash");
  };
  smarm::child_spec spec{.id = smarm::atom(name)};
  spec.start = [name, serve] { return smarm::start_link({.name = name}, serve); };
  return spec;
}

// The lines of standard input. It waits without blocking a scheduler, and a stop ends the wait.
class lines {
 public:
  std::optional<std::string> next() {
    for (;;) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      std::array<char, 256> some;
      if (!smarm::wait_readable(STDIN_FILENO)) return std::nullopt;
      const auto size =
          smarm::blocking([&] { return read(STDIN_FILENO, some.data(), some.size()); });
      if (size <= 0) return std::nullopt;
      read_.append(some.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  std::string read_;
};

// Returns when the supervisor has started all that it keeps, or has ended.
void wait_until_up() {
  const auto is_up = [] { return smarm::whereis("store") && smarm::whereis("counter"); };
  while (!is_up() && smarm::whereis("top")) smarm::sleep_for(1ms);
}

// Sends the crash, and returns when the supervisor has dealt with it.
void crash_and_wait(const std::string& name) {
  const auto victim = smarm::whereis(name);
  if (!victim) return;
  auto watch = smarm::monitor(*victim);
  smarm::send(*victim, crash{});
  (void)watch.recv();
  wait_until_up();
}

// The keyboard is a child too: it is significant, and its end ends the tree.
void read_commands(smarm::starting& me) {
  me.ready();
  wait_until_up();  // the others are started after this one
  lines input;
  while (const auto line = input.next()) {
    if (*line == "quit") break;
    if (*line == "tree") std::printf("%s", smarm::supervisor_ref("top").explain().c_str());
    if (line->starts_with("crash ")) crash_and_wait(line->substr(6));
    std::fflush(stdout);
  }
  std::printf("bye\n");
}

}  // namespace

int main() {
  smarm::child_spec keyboard{.id = smarm::atom("keyboard")};
  keyboard.start = [] { return smarm::start_link({.name = "keyboard"}, read_commands); };
  keyboard.restart = smarm::child_restart::transient;
  keyboard.significant = true;
  const smarm::supervisor_flags flags{
      .strategy = smarm::restart_strategy::rest_for_one,
      .intensity = 10,
      .period = 1s,
      .auto_shutdown = smarm::auto_shutdown_kind::any_significant,
      .name = "top",
  };
  // The keyboard stands first, so that it does not go with the others.
  return smarm::run_application(flags, {keyboard, server("store"), server("counter")},
                                {.shutdown_is_success = true});
}
