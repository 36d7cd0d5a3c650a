// The loop of a scheduler under the checker: the production picker, with queue, coordinator, timers
// and the count of the run's life, and one to three threads that run it to the run's end.
//
// Proves, where a deadlock of the model is an actor that nobody runs or a run that does not end:
//   - an actor that was spawned, woken or stopped, from inside or outside, runs, once for each
//   time;
//   - when the last actor has ended all schedulers leave, whether they sleep, are about to, or
//   look;
//   - a spawn from outside is run or refused; a waker of another thread is through with a runtime
//     before it is taken down;
//   - an operation in a driver's hands keeps the run going, and its end ends it;
//   - a deadline that an actor waits for is met, by whichever scheduler;
//   - what lies in run-next, or in the queue, or in the wheel, behind an actor that computes on, is
//     found by another scheduler;
//   - two actors that need each other at the same time get two schedulers.
// One scheduler: exhaustive, but for two wakes. Two: SAMPLED, as the whole loop of two has more
// executions than can be visited: 1,500 random ones of each model, the same in every run; what two
// schedulers do to each other stands step by step in coordinator_model.cpp, exhaustive. Bounds: two
// schedulers, one or two actors. A watcher looks every few milliseconds for ever, so one that has
// looked twice is not followed further, unless something is stuck: then its third look is late, and
// fails. Actors here are steps and not functions with a stack: the switch is left out, and what
// scheduler.cpp does before and after it is done in the same order (office::run). Outside: more
// schedulers; migration in debug builds; the mpmc queue, which has its own models.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "sched/picker.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

#define SAMPLED o.mode = model::search_mode::random, o.runs = 1'500

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::stage;

enum class leaving : std::uint8_t { parking, yielding, ended };

// player is an actor whose turns are calls of `turn`, with how many came before.
struct player : actor {
  std::function<leaving(int)> turn;
  int turns = 0;
};

struct test_picker final : picker {
  using picker::picker;
};

// errand is what one actor leaves stuck behind itself, by computing on until another one has run.
struct errand {
  atomic<int> stuck{0};
  atomic<int> done{0};

  void begin() {
    stuck.store(1, release);
    done.await([](int now) { return now == 1; }, relaxed);
  }
  void finish() { done.store(1, relaxed); }
  // is_pending: it is stuck for all that the caller knows, who is the only one to mend that.
  [[nodiscard]] bool is_pending() const {
    return stuck.load(acquire) == 1 && done.load(relaxed) == 0;
  }
};

constexpr unsigned looks_max = 2;

class office;
std::array<picker*, model::threads_max> picker_of_thread;
office* the_office = nullptr;

[[nodiscard]] picker*& picker_here() {
  return picker_of_thread[model::engine::current()->thread()];
}

// office is a runtime: its schedulers are the threads that call run.
class office final : private idle_duties {
 public:
  explicit office(unsigned schedulers) {
    const config how{
        .schedulers = schedulers, .run_queue = run_queue_kind::locked, .max_actors = 1024};
    work.emplace(how, schedulers, life, static_cast<idle_duties&>(*this));
    work->queue.reserve(4);
    for (unsigned i = 0; i < schedulers; ++i) {
      pickers_[i] = std::make_unique<test_picker>(*work, i, schedulers);
      work->pickers.push_back(pickers_[i].get());
    }
    picker_of_thread = {};
    the_office = this;
    stage::deliver_by([](actor& runnable) { the_office->deliver(runnable); });
  }
  ~office() { model::expect(life.actors() == 0, "nobody is left"); }
  office(const office&) = delete;
  office& operator=(const office&) = delete;

  // start makes an actor runnable before the schedulers run.
  void start(player& fresh) {
    model::expect(life.admit(false, 4) == run_life::admission::admitted);
    work->queue.push_from_outside(fresh);
  }

  // spawn does so from the outside, while they run; false: the run is over.
  [[nodiscard]] bool spawn(player& fresh) {
    if (life.admit(false, 4) != run_life::admission::admitted) return false;
    work->enqueue_from_outside(fresh);
    return true;
  }

  // run is a scheduler, to the end of the run.
  void run(unsigned index) {
    picker& self = *pickers_[index];
    picker_here() = &self;
    slot* next = nullptr;
    for (;;) {
      if (next == nullptr) next = self.next_or_end();
      if (next == nullptr) break;
      next = take_turn(self, static_cast<player&>(*next));
    }
    picker_here() = nullptr;
  }

  // take_down is the end of the runtime, when its threads have ended: by one of them.
  void take_down() {
    while (life.is_pinned()) model::pause();
    for (auto& each : pickers_) each.reset();
    work.reset();
  }

  run_life life;
  std::optional<workplace> work;
  const errand* watched_for = nullptr;

 private:
  void deliver(actor& runnable) {
    if (picker* const here = picker_here()) {
      here->schedule(runnable);
    } else {
      work->enqueue_from_outside(runnable);
    }
  }

  slot* take_turn(picker& self, player& who) {
    under_model::run_as(&who);
    leaving how{};
    do {
      how = who.turn(who.turns++);
    } while (how == leaving::parking && who.state.consume_notification());
    under_model::run_as(nullptr);
    if (how == leaving::ended) {
      who.state.set_done();
      static_cast<void>(who.state.reclaim());
    }
    slot* const next = self.pick_next();
    switch (how) {
      case leaving::parking:
        who.wait_opened = false;
        if (who.state.park_return() == slot_state::park_end::must_enqueue) self.schedule(who);
        break;
      case leaving::yielding:
        who.state.yield_return();
        self.enqueue(who);
        break;
      case leaving::ended:
        self.discharge();
        break;
    }
    return next;
  }

  bool look_at_drivers() noexcept override { return false; }
  // A watcher asks before each of its sleeps, and a scheduler that is alone.
  std::int64_t return_surplus(std::int64_t) noexcept override {
    if (pickers_[1] == nullptr) return never_ns;
    if (watched_for != nullptr && watched_for->is_pending()) {
      model::expect(late_watches_++ <= looks_max, "two looks find what is stuck");
    } else {
      model::assume(watches_++ < looks_max);
    }
    return never_ns;
  }

  std::array<std::unique_ptr<test_picker>, 2> pickers_;
  unsigned watches_ = 0;
  unsigned late_watches_ = 0;
};

// ends runs once.
void end_at_once(player& who) {
  who.turn = [](int) { return leaving::ended; };
}

// sleeper waits some times, to be woken by a thread that is no scheduler, and ends.
struct sleeper : player {
  explicit sleeper(int waits = 1) {
    turn = [this, waits](int before) {
      if (before == waits) return leaving::ended;
      wait_ = begin_wait();
      opened_.store(before + 1, release);
      return leaving::parking;
    };
  }
  // wake_from_outside ends one wait after the other, up to the last that it is told.
  void wake_from_outside(office& at, int waits = 1) {
    for (int wait = 1; wait <= waits; ++wait) {
      opened_.await([wait](int now) { return now == wait; }, acquire);
      const run_life::pin pin(at.life);
      wait_.wake();
    }
  }

 private:
  waker wait_;
  atomic<int> opened_{0};
};

// heir leaves an operation behind, which a driver's thread ends.
struct heir : player {
  explicit heir(office& at) {
    turn = [this, &at](int) {
      at.life.operation_started();
      begun_.store(1, release);
      return leaving::ended;
    };
  }
  void finish_operation(office& at) {
    begun_.await([](int now) { return now == 1; }, acquire);
    done.write(1);
    if (at.life.operation_finished()) at.work->sleepers.wake_all();
  }
  model::cell<int> done{0};

 private:
  atomic<int> begun_{0};
};

PROTOCOL_WITH(picker_one_actor_ends, SAMPLED) {
  stage here;
  office at(2);
  player one;
  end_at_once(one);
  at.start(one);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
  model::expect(one.turns == 1, "it ran");
}

PROTOCOL_WITH(picker_one_actor_yields, SAMPLED) {
  stage here;
  office at(2);
  player one;
  one.turn = [](int turn) { return turn == 0 ? leaving::yielding : leaving::ended; };
  at.start(one);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
  model::expect(one.turns == 2, "it ran twice");
}

PROTOCOL(picker_spawn_from_outside) {
  stage here;
  office at(1);
  player one;
  end_at_once(one);
  bool admitted = false;
  model::parallel([&] { at.run(0); }, [&] { admitted = at.spawn(one); });
  model::expect(one.turns == (admitted ? 1 : 0), "it ran or was refused");
}

PROTOCOL_WITH(picker_spawn_from_outside_with_two_schedulers, SAMPLED) {
  stage here;
  office at(2);
  player one;
  end_at_once(one);
  bool admitted = false;
  model::parallel([&] { at.run(0); }, [&] { at.run(1); }, [&] { admitted = at.spawn(one); });
  model::expect(one.turns == (admitted ? 1 : 0), "it ran or was refused");
}

// The waker outlives the runtime: its pin keeps the parts until it is through.
PROTOCOL(picker_wake_from_outside) {
  stage here;
  office at(1);
  sleeper one;
  at.start(one);
  model::parallel(
      [&] {
        at.run(0);
        at.take_down();
      },
      [&] { one.wake_from_outside(at); });
  model::expect(one.turns == 2, "it was woken");
}

PROTOCOL_WITH(picker_wake_from_outside_with_two_schedulers, SAMPLED) {
  stage here;
  office at(2);
  sleeper one;
  at.start(one);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); }, [&] { one.wake_from_outside(at); });
  model::expect(one.turns == 2, "it was woken");
}

// Twice: a scheduler that has slept, searched and worked sleeps again.
PROTOCOL_WITH(picker_two_wakes_from_outside, SAMPLED, o.runs = 6'000) {
  stage here;
  office at(1);
  sleeper one(2);
  at.start(one);
  model::parallel(
      [&] {
        at.run(0);
        at.take_down();
      },
      [&] { one.wake_from_outside(at, 2); });
  model::expect(one.turns == 3, "it was woken twice");
}

// The stop of the last waiter ends the run.
PROTOCOL(picker_stop_of_the_last_waiter) {
  stage here;
  office at(1);
  player one;
  one.turn = [&](int) {
    if (one.state.peek().stop_requested()) return leaving::ended;
    static_cast<void>(begin_wait());
    return leaving::parking;
  };
  at.start(one);
  bool found = false;
  model::parallel(
      [&] {
        at.run(0);
        at.take_down();
      },
      [&] {
        const run_life::pin pin(at.life);
        found = under_model::stop(one);
      });
  model::expect(found, "it lived");
}

// An actor leaves an operation behind and ends: the run ends with the operation.
PROTOCOL(picker_operation_left_behind) {
  stage here;
  office at(1);
  heir one(at);
  at.start(one);
  model::parallel(
      [&] {
        at.run(0);
        model::expect(one.done.read() == 1, "the run ends after the operation");
      },
      [&] { one.finish_operation(at); });
}

PROTOCOL_WITH(picker_operation_left_behind_with_two_schedulers, SAMPLED) {
  stage here;
  office at(2);
  heir one(at);
  at.start(one);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); }, [&] { one.finish_operation(at); });
}

// Two actors that must run at the same time: each waits, without parking, for the other's turn.
PROTOCOL_WITH(picker_two_at_a_time, SAMPLED) {
  stage here;
  office at(2);
  std::array<player, 2> both;
  atomic<int> here_now{0};
  for (player& each : both) {
    each.turn = [&](int) {
      here_now.fetch_add(1, relaxed);
      here_now.await([](int now) { return now == 2; }, relaxed);
      return leaving::ended;
    };
    at.start(each);
  }
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
}

// dozer waits for a deadline once, and ends.
struct dozer : player {
  explicit dozer(office& at) {
    turn = [this, &at](int before) {
      if (before == 1) {
        static_cast<void>(at.work->timers.cancel(*alarm_));
        return leaving::ended;
      }
      alarm_.emplace(100, begin_wait());
      if (at.work->timers.insert(*alarm_)) picker_here()->note_deadline();
      return leaving::parking;
    };
  }

 private:
  std::optional<timer> alarm_;
};

// hog fills its scheduler's run-next with the other one and computes on until that one has run.
void fill_run_next(office& at, player& hog, player& other, errand& what) {
  at.watched_for = &what;
  hog.turn = [&](int) {
    picker_here()->schedule(other);
    what.begin();
    return leaving::ended;
  };
  other.turn = [&](int) {
    what.finish();
    return leaving::ended;
  };
  model::expect(at.life.admit(false, 4) == run_life::admission::admitted, "the other one lives");
}

// It lies in run-next, which wakes nobody.
PROTOCOL_WITH(picker_run_next_behind_one_that_computes, SAMPLED) {
  stage here;
  office at(2);
  player hog;
  player other;
  errand what;
  fill_run_next(at, hog, other, what);
  at.start(hog);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
}

// Schedulers that sleep are woken for such an actor: who watches must be somebody that does not
// work.
PROTOCOL_WITH(picker_run_next_of_one_from_outside, SAMPLED) {
  stage here;
  office at(2);
  player hog;
  player other;
  errand what;
  fill_run_next(at, hog, other, what);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); },
                  [&] { model::expect(at.spawn(hog), "an actor lives"); });
}

// An actor computes on until one has run that is spawned from outside meanwhile: another scheduler
// has to be woken for it, also if the first one was just woken itself.
PROTOCOL_WITH(picker_spawn_behind_one_that_computes, SAMPLED) {
  stage here;
  office at(2);
  player hog;
  player other;
  atomic<int> begun{0};
  atomic<int> ran{0};
  hog.turn = [&](int) {
    begun.store(1, relaxed);
    ran.await([](int now) { return now == 1; }, relaxed);
    return leaving::ended;
  };
  other.turn = [&](int) {
    ran.store(1, relaxed);
    return leaving::ended;
  };
  at.start(hog);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); },
                  [&] {
                    begun.await([](int now) { return now == 1; }, relaxed);
                    model::expect(at.spawn(other), "an actor lives");
                  });
}

// An actor waits for a deadline while another one computes on until it has come.
PROTOCOL_WITH(picker_deadline_behind_one_that_computes, SAMPLED) {
  stage here;
  office at(2);
  player hog;
  dozer one(at);
  errand what;
  at.watched_for = &what;
  one.turn = [&, doze = one.turn](int before) {
    const leaving how = doze(before);
    if (how == leaving::ended) what.finish();
    return how;
  };
  hog.turn = [&](int) {
    what.begin();
    return leaving::ended;
  };
  at.start(one);
  at.start(hog);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
}

PROTOCOL(picker_deadline_of_one_scheduler) {
  stage here;
  office at(1);
  dozer one(at);
  at.start(one);
  model::parallel([&] { at.run(0); });
  model::expect(one.turns == 2 && at.work->timers.size() == 0, "it was woken");
}

// An actor waits for a deadline: whoever sleeps towards it ends the wait, and the run.
PROTOCOL_WITH(picker_deadline, SAMPLED) {
  stage here;
  office at(2);
  dozer one(at);
  at.start(one);
  model::parallel([&] { at.run(0); }, [&] { at.run(1); });
  model::expect(one.turns == 2 && at.work->timers.size() == 0, "it was woken");
}

}  // namespace
}  // namespace smarm::detail
