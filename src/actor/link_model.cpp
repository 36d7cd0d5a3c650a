// Links and exit signals under the checker, by their public face.
//
// Proves, for two actors:
//   - who links to an actor that ends at that moment hears of it once: its reason, or noproc;
//   - after unlink no signal of that link comes, and one that came before is in the mailbox;
//   - one that links while the other unlinks: the halves agree;
//   - both end at once: nothing is left, each half is freed once;
//   - two that link to each other at once have one link, and one unlink takes it away;
//   - a signal wakes a receive that waits for it; one that cannot be trapped ends it with its
//     reason, and of several the first stands, but for a kill;
//   - a normal end is told to those only who trap exits, and to oneself.
// Actors are model threads (tests/model/actors.hpp); their exit is tests/model/exits.hpp.
// Outside: more than two actors, tables that grow, the exit's pauses.
#include <optional>

#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::finish;
using under_model::stage;
using under_model::with_box;

// two_actors are introduced to each other as 1 and 2.
struct two_actors {
  under_model::shared_actors shared;
  actor first;
  actor second;

  two_actors() {
    stage::introduce(first, 1);
    stage::introduce(second, 2);
    with_box(first);
    with_box(second);
  }
};

const exit_reason& last_words() {
  static const exit_reason why = exit_reason::shutdown();
  return why;
}

std::optional<exit_reason> signal_now() {
  return receive([](exit_signal s) { return std::optional(std::move(s.reason)); },
                 after(deadline::from_ns(0), [] { return std::optional<exit_reason>(); }));
}

void run_and_end(stage& here, actor& who) {
  here.run(who, [] {});
  finish(who, last_words());
}

PROTOCOL(link_against_exit) {
  stage here;
  two_actors of;
  model::parallel(
      [&] {
        here.run(of.first, [&] {
          trap_exit(true);
          model::expect(link(of.second.who()).has_value(), "who traps exits gets no error");
          const exit_signal heard = receive<exit_signal>();
          model::expect(heard.reason == last_words() || heard.reason == exit_reason::noproc());
          model::expect(!signal_now(), "and hears it once");
        });
        finish(of.first, last_words());
      },
      [&] { run_and_end(here, of.second); });
}

PROTOCOL_WITH(link_without_trapping_against_exit, SAMPLED_IN_THE_SUITE) {
  stage here;
  two_actors of;
  model::parallel(
      [&] {
        bool told = false;
        const ending how = here.run(of.first, [&] {
          told = !link(of.second.who()).has_value();
          if (!told) static_cast<void>(receive<int>());
        });
        model::expect(told == (how == ending::normal), "an error, or the signal ends it");
        finish(of.first, last_words());
      },
      [&] { run_and_end(here, of.second); });
}

PROTOCOL(link_unlinked_against_exit) {
  stage here;
  two_actors of;
  const pid second = of.second.who();
  here.run(of.first, [&] {
    trap_exit(true);
    static_cast<void>(link(second));
    model::parallel(
        [&] {
          under_model::run_as(&of.first);
          unlink(second);
          const bool came_before = signal_now().has_value();
          model::expect(!is_linked(second));
          static_cast<void>(came_before);
          under_model::run_as(nullptr);
        },
        [&] { run_and_end(here, of.second); });
    model::expect(!signal_now(), "none comes after unlink");
  });
  finish(of.first, last_words());
}

PROTOCOL(link_of_one_against_unlink_of_the_other) {
  stage here;
  two_actors of;
  const pid first = of.first.who();
  const pid second = of.second.who();
  here.run(of.first, [&] {
    here.run(of.second, [&] {
      model::parallel(
          [&] {
            under_model::run_as(&of.first);
            static_cast<void>(link(second));
            under_model::run_as(nullptr);
          },
          [&] {
            under_model::run_as(&of.second);
            unlink(first);
            under_model::run_as(nullptr);
          });
      under_model::run_as(&of.first);
      const bool mine = is_linked(second);
      under_model::run_as(&of.second);
      model::expect(is_linked(first) == mine, "the halves agree");
    });
  });
  finish(of.second, exit_reason::normal());
  finish(of.first, exit_reason::normal());
}

PROTOCOL(link_of_both_at_once) {
  stage here;
  two_actors of;
  const pid first = of.first.who();
  const pid second = of.second.who();
  here.run(of.first, [&] {
    here.run(of.second, [&] {
      model::parallel(
          [&] {
            under_model::run_as(&of.first);
            model::expect(link(second).has_value(), "it lives");
            under_model::run_as(nullptr);
          },
          [&] {
            under_model::run_as(&of.second);
            model::expect(link(first).has_value(), "it lives");
            under_model::run_as(nullptr);
          });
      under_model::run_as(&of.first);
      model::expect(is_linked(second), "linked");
      unlink(second);
      model::expect(!is_linked(second), "and no more");
      under_model::run_as(&of.second);
      model::expect(!is_linked(first), "it was one link");
    });
  });
  finish(of.second, exit_reason::normal());
  finish(of.first, exit_reason::normal());
}

// One after the other: who is linked twice, or to himself, and whose peer ends in good order.
PROTOCOL(link_of_a_normal_end) {
  stage here;
  two_actors of;
  const pid first = of.first.who();
  const pid second = of.second.who();
  const ending how = here.run(of.first, [&] {
    model::expect(link(first).has_value() && !is_linked(first), "nobody is tied to himself");
    unlink(second);
    model::expect(link(second).has_value() && link(second).has_value(), "it lives");
    model::expect(is_linked(second), "linked");
    here.run(of.second, [] {});
    finish(of.second, exit_reason::normal());
    under_model::run_as(&of.first);
    model::expect(!is_linked(second), "the link has gone with the other end");
    detail::stop_point();
    model::expect(!link(second).has_value(), "nobody is there, and an error says so");
    trap_exit(true);
    model::expect(link(second).has_value(), "who traps exits gets a signal in its place");
    model::expect(receive<exit_signal>() == exit_signal{second, exit_reason::noproc()});
    model::expect(!is_linked(second) && mailbox_size() == 0, "once");
  });
  model::expect(how == ending::normal, "a normal end ends nobody else");
  finish(of.first, last_words());
}

PROTOCOL(link_of_a_normal_end_that_is_trapped) {
  stage here;
  two_actors of;
  const pid second = of.second.who();
  model::parallel(
      [&] {
        here.run(of.first, [&] {
          trap_exit(true);
          static_cast<void>(link(second));
          const exit_signal heard = receive<exit_signal>();
          model::expect(heard.from == second, "who it was");
          model::expect(heard.reason.is_normal() || heard.reason == exit_reason::noproc());
        });
        finish(of.first, last_words());
      },
      [&] {
        here.run(of.second, [] {});
        finish(of.second, exit_reason::normal());
      });
}

PROTOCOL(link_of_two_that_end_at_once) {
  stage here;
  two_actors of;
  here.run(of.first, [&] { static_cast<void>(link(of.second.who())); });
  model::parallel([&] { finish(of.first, last_words()); }, [&] { run_and_end(here, of.second); });
}

PROTOCOL(exit_signal_against_receive) {
  stage here;
  two_actors of;
  model::parallel(
      [&] {
        const ending how = here.run(of.first, [&] { static_cast<void>(receive<int>()); });
        model::expect(how == ending::stopped, "the signal ends it");
        detail::actor_extension* const extension = of.first.extension.load(detail::relaxed);
        model::expect(extension->stop_reason() == last_words(), "with its reason");
        finish(of.first, last_words());
      },
      [&] { exit(of.first.who(), last_words()); });
  run_and_end(here, of.second);
}

PROTOCOL(exit_signal_against_trap) {
  stage here;
  two_actors of;
  model::parallel(
      [&] {
        const ending how = here.run(of.first, [&] {
          trap_exit(true);
          model::expect(receive<exit_signal>().reason == last_words());
        });
        static_cast<void>(how);
        finish(of.first, last_words());
      },
      [&] { exit(of.first.who(), last_words()); });
  run_and_end(here, of.second);
}

// reason_of_stop is what the exit would report.
exit_reason reason_of_stop(actor& who) {
  return who.extension.load(detail::relaxed)->stop_reason();
}

PROTOCOL(exit_signals_in_turn) {
  stage here;
  two_actors of;
  const pid first = of.first.who();
  bool went_on = false;
  const ending how = here.run(of.first, [&] {
    under_model::run_as(nullptr);
    exit(first, exit_reason::normal());
    under_model::run_as(&of.first);
    detail::stop_point();
    here.run(of.second, [&] {
      under_model::stop(of.second);
      exit(first, last_words());
      exit(first, exit_reason::noproc());
      model::expect(reason_of_stop(of.first) == last_words(), "the first reason stands");
      kill(first);
      model::expect(reason_of_stop(of.first).is_killed(), "but for a kill");
      model::expect(request_stop(first).has_value(), "it lives, and may be told again");
      went_on = true;
    });
    model::expect(went_on, "who sends a signal to others comes to no stop point");
    under_model::run_as(&of.first);
    detail::stop_point();
    went_on = false;
  });
  model::expect(how == ending::stopped && went_on, "a normal signal ends nobody, the others do");
  finish(of.first, exit_reason::killed());
  finish(of.second, last_words());
}

PROTOCOL(exit_signal_to_oneself) {
  stage here;
  two_actors of;
  bool went_on = false;
  const ending how = here.run(of.first, [&] {
    trap_exit(true);
    exit(self(), exit_reason::normal());
    model::expect(receive<exit_signal>() == exit_signal{self(), exit_reason::normal()});
    model::expect(trap_exit(false), "it trapped them");
    exit(self(), exit_reason::normal());
    went_on = true;
  });
  model::expect(how == ending::stopped && !went_on, "ends it there");
  model::expect(reason_of_stop(of.first).is_normal(), "with its reason");
  finish(of.first, exit_reason::normal());
  went_on = false;
  here.run(of.second, [&] {
    kill(self());
    went_on = true;
  });
  model::expect(!went_on, "a kill of oneself too");
  finish(of.second, exit_reason::killed());
}

PROTOCOL(exit_kill_against_receive) {
  stage here;
  two_actors of;
  model::parallel(
      [&] {
        const ending how = here.run(of.first, [] {
          trap_exit(true);
          static_cast<void>(receive<exit_signal>());
        });
        model::expect(how == ending::stopped, "a kill cannot be trapped");
        model::expect(reason_of_stop(of.first).is_killed(), "and says so");
        finish(of.first, exit_reason::killed());
      },
      [&] { kill(of.first.who()); });
  run_and_end(here, of.second);
}

PROTOCOL(exit_kill_against_exit) {
  stage here;
  two_actors of;
  model::parallel([&] { run_and_end(here, of.first); },
                  [&] {
                    kill(of.first.who());
                    exit(of.first.who(), last_words());
                  });
  run_and_end(here, of.second);
}

}  // namespace
}  // namespace smarm
