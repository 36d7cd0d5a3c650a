// The count by which a run ends under the checker: the verdict, spawns from outside, operations and
// pins.
//
// Proves, for one or two schedulers that would end the run and one or two foreign threads:
//   - when the verdict has been spoken no actor lives and no operation is outstanding, and what
//     they did comes before it;
//   - a spawn from outside is counted or refused, and a refused one finds the run over;
//   - an operation that was the last thing has its end noticed by a scheduler, or wakes one;
//   - the parts of a runtime go when no foreign thread is about to use them, and whoever comes
//   later
//     touches the pins alone.
// Outside: more than one run of a core, limits of the counts.
#include <array>
#include <optional>

#include "sched/run_life.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using admission = run_life::admission;

constexpr std::size_t plenty = 8;

// An actor is spawned from outside, starts an operation and ends, all between two steps of the
// verdict.
PROTOCOL(life_verdict_against_spawn_from_outside) {
  run_life life;
  bool over = false;
  bool in_hand = false;
  model::parallel([&] { over = life.try_end(); },
                  [&] {
                    const admission answer = life.admit(false, plenty);
                    if (answer == admission::ended) return;
                    model::expect(answer == admission::admitted, "there is room");
                    life.operation_started();
                    life.discharge();
                    in_hand = true;
                  });
  model::expect(!over || !in_hand, "a run ends when nothing is outstanding");
  model::expect(over || in_hand, "either the run ends or the spawn is admitted");
}

// The last actor ends on one scheduler while another one looks: what it did comes before the end.
PROTOCOL(life_exit_against_verdict) {
  run_life life;
  model::cell<int> result{0};
  model::expect(life.admit(false, plenty) == admission::admitted);
  int verdicts = 0;
  model::parallel(
      [&] {
        if (!life.try_end()) return;
        model::expect(result.read() == 1, "what the actor did");
        ++verdicts;
      },
      [&] {
        result.write(1);
        life.discharge();
        model::expect(life.try_end(), "nothing keeps the run going");
      });
  model::expect(verdicts <= 1);
}

// The operation's end is the run's, on whichever side.
PROTOCOL(life_operation_against_verdict) {
  run_life life;
  model::cell<int> result{0};
  model::expect(life.admit(false, plenty) == admission::admitted);
  life.operation_started();
  life.discharge();
  bool over = false;
  bool wakes = false;
  model::parallel(
      [&] {
        over = life.try_end();
        if (over) model::expect(result.read() == 1, "what the operation did");
      },
      [&] {
        result.write(1);
        wakes = life.operation_finished();
      });
  model::expect(wakes, "whoever saw it outstanding and sleeps is woken");
  model::expect(over || life.try_end(), "nothing keeps the run going");
}

// An actor spawns another, both end, and the scheduler gives back what it has to spare; another
// scheduler, on which an actor ends too, asks for the verdict meanwhile.
PROTOCOL(life_spare_counts_against_verdict) {
  constexpr std::size_t many = 1024;
  run_life life;
  run_life::share mine(life, many, 2);
  run_life::share other(life, many, 2);
  std::array<model::cell<int>, 2> results{model::cell<int>{0}, model::cell<int>{0}};
  model::expect(life.admit(false, many) == admission::admitted);
  model::expect(life.admit(false, many) == admission::admitted);
  int verdicts = 0;
  const auto ask = [&] {
    if (!life.try_end()) return;
    model::expect(results[0].read() == 1 && results[1].read() == 1, "what the actors did");
    ++verdicts;
  };
  model::parallel(
      [&] {
        model::expect(mine.admit() == admission::admitted, "there is room");
        mine.discharge();
        results[0].write(1);
        mine.discharge();
        mine.give_back();
        ask();
      },
      [&] {
        results[1].write(1);
        other.discharge();
        other.give_back();
        ask();
      });
  model::expect(verdicts >= 1, "the last one ends the run");
  model::expect(life.actors() == 0 && mine.spare() == 0 && other.spare() == 0);
}

// Where few may live each is counted at once, so that no room is held by who does not use it.
PROTOCOL(life_nothing_to_spare_where_few_may_live) {
  run_life life;
  run_life::share mine(life, 2, 2);
  run_life::share other(life, 2, 2);
  model::expect(life.admit(false, 2) == admission::admitted);
  admission answers[2] = {};
  model::parallel([&] { answers[0] = mine.admit(); }, [&] { answers[1] = other.admit(); });
  const int admitted = (answers[0] == admission::admitted) + (answers[1] == admission::admitted);
  model::expect(admitted <= 1 && life.actors() == 1U + admitted, "one of two has room");
}

PROTOCOL(life_two_exits) {
  run_life life;
  model::expect(life.admit(false, plenty) == admission::admitted);
  model::expect(life.admit(false, plenty) == admission::admitted);
  model::parallel([&] { life.discharge(); }, [&] { life.discharge(); });
  model::expect(life.actors() == 0 && life.try_end(), "both are counted out");
}

PROTOCOL(life_room_for_one) {
  run_life life;
  admission answers[2] = {};
  model::parallel([&] { answers[0] = life.admit(false, 1); },
                  [&] { answers[1] = life.admit(false, 1); });
  const int admitted = (answers[0] == admission::admitted) + (answers[1] == admission::admitted);
  model::expect(admitted == 1 && life.actors() == 1, "one of two has room");
}

PROTOCOL(life_reopened_for_the_next_run) {
  run_life life;
  model::cell<int> core{0};
  model::expect(life.try_end(), "an empty run ends");
  admission answer{};
  model::parallel(
      [&] {
        core.write(1);
        life.reopen();
      },
      [&] {
        answer = life.admit(false, plenty);
        if (answer == admission::admitted) model::expect(core.read() == 1, "a core at rest");
      });
  model::expect(answer != admission::full);
}

// parts stand for what a runtime takes down at its end.
struct parts {
  model::cell<int> queue{0};
};

// Two wake one actor, whose end is the end of the run: the one from outside pins, and uses the
// parts only if its wake was the one that counted.
PROTOCOL(life_pin_against_the_end) {
  under_model::stage here;
  actor who;
  who.state.try_claim();
  const std::uint64_t ticket = who.state.begin_wait(false);
  model::expect(who.state.park_return() == slot_state::park_end::parked);
  run_life life;
  model::expect(life.admit(false, plenty) == admission::admitted);
  std::optional<parts> all(std::in_place);
  model::parallel(
      [&] {
        // The scheduler: another actor of it wakes this one, or finds it woken; it runs and ends.
        if (who.state.unpark(ticket) != slot_state::unparked::must_enqueue) {
          who.tokens.await([](std::uint32_t now) { return now != 0; }, acquire);
        }
        who.state.try_claim();
        who.state.set_done();
        static_cast<void>(who.state.reclaim());
        life.discharge();
        model::expect(life.try_end(), "no actor lives");
        while (life.is_pinned()) model::pause();
        all.reset();
      },
      [&] {
        const run_life::pin pin(life);
        if (who.state.unpark(ticket) == slot_state::unparked::must_enqueue) {
          static_cast<void>(all->queue.read());
          who.enqueue();
        }
      });
}

}  // namespace
}  // namespace smarm::detail
