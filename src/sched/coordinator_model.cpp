// The coordinator under the checker: how schedulers sleep and are woken, with two or three of them.
//
// Proves, where a deadlock of the model is a wake that was lost:
//   - work that was published before wake_one_if_idle is seen by who parks, or its producer wakes
//   one;
//   - the last searcher to find work wakes another one if more is left (chain rule);
//   - each wake_one wakes exactly one, also of sleepers in different words of the mask;
//   - a deadline that becomes the earliest while the keeper parks, or while two would be keeper, is
//     slept towards by somebody or has woken somebody; the role is handed on by a keeper that
//     works;
//   - a run-next that is filled while the watcher takes leave is seen by it, or its filler wakes
//   one;
//   - of two that park beside queued work because the other is awake, one stays.
// Bounds: each scheduler goes round its loop until what is published has been done; parkers are as
// parker_model.cpp proves them. The loops are those of picker::sleep, cut to what the model is
// about; the whole loop is under picker_model.cpp. Outside: time as such. Who sleeps towards the
// right moment counts as woken by it.
#include <array>

#include "sched/coordinator.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

// yard is a runtime of schedulers that take pieces of work from a count.
struct yard {
  yard(unsigned schedulers, unsigned cpus, int pieces)
      : sleepers(schedulers, cpus), wanted(pieces) {
    model::name(work, "work");
    model::name(taken, "taken");
  }

  // produce publishes a piece and wakes a scheduler if need be.
  void produce() {
    work.fetch_add(1, relaxed);
    sleepers.wake_one_if_idle();
  }

  [[nodiscard]] bool take() {
    int now = work.load(relaxed);
    while (now > 0) {
      if (work.compare_exchange_strong(now, now - 1, relaxed, relaxed)) return true;
    }
    return false;
  }

  // do_all takes pieces until all are done. `together`: a piece lasts until all have been taken, so
  // that each needs a scheduler of its own.
  void do_all(unsigned self, bool together) {
    bool searching = false;
    for (;;) {
      if (take()) {
        if (searching) {
          searching = false;
          sleepers.end_search([this] { return work.load(relaxed) != 0; });
        }
        finish(taken.fetch_add(1, relaxed) + 1, together);
        if (together) return;
        continue;
      }
      if (done.load(relaxed) != 0) break;
      sleepers.prepare_park(self, searching);
      searching = true;
      const bool look = work.load(relaxed) != 0 && !sleepers.enough_awake();
      if (look || done.load(relaxed) != 0) {
        sleepers.cancel_park(self);
      } else {
        static_cast<void>(sleepers.park(self, never_ns));
      }
    }
    if (searching) sleepers.end_search([] { return false; });
  }

  void finish(int count, bool together) {
    if (count == wanted) {
      done.store(1, relaxed);
      if (!together) sleepers.wake_all();
    } else if (together) {
      taken.await([this](int now) { return now == wanted; }, relaxed);
    }
  }

  coordinator sleepers;
  int wanted;
  atomic<int> work{0};
  atomic<int> taken{0};
  atomic<int> done{0};
};

PROTOCOL(coordinator_no_lost_wake) {
  yard here(1, 1, 1);
  model::parallel([&] { here.do_all(0, false); }, [&] { here.produce(); });
  model::expect(!here.sleepers.any_parked(), "who was woken is not parked");
}

PROTOCOL(coordinator_no_lost_wake_of_two_producers) {
  yard here(1, 1, 2);
  model::parallel([&] { here.do_all(0, false); }, [&] { here.produce(); }, [&] { here.produce(); });
  model::expect(!here.sleepers.any_parked(), "who was woken is not parked");
}

// One parks while another has been parked: the piece is for whoever of them comes first.
PROTOCOL(coordinator_two_parkers) {
  yard here(2, 2, 1);
  here.sleepers.prepare_park(1, false);
  model::parallel([&] { here.do_all(0, false); },
                  [&] {
                    static_cast<void>(here.sleepers.park(1, never_ns));
                    if (!here.take()) return;
                    here.finish(1, false);
                    here.sleepers.end_search([] { return false; });
                  },
                  [&] { here.produce(); });
}

// Two pieces that have to be done at the same time: one wake is not enough for them.
PROTOCOL(coordinator_chain) {
  yard here(2, 2, 2);
  here.sleepers.prepare_park(0, false);
  here.sleepers.prepare_park(1, false);
  const auto scheduler = [&](unsigned self) {
    static_cast<void>(here.sleepers.park(self, never_ns));
    while (!here.take()) model::pause();
    here.sleepers.end_search([&] { return here.work.load(relaxed) != 0; });
    here.finish(here.taken.fetch_add(1, relaxed) + 1, true);
  };
  model::parallel([&] { scheduler(0); }, [&] { scheduler(1); },
                  [&] {
                    here.produce();
                    here.produce();
                  });
}

// A producer that finds a searcher wakes nobody: the searcher, whose work is another piece, does.
PROTOCOL(coordinator_searcher_against_producer) {
  yard here(2, 2, 2);
  here.work.store(1, relaxed);
  model::expect(here.sleepers.try_search(), "nobody searches yet");
  here.sleepers.prepare_park(1, false);
  model::parallel(
      [&] {
        model::expect(here.take(), "the first piece");
        here.sleepers.end_search([&] { return here.work.load(relaxed) != 0; });
        here.finish(here.taken.fetch_add(1, relaxed) + 1, true);
      },
      [&] {
        static_cast<void>(here.sleepers.park(1, never_ns));
        model::expect(here.take(), "the second piece");
        here.finish(here.taken.fetch_add(1, relaxed) + 1, true);
      },
      [&] { here.produce(); });
}

PROTOCOL(coordinator_one_wake_wakes_one) {
  coordinator sleepers(2, 2);
  sleepers.prepare_park(0, false);
  sleepers.prepare_park(1, false);
  std::array<bool, 3> woke{};
  model::parallel([&] { static_cast<void>(sleepers.park(0, never_ns)); },
                  [&] { static_cast<void>(sleepers.park(1, never_ns)); },
                  [&] {
                    woke[0] = sleepers.wake_one();
                    woke[1] = sleepers.wake_one();
                  },
                  [&] { woke[2] = sleepers.wake_one(); });
  model::expect(woke[0] + woke[1] + woke[2] == 2, "two sleepers are woken by two calls of three");
  model::expect(sleepers.wakes() == 2 && !sleepers.any_parked(), "each was woken once");
}

// Parks again at once: a second wake is the second park's.
PROTOCOL(coordinator_wake_and_park_again) {
  coordinator sleepers(1, 1);
  sleepers.prepare_park(0, false);
  atomic<int> round{0};
  model::parallel(
      [&] {
        static_cast<void>(sleepers.park(0, never_ns));
        sleepers.prepare_park(0, true);
        round.store(1, release);
        static_cast<void>(sleepers.park(0, never_ns));
      },
      [&] {
        model::expect(sleepers.wake_one(), "the first wake");
        round.await([](int now) { return now == 1; }, acquire);
        model::expect(sleepers.wake_one(), "the second wake");
      });
  model::expect(sleepers.wakes() == 2 && !sleepers.any_parked(), "each was woken once");
}

// Taking the announcement back while a waker clears it: its permit does not cut the next park
// short.
PROTOCOL(coordinator_cancel_against_wake) {
  coordinator sleepers(1, 1);
  model::cell<int> news{0};
  bool woke = false;
  sleepers.prepare_park(0, false);
  model::parallel([&] { sleepers.cancel_park(0); }, [&] { woke = sleepers.wake_one(); });
  model::expect(sleepers.wakes() == (woke ? 1U : 0U) && !sleepers.any_parked());
  sleepers.end_search([] { return false; });
  sleepers.prepare_park(0, false);
  model::expect(!sleepers.park(0, 100), "the next park sleeps to its deadline");
}

PROTOCOL(coordinator_two_words) {
  coordinator sleepers(66, 66);
  sleepers.prepare_park(1, false);
  sleepers.prepare_park(65, false);
  std::array<bool, 2> woke{};
  model::parallel([&] { static_cast<void>(sleepers.park(1, never_ns)); },
                  [&] { static_cast<void>(sleepers.park(65, never_ns)); },
                  [&] { woke[0] = sleepers.wake_one(); }, [&] { woke[1] = sleepers.wake_one(); });
  model::expect(woke[0] && woke[1] && sleepers.wakes() == 2, "each call woke one");
  model::expect(!sleepers.any_parked() && !sleepers.is_parked(1) && !sleepers.is_parked(65));
}

// Where one CPU is enough for two schedulers, one may sleep beside work; not both.
PROTOCOL(coordinator_enough_awake) {
  yard here(2, 1, 1);
  here.work.store(1, relaxed);
  const auto scheduler = [&](unsigned self) {
    here.sleepers.prepare_park(self, false);
    const bool look = here.work.load(relaxed) != 0 && !here.sleepers.enough_awake();
    if (look || here.done.load(relaxed) != 0) {
      here.sleepers.cancel_park(self);
    } else {
      static_cast<void>(here.sleepers.park(self, never_ns));
    }
    if (here.take()) here.finish(1, false);
  };
  model::parallel([&] { scheduler(0); }, [&] { scheduler(1); });
  model::expect(!here.sleepers.any_parked() && here.work.load(relaxed) == 0, "the work was done");
}

// ---- roles -----------------------------------------------------------------------------------

constexpr std::int64_t late = 1'000'000;
constexpr std::int64_t early = 50;

// What a parking scheduler sleeps towards, as picker::choose_wake_time does it.
std::int64_t choose_wake_time(coordinator& sleepers, atomic<std::int64_t>& deadline,
                              unsigned self) {
  const std::int64_t earliest = deadline.load(relaxed);
  return earliest != never_ns && sleepers.take_keeper(self, earliest) ? earliest : never_ns;
}

// sleep_as_keeper parks until somebody sleeps towards the early deadline.
void sleep_as_keeper(coordinator& sleepers, atomic<std::int64_t>& deadline, unsigned self,
                     atomic<int>& done) {
  sleepers.prepare_park(self, false);
  for (;;) {
    if (done.load(relaxed) != 0) break;
    if (choose_wake_time(sleepers, deadline, self) == early) {
      done.store(1, relaxed);
      sleepers.cancel_park(self);
      sleepers.wake_all();
      return;
    }
    // The late deadline is too far off to be waited for: somebody has to come.
    static_cast<void>(sleepers.park(self, never_ns));
    sleepers.leave_keeper(self);
    sleepers.prepare_park(self, true);
  }
  sleepers.cancel_park(self);
}

PROTOCOL(coordinator_earlier_deadline_while_keeper_parks) {
  coordinator sleepers(2, 2);
  atomic<std::int64_t> deadline{late};
  atomic<int> done{0};
  model::parallel([&] { sleep_as_keeper(sleepers, deadline, 0, done); },
                  [&] {
                    deadline.store(early, relaxed);
                    sleepers.rearm(early);
                  });
}

PROTOCOL(coordinator_first_deadline_while_one_parks) {
  coordinator sleepers(2, 2);
  atomic<std::int64_t> deadline{never_ns};
  atomic<int> done{0};
  model::parallel([&] { sleep_as_keeper(sleepers, deadline, 0, done); },
                  [&] {
                    deadline.store(early, relaxed);
                    sleepers.rearm(early);
                  });
}

// A second one parks, and either leaves the role to the keeper or takes it over.
PROTOCOL(coordinator_two_park_towards_a_deadline) {
  coordinator sleepers(3, 3);
  atomic<std::int64_t> deadline{late};
  atomic<int> done{0};
  sleepers.prepare_park(0, false);
  model::expect(sleepers.take_keeper(0, late), "nobody is keeper yet");
  model::parallel(
      [&] {
        static_cast<void>(sleepers.park(0, never_ns));
        sleepers.leave_keeper(0);
        done.store(1, relaxed);
        sleepers.wake_all();
      },
      [&] {
        sleepers.prepare_park(1, false);
        if (done.load(relaxed) == 0 && choose_wake_time(sleepers, deadline, 1) != early) {
          static_cast<void>(sleepers.park(1, never_ns));
        } else {
          sleepers.cancel_park(1);
          sleepers.wake_all();
        }
      },
      [&] {
        deadline.store(early, relaxed);
        sleepers.rearm(early);
      });
}

// Both would be keeper: it is the one with the earlier deadline in the end, whoever came first.
PROTOCOL(coordinator_two_would_be_keeper) {
  coordinator sleepers(2, 2);
  std::array<bool, 2> took{};
  const auto park = [&](unsigned self, std::int64_t deadline) {
    sleepers.prepare_park(self, false);
    took[self] = sleepers.take_keeper(self, deadline);
  };
  model::parallel([&] { park(0, late); }, [&] { park(1, early); });
  model::expect(took[1], "nobody else sleeps towards the early deadline");
  model::expect(!sleepers.take_keeper(0, late), "and the keeper still does");
  sleepers.cancel_park(0);
  sleepers.cancel_park(1);
}

// The keeper is woken to work while another scheduler parks, which finds the role taken.
PROTOCOL(coordinator_keeper_hands_on) {
  coordinator sleepers(2, 2);
  sleepers.prepare_park(0, false);
  model::expect(sleepers.take_keeper(0, early), "nobody is keeper yet");
  model::parallel(
      [&] {
        static_cast<void>(sleepers.park(0, never_ns));
        sleepers.leave_keeper(0);
        sleepers.end_search([] { return false; });
        sleepers.hand_on(0, true);  // and is busy from here on
      },
      [&] {
        bool searching = false;
        for (;;) {
          sleepers.prepare_park(1, searching);
          searching = true;
          if (sleepers.take_keeper(1, early)) break;
          static_cast<void>(sleepers.park(1, never_ns));
        }
        sleepers.cancel_park(1);
      },
      [&] { sleepers.rearm(early - 1); });  // wakes the keeper
}

// The watcher retires from an idle runtime while a scheduler fills its run-next.
PROTOCOL(coordinator_watcher_retires_while_run_next_is_filled) {
  coordinator sleepers(2, 2);
  atomic<int> run_next{0};
  sleepers.prepare_park(0, false);
  model::expect(sleepers.take_watcher(0), "nobody watches yet");
  model::parallel(
      [&] {
        model::expect(sleepers.retire_watcher(0), "the kernel does its part");
        if (run_next.load(relaxed) != 0) {
          model::expect(sleepers.take_watcher(0), "nobody else takes the role here");
          sleepers.cancel_park(0);
          return;
        }
        static_cast<void>(sleepers.park(0, never_ns));
      },
      [&] {
        run_next.store(1, release);
        fence_light();
        sleepers.ensure_watcher();
      });
}

// The watcher (0) leaves its role to be busy, while another scheduler (2) is woken, is busy too,
// and leaves something in its run-next for ever. The third must come to watch.
PROTOCOL(coordinator_watcher_leaves_to_work_while_run_next_is_filled) {
  coordinator sleepers(3, 3);
  for (unsigned self = 0; self < 3; ++self) sleepers.prepare_park(self, false);
  model::expect(sleepers.take_watcher(0), "nobody watches yet");
  const auto no_more_work = [] { return false; };
  model::parallel(
      [&] {
        sleepers.cancel_park(0);  // its time is over, and it has found something
        sleepers.leave_watcher(0);
        sleepers.end_search(no_more_work);
        sleepers.hand_on(0, false);
      },
      [&] {
        static_cast<void>(sleepers.wake_one());
        static_cast<void>(sleepers.park(2, never_ns));
        sleepers.end_search(no_more_work);
        sleepers.hand_on(2, false);
        fence_light();  // behind a filled run-next
        sleepers.ensure_watcher();
      },
      [&] {
        do {
          static_cast<void>(sleepers.park(1, never_ns));
          sleepers.prepare_park(1, true);
        } while (!sleepers.take_watcher(1));
        sleepers.cancel_park(1);
      });
}

// Two schedulers park: of both who would watch, one does.
PROTOCOL(coordinator_one_watcher) {
  coordinator sleepers(3, 3);
  std::array<bool, 2> watches{};
  const auto park = [&](unsigned self) {
    sleepers.prepare_park(self, false);
    watches[self] = sleepers.take_watcher(self);
    if (watches[self]) model::expect(sleepers.take_watcher(self), "who has the role keeps it");
  };
  model::parallel([&] { park(0); }, [&] { park(1); });
  model::expect(watches[0] != watches[1], "one watches");
  sleepers.cancel_park(0);
  sleepers.cancel_park(1);
}

}  // namespace
}  // namespace smarm::detail
