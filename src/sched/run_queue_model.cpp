// The run queues under the checker.
//
// Proves, for two actors (three where it says so), up to three threads, and rings of two cells, so
// that positions go round twice:
//   - each push is popped exactly once, through a lap wraparound, by one or two poppers;
//   - who pops sees what who pushed has written, and who pushes into a cell that was used comes
//     after whoever emptied it, by the queue's own orders;
//   - never more entries than actors, so that push always has room;
//   - what was pushed before a fence, looks_empty behind a fence does not miss;
//   - a ring that grows under push and pop loses nothing;
//   - who pops while there are entries left gets one;
//   - what is taken from ring to ring, or to the injector, is there once, and in time for whoever
//     looks after the fence of whoever took it.
// Outside: the wrap of the local ring's 16-bit positions and of its count of exchanges; two
// spawners that grow the queue at once (a std::mutex, which the checker does not see); which stripe
// a CPU has.
#include <array>

#include "sched/local_ring.hpp"
#include "sched/run_queue.hpp"
#include "sched/slot.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

// task is an actor as the queues see it, and data whose publication is theirs to see to.
struct task : slot {
  explicit task(std::uint32_t number) { index = number; }

  model::cell<int> news{0};
  model::cell<int> pops{0};
};

template <class Queue>
void push(Queue& queue, task& what) {
  what.news.write(what.news.read() + 1);
  queue.push(what);
}
task& count_pop(slot& popped) {
  auto& taken = static_cast<task&>(popped);
  taken.pops.write(taken.pops.read() + 1);
  return taken;
}
// take pops, and pops again until there is something.
template <class Queue>
task& take(Queue& queue) {
  for (;;) {
    if (slot* const found = queue.pop()) {
      task& taken = count_pop(*found);
      model::expect(taken.pops.read() == taken.news.read(), "a push is popped once");
      return taken;
    }
    model::pause();
  }
}

template <class Queue>
void drain(Queue& queue) {
  while (slot* const got = queue.pop()) count_pop(*got);
}
template <std::size_t Count>
void expect_one_pop_each(const std::array<task, Count>& all) {
  for (const task& each : all) model::expect(each.pops.read() == 1, "each once");
}

// The lock-free ring maps its cells, so it is made before the runs; each begins with it empty.
struct small_ring : mpmc_ring {
  small_ring() { init(2); }
};
small_ring ring_of_two;

struct small_locked_ring : locked_ring {
  small_locked_ring() { reserve(2); }
};

// A scheduler's own ring with the face of the others: who pushes is its owner, and has room.
template <std::uint32_t Capacity>
struct own_ring : local_ring<Capacity> {
  void push(slot& runnable) {
    model::expect(local_ring<Capacity>::push(runnable), "there is room");
  }
};

// A queue of two stripes behind the face of a ring: an actor goes to the stripe of its number, and
// the scheduler that pops has the second one.
class striped_queue {
 public:
  striped_queue() : queue_(run_queue_kind::striped, 2, 2, 4) { queue_.reserve(2); }
  void push(slot& runnable) noexcept { queue_.push(runnable.index, runnable); }
  slot* pop() noexcept { return queue_.pop(1, 1).first; }
  [[nodiscard]] bool looks_empty() const noexcept { return queue_.looks_empty(); }

 private:
  run_queue queue_;
};

template <class Queue>
void two_producers_and_a_drain(Queue& queue) {
  task a(0);
  task b(1);
  model::parallel([&] { push(queue, a); }, [&] { push(queue, b); },
                  [&] {
                    task& first = take(queue);
                    model::expect(&take(queue) != &first, "two actors, each once");
                  });
  model::expect(queue.pop() == nullptr && queue.looks_empty(), "nothing is left");
}

template <class Queue>
void two_poppers(Queue& queue) {
  task a(0);
  task b(1);
  task* first = nullptr;
  task* second = nullptr;
  model::parallel(
      [&] {
        push(queue, a);
        push(queue, b);
      },
      [&] { first = &take(queue); }, [&] { second = &take(queue); });
  model::expect(first != second, "two actors, each once");
  model::expect(queue.pop() == nullptr && queue.looks_empty(), "nothing is left");
}

// An entry is there for each popper, so none of them may call the queue empty.
template <class Queue>
void an_entry_each(Queue& queue) {
  task a(0);
  task b(1);
  push(queue, a);
  push(queue, b);
  slot* first = nullptr;
  slot* second = nullptr;
  model::parallel([&] { first = queue.pop(); }, [&] { second = queue.pop(); });
  model::expect(first != nullptr && second != nullptr && first != second, "each finds one");
  model::expect(queue.pop() == nullptr && queue.looks_empty(), "nothing is left");
}

// Positions 0 to 3 in two cells: what was popped is pushed again, by the other thread, which knows
// of the pop by nothing but the queue.
template <class Queue>
void a_lap(Queue& queue) {
  task a(0);
  task b(1);
  atomic<task*> given{nullptr};
  model::cell<int> emptied{0};
  model::parallel(
      [&] {
        push(queue, a);
        push(queue, b);
        task* const again = given.await([](task* now) { return now != nullptr; }, relaxed);
        queue.push(*again);
        model::expect(emptied.read() == 1, "the cell was emptied before");
      },
      [&] {
        emptied.write(1);
        slot* first = nullptr;
        while ((first = queue.pop()) == nullptr) model::pause();
        given.store(static_cast<task*>(first), relaxed);
        int pops = 0;
        while (pops < 2) {
          if (queue.pop() != nullptr) {
            ++pops;
          } else {
            model::pause();
          }
        }
      });
  model::expect(queue.pop() == nullptr && queue.looks_empty(), "nothing is left");
}

// Three actors in turn on two threads that both push and pop.
template <class Queue>
void push_against_pop(Queue& queue) {
  task a(0);
  task b(1);
  push(queue, a);
  int popped = 0;
  model::parallel(
      [&] {
        if (slot* const got = queue.pop()) push(queue, static_cast<task&>(*got));
      },
      [&] {
        push(queue, b);
        if (queue.pop() != nullptr) ++popped;
      });
  while (queue.pop() != nullptr) ++popped;
  model::expect(popped == 2, "what was pushed is popped");
  model::expect(queue.looks_empty(), "nothing is left");
}

// `publish` does what makes work visible, and fences; the other thread is about to sleep.
template <class Publish, class Queue>
void look_behind_a_fence(Queue& queue, Publish publish) {
  atomic<int> parked{0};
  bool seen_parked = false;
  bool seen_work = false;
  model::parallel(
      [&] {
        publish();
        seen_parked = parked.load(relaxed) != 0;
      },
      [&] {
        parked.store(1, relaxed);
        fence(seq_cst);
        seen_work = !queue.looks_empty();
      });
  model::expect(seen_parked || seen_work, "of two fences one is first");
}
template <class Queue>
void a_look_behind_a_fence(Queue& queue) {
  task a(0);
  look_behind_a_fence(queue, [&] {
    queue.push(a);
    fence(seq_cst);
  });
}

PROTOCOL(queue_mpmc_two_producers_and_a_drain) { two_producers_and_a_drain(ring_of_two); }
PROTOCOL(queue_mpmc_two_poppers) { two_poppers(ring_of_two); }
PROTOCOL(queue_mpmc_an_entry_each) { an_entry_each(ring_of_two); }
PROTOCOL(queue_mpmc_lap) { a_lap(ring_of_two); }
PROTOCOL(queue_mpmc_push_against_pop) { push_against_pop(ring_of_two); }
PROTOCOL(queue_mpmc_look_behind_a_fence) { a_look_behind_a_fence(ring_of_two); }

PROTOCOL(queue_locked_two_producers_and_a_drain) {
  small_locked_ring queue;
  two_producers_and_a_drain(queue);
}
PROTOCOL(queue_locked_two_poppers) {
  small_locked_ring queue;
  two_poppers(queue);
}
PROTOCOL(queue_locked_an_entry_each) {
  small_locked_ring queue;
  an_entry_each(queue);
}
PROTOCOL(queue_locked_lap) {
  small_locked_ring queue;
  a_lap(queue);
}
PROTOCOL(queue_locked_push_against_pop) {
  small_locked_ring queue;
  push_against_pop(queue);
}
PROTOCOL(queue_locked_look_behind_a_fence) {
  small_locked_ring queue;
  a_look_behind_a_fence(queue);
}
// The third actor comes with the growth of the ring that the two others fill, around its end.
PROTOCOL(queue_locked_grows) {
  small_locked_ring queue;
  task a(0);
  task b(1);
  task c(2);
  push(queue, b);
  static_cast<void>(take(queue));
  push(queue, a);
  push(queue, b);
  model::parallel(
      [&] {
        queue.reserve(4);
        push(queue, c);
      },
      [&] { model::expect(&take(queue) == &a, "the first in is the first out"); });
  model::expect(&take(queue) == &b && &take(queue) == &c, "growth keeps all, in their order");
  model::expect(queue.pop() == nullptr && queue.looks_empty(), "nothing is left");
}

PROTOCOL(queue_striped_two_producers_and_a_drain) {
  striped_queue queue;
  two_producers_and_a_drain(queue);
}
PROTOCOL(queue_striped_two_poppers) {
  striped_queue queue;
  two_poppers(queue);
}
PROTOCOL(queue_striped_an_entry_each) {
  striped_queue queue;
  an_entry_each(queue);
}
PROTOCOL(queue_striped_push_against_pop) {
  striped_queue queue;
  push_against_pop(queue);
}
PROTOCOL(queue_striped_look_behind_a_fence) {
  striped_queue queue;
  a_look_behind_a_fence(queue);
}
PROTOCOL(queue_local_two_poppers) {
  own_ring<2> ring;
  two_poppers(ring);
}
PROTOCOL(queue_local_an_entry_each) {
  own_ring<2> ring;
  an_entry_each(ring);
}
PROTOCOL(queue_local_look_behind_a_fence) {
  own_ring<2> ring;
  a_look_behind_a_fence(ring);
}
// The owner fills the ring again as soon as a thief has made room: positions 0 to 3 in two entries.
PROTOCOL(queue_local_lap) {
  local_ring<2> ring;
  std::array<task, 4> all{task(0), task(1), task(2), task(3)};
  model::parallel(
      [&] {
        for (task& each : all) {
          each.news.write(1);
          while (!ring.push(each)) model::pause();
        }
      },
      [&] {
        for (task& each : all) model::expect(&take(ring) == &each, "the oldest first");
      });
  model::expect(ring.looks_empty(), "nothing is left");
}
// The owner pops and pushes on while a thief takes from the same end.
PROTOCOL(queue_local_owner_against_thief) {
  own_ring<2> ring;
  std::array<task, 3> all{task(0), task(1), task(2)};
  push(ring, all[0]);
  push(ring, all[1]);
  model::parallel(
      [&] {
        if (slot* const got = ring.pop()) count_pop(*got);
        push(ring, all[2]);
      },
      [&] {
        if (slot* const got = ring.pop()) count_pop(*got);
      });
  drain(ring);
  expect_one_pop_each(all);
}
// Half of three goes over, while the owner pops and pushes.
PROTOCOL(queue_local_steal) {
  own_ring<4> victim;
  own_ring<4> mine;
  std::array<task, 4> all{task(0), task(1), task(2), task(3)};
  for (int i = 0; i < 3; ++i) push(victim, all[i]);
  model::parallel(
      [&] {
        if (slot* const got = victim.pop()) count_pop(*got);
        push(victim, all[3]);
      },
      [&] {
        std::uint32_t taken = 0;
        if (slot* const got = mine.steal_from(victim, taken)) count_pop(*got);
        model::expect(taken == 1 || taken == 2, "half, rounded up");
      });
  drain(mine);
  drain(victim);
  expect_one_pop_each(all);
}
// What is stolen may have been pushed just now.
PROTOCOL(queue_local_steal_against_push) {
  own_ring<4> victim;
  own_ring<4> mine;
  task a(0);
  bool stolen = false;
  model::parallel([&] { push(victim, a); },
                  [&] {
                    std::uint32_t taken = 0;
                    if (slot* const got = mine.steal_from(victim, taken)) {
                      model::expect(count_pop(*got).news.read() == 1, "what came with it");
                      stolen = true;
                    }
                  });
  model::expect(stolen == victim.looks_empty() && mine.looks_empty(), "it is there once");
  task b(1);
  push(mine, b);
  model::expect(mine.pop() == &b, "the ring of the thief is whole");
}
// The owner takes the newest where a thief takes the oldest: of the last one, one of the two.
PROTOCOL(queue_local_newest_against_thief) {
  own_ring<2> ring;
  task a(0);
  push(ring, a);
  slot* newest = nullptr;
  slot* oldest = nullptr;
  model::parallel([&] { newest = ring.pop_newest(); }, [&] { oldest = ring.pop(); });
  model::expect((newest == &a) != (oldest == &a), "one of the two has it");
  model::expect(ring.looks_empty() && ring.pop() == nullptr, "nothing is left");
  task b(1);
  push(ring, b);
  model::expect(ring.pop_newest() == &b, "the ring is whole");
}
// There is one for each: neither may come away with nothing.
PROTOCOL(queue_local_newest_and_oldest) {
  own_ring<2> ring;
  std::array<task, 2> all{task(0), task(1)};
  for (task& each : all) push(ring, each);
  slot* newest = nullptr;
  slot* oldest = nullptr;
  model::parallel([&] { newest = ring.pop_newest(); }, [&] { oldest = ring.pop(); });
  model::expect(newest == &all[1] && oldest == &all[0], "each has the one of its end");
  model::expect(ring.looks_empty(), "nothing is left");
}
// The owner takes the newest and pushes another in its place, while a thief takes half: by head_
// alone the thief cannot tell before from after.
PROTOCOL(queue_local_newest_against_steal) {
  own_ring<4> victim;
  own_ring<4> mine;
  std::array<task, 4> all{task(0), task(1), task(2), task(3)};
  for (int i = 0; i < 3; ++i) push(victim, all[i]);
  model::parallel(
      [&] {
        if (slot* const got = victim.pop_newest()) count_pop(*got);
        if (slot* const got = victim.pop_newest()) count_pop(*got);
        push(victim, all[3]);
      },
      [&] {
        std::uint32_t taken = 0;
        if (slot* const got = mine.steal_from(victim, taken)) {
          model::expect(count_pop(*got).news.read() == 1, "what came with it");
        }
      });
  drain(mine);
  drain(victim);
  expect_one_pop_each(all);
}
// As above for a thief of one, with what it gets: what it was pushed with comes along, also where
// the thief knows of it by no other store than the one that lowers the end.
PROTOCOL(queue_local_newest_in_turns_against_thief) {
  own_ring<2> ring;
  std::array<task, 3> all{task(0), task(1), task(2)};
  model::parallel(
      [&] {
        push(ring, all[0]);
        push(ring, all[1]);
        if (slot* const got = ring.pop_newest()) count_pop(*got);
        push(ring, all[2]);
        if (slot* const got = ring.pop_newest()) count_pop(*got);
      },
      [&] {
        if (slot* const got = ring.pop()) {
          model::expect(count_pop(*got).news.read() == 1, "what came with it");
        }
      });
  drain(ring);
  expect_one_pop_each(all);
}
// Two thieves take halves of one ring, and the second also of what the first has taken.
PROTOCOL(queue_local_thief_of_a_thief) {
  own_ring<4> victim;
  own_ring<4> mine;
  std::array<task, 3> all{task(0), task(1), task(2)};
  for (task& each : all) push(victim, each);
  model::parallel(
      [&] {
        std::uint32_t taken = 0;
        if (slot* const got = mine.steal_from(victim, taken)) count_pop(*got);
      },
      [&] {
        if (slot* const got = mine.pop()) count_pop(*got);
        if (slot* const got = victim.pop()) count_pop(*got);
      });
  drain(mine);
  drain(victim);
  expect_one_pop_each(all);
}
// Two schedulers with rings of four (few_in_models): the fifth push gives the older half to the
// injector, from which the other scheduler takes meanwhile, or from the ring.
PROTOCOL(queue_local_spill) {
  run_queue queue(run_queue_kind::local, 2, 2, 8);
  queue.reserve(8);
  std::array<task, 5> all{task(0), task(1), task(2), task(3), task(4)};
  for (int i = 0; i < 4; ++i) queue.push(0, all[i]);
  model::parallel([&] { queue.push(0, all[4]); },
                  [&] {
                    const run_queue::popped got = queue.pop(1, 1);
                    model::expect(got.first != nullptr, "there are four");
                    count_pop(*got.first);
                  });
  for (int i = 0; i < 4; ++i) {
    const run_queue::popped got = queue.pop(0, 1);
    model::expect(got.first != nullptr, "none is lost");
    count_pop(*got.first);
  }
  expect_one_pop_each(all);
  model::expect(queue.looks_empty(), "nothing is left");
}
// What a scheduler has moved from the injector to its ring: whoever looks behind a fence sees it,
// or the scheduler, told that it has moved something, sees behind its own that somebody sleeps.
PROTOCOL(queue_local_what_was_moved_is_seen) {
  run_queue queue(run_queue_kind::local, 2, 2, 4);
  queue.reserve(4);
  std::array<task, 2> all{task(0), task(1)};
  for (task& each : all) queue.push_from_outside(each);
  look_behind_a_fence(queue, [&] {
    const run_queue::popped got = queue.pop(1, 1);
    count_pop(*got.first);
    if (got.moved) fence(seq_cst);
  });
}
PROTOCOL(queue_local_pop_against_steal) {
  run_queue queue(run_queue_kind::local, 2, 2, 4);
  queue.reserve(4);
  std::array<task, 2> all{task(0), task(1)};
  for (task& each : all) queue.push(0, each);
  std::array<slot*, 2> got{};
  model::parallel([&] { got[0] = queue.pop(0, 1).first; }, [&] { got[1] = queue.pop(1, 1).first; });
  model::expect(got[0] != nullptr && got[1] != nullptr && got[0] != got[1], "each finds one");
  model::expect(queue.looks_empty(), "nothing is left");
}

// A spawner that grows the queue, and one that finds the room there and relies on it.
PROTOCOL(queue_reserve_against_reserve) {
  run_queue queue(run_queue_kind::striped, 2, 2, 4);
  task a(0);
  queue.reserve(1);
  task b(1);
  model::parallel(
      [&] {
        queue.reserve(300);
        queue.push(0, a);
      },
      [&] {
        queue.reserve(1);
        queue.push(1, b);
      });
  model::expect(queue.pop(0, 1).first != nullptr && queue.pop(0, 1).first != nullptr,
                "both are there");
}

}  // namespace
}  // namespace smarm::detail
