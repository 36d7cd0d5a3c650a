// Links and exit signals: how actors fail together, as in Erlang.
//
// A link ties two actors: when one ends, the other gets an exit signal with the reason. An exit
// signal ends whoever gets it, with that same reason; one with the reason normal is ignored. An
// actor that traps exits gets the signal as a message in its mailbox instead:
//
//   smarm::trap_exit(true);
//   smarm::spawn({.name = "worker", .ties = smarm::linked}, work).detach();
//   auto gone = smarm::receive<smarm::exit_signal>();   // who it was, and why
//
// A signal ends an actor as request_stop does: at its next stop point, by an unwind that runs every
// destructor, and that a stop_shield holds off. A kill ends those too who trap exits, and what is
// told of them is `killed`. Signals and messages from one actor to another arrive in the order in
// which they were sent; a bounded mailbox takes every signal.
//
// Differences from Erlang: an actor that computes without a stop point is not ended until it comes
// to one. request_stop is a signal that cannot be trapped and leaves the reason `stopped`.
//
// Sources: Erlang reference manual, "Processes"; erlang(3): link/1, unlink/1, exit/2,
// process_flag/2.
#pragma once

#include <concepts>
#include <utility>

#include <smarm/errors.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/monitor.hpp>
#include <smarm/pid.hpp>
#include <smarm/spawn.hpp>

namespace smarm {

// exit_signal is what an actor that traps exits receives. From a thread that is no actor, `from`
// is nobody.
struct exit_signal {
  pid from;
  exit_reason reason;
  friend bool operator==(const exit_signal&, const exit_signal&) noexcept = default;
};

// exit ends the calling actor with that reason, by an exception of type exit_request. Throws misuse
// on a thread that is no actor. Never parks.
[[noreturn]] void exit(exit_reason why);

// exit sends an exit signal, as if from a link of the caller's, but for the reason atom("kill"),
// which is a kill (and which can be trapped where it comes from a link). Nothing happens where
// there is no such actor. An actor may send one to itself: unless it traps exits that ends it here,
// also with the reason normal. Any thread; never parks; a stop point only where it is sent to
// oneself.
void exit(pid who, const exit_reason& why);

// kill sends the signal that cannot be trapped; the actor ends as `killed`. Otherwise as exit.
void kill(pid who);

// trap_exit says whether the calling actor gets exit signals as messages from now on, and returns
// what it was before. Throws misuse on a thread that is no actor. Never parks.
bool trap_exit(bool on);

// link ties the calling actor to another; there is one link between two actors at most, and none
// to oneself. Where there is no such actor: a caller that traps exits gets an exit_signal with
// noproc, and one that does not gets the error. Throws misuse on a thread that is no actor. Never
// parks; no stop point.
std::expected<void, no_such_actor> link(pid who);

// unlink takes the link away, whoever made it. When it returns no exit signal of that link will
// arrive any more; one may already be in the mailbox. Throws misuse on a thread that is no actor.
// Never parks; no stop point.
void unlink(pid who);

// is_linked tells whether the calling actor is linked to that one. Never parks.
[[nodiscard]] bool is_linked(pid who);

namespace detail {

[[nodiscard]] std::unique_ptr<birth> make_bonds(bonds which);

// birth_monitor monitors the actor that a spawn makes.
class birth_monitor {
 public:
  birth_monitor(bool with_link);
  birth_monitor(const birth_monitor&) = delete;
  birth_monitor& operator=(const birth_monitor&) = delete;
  ~birth_monitor();

  [[nodiscard]] birth* attendant() noexcept { return birth_.get(); }
  // watch is the monitor, when the spawn has succeeded.
  [[nodiscard]] monitor_ref watch() noexcept { return std::move(watch_); }

 private:
  std::unique_ptr<birth> birth_;
  monitor_ref watch_;
};

}  // namespace detail

// linked and monitored are ties for spawn_options: made before the new actor can run. A monitored
// actor's down comes to the spawner's mailbox.
inline constexpr bonds linked{&detail::make_bonds, true, false};
inline constexpr bonds monitored{&detail::make_bonds, false, true};

// spawn_link is spawn with a link to the caller.
template <std::invocable F>
auto spawn_link(F&& f) {
  return smarm::spawn({.name = {}, .stack_size = 0, .ties = linked}, std::forward<F>(f));
}

// spawn_monitor is spawn with a monitor that delivers into the caller's mailbox: the handle and the
// monitor, as a pair.
template <std::invocable F>
auto spawn_monitor(spawn_options options, F&& f) {
  detail::birth_monitor ties(options.ties.linked);
  auto started =
      detail::spawn_on(nullptr, std::move(options), std::forward<F>(f), ties.attendant());
  if (!started) throw std::system_error(started.error(), "smarm::spawn_monitor");
  return std::pair(std::move(*started), ties.watch());
}
template <std::invocable F>
auto spawn_monitor(F&& f) {
  return smarm::spawn_monitor(spawn_options{}, std::forward<F>(f));
}

}  // namespace smarm
