// The place for the next actor, between its owner and a thief, under the checker.
//
// Proves, for two or three actors and two looks of a thief, or one each of two thieves that have
// the watcher's role one after the other: what was put in comes out once, and whoever has it sees
// what was written before it was put there.
// Outside: two thieves at once, which the watcher's role excludes (coordinator_model.cpp).
#include <array>

#include "sched/coordinator.hpp"
#include "sched/run_next.hpp"
#include "sched/slot.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

// task is an actor, with data whose publication is the place's to see to.
struct task : slot {
  model::cell<int> news{0};
  model::cell<int> taken{0};
};

void put(run_next& place, task& what) {
  what.news.write(1);
  place.fill(what);
}
// Whoever has taken an actor has it alone.
void note(slot* got) {
  if (got == nullptr) return;
  auto& what = static_cast<task&>(*got);
  model::expect(what.news.read() == 1, "what was written before it was put there");
  what.taken.write(what.taken.read() + 1);
}

void expect_each_once(run_next& place, std::span<task> all) {
  note(place.swap(nullptr, false));
  model::expect(place.peek() == nullptr, "nothing is left");
  for (const task& each : all) model::expect(each.taken.read() == 1, "each once");
}

// The owner's part beside a thief that looks twice.
template <class Owner>
void beside_a_thief(run_next& place, std::span<task> all, Owner owner) {
  model::parallel(owner, [&] {
    note(place.steal());
    note(place.steal());
  });
  expect_each_once(place, all);
}

// The owner fills, takes, and fills again.
PROTOCOL(run_next_taken_by_its_owner_beside_a_thief) {
  run_next place;
  std::array<task, 2> all;
  beside_a_thief(place, all, [&] {
    for (task& each : all) {
      put(place, each);
      note(place.swap(nullptr, false));
    }
  });
}

// The owner puts one in the place of another, which it keeps.
PROTOCOL(run_next_swapped_beside_a_thief) {
  run_next place;
  std::array<task, 2> all;
  put(place, all[0]);
  beside_a_thief(place, all, [&] {
    all[1].news.write(1);
    note(place.swap(&all[1], false));
  });
}

// What the owner does not touch is stolen.
PROTOCOL(run_next_stolen_where_its_owner_computes_on) {
  run_next place;
  std::array<task, 2> all;
  put(place, all[0]);
  model::parallel(
      [&] {
        note(place.swap(nullptr, false));
        put(place, all[1]);
      },
      [&] { note(place.steal()); });
  if (place.peek() != nullptr) note(place.steal());
  model::expect(place.peek() == nullptr, "the owner is not at it");
  expect_each_once(place, all);
}

// The role of the watcher passes from one thief to another in the middle.
template <class Leave>
void two_thieves_in_turn(Leave leave) {
  coordinator sleepers(3, 3);
  run_next place;
  std::array<task, 2> all;
  model::expect(sleepers.take_watcher(1), "nobody watches yet");
  put(place, all[0]);
  model::parallel(
      [&] {
        note(place.swap(nullptr, false));
        put(place, all[1]);
        note(place.swap(nullptr, false));
      },
      [&] {
        note(place.steal());
        leave(sleepers);
      },
      [&] {
        if (sleepers.take_watcher(2)) note(place.steal());
      });
  expect_each_once(place, all);
}
PROTOCOL(run_next_of_two_thieves_of_whom_one_leaves) {
  two_thieves_in_turn([](coordinator& sleepers) { sleepers.leave_watcher(1); });
}
PROTOCOL(run_next_of_two_thieves_of_whom_one_retires) {
  two_thieves_in_turn([](coordinator& sleepers) { static_cast<void>(sleepers.retire_watcher(1)); });
}

}  // namespace
}  // namespace smarm::detail
