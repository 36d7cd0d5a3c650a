// The three run queues under the checker.
//
// Proves, for two actors (three where it says so), up to three threads, and rings of two cells, so
// that positions go round twice:
//   - each push is popped exactly once, through a lap wraparound, by one or two poppers;
//   - who pops sees what who pushed has written, and who pushes into a cell that was used comes
//   after
//     whoever emptied it, by the queue's own orders;
//   - never more entries than actors, so that push always has room;
//   - what was pushed before a fence, looks_empty behind a fence does not miss;
//   - a ring that grows under push and pop loses nothing;
//   - who pops while there are entries left gets one.
// Outside: the wrap of the 64-bit positions; two spawners that grow the queue at once (a
// std::mutex, which the checker does not see); which stripe a CPU has.
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
// take pops, and pops again until there is something.
template <class Queue>
task& take(Queue& queue) {
  for (;;) {
    if (slot* const found = queue.pop()) {
      auto& taken = static_cast<task&>(*found);
      taken.pops.write(taken.pops.read() + 1);
      model::expect(taken.pops.read() == taken.news.read(), "a push is popped once");
      return taken;
    }
    model::pause();
  }
}

// The lock-free ring maps its cells, so it is made before the runs; each begins with it empty.
struct small_ring : mpmc_ring {
  small_ring() { init(2); }
};
small_ring ring_of_two;

struct small_locked_ring : locked_ring {
  small_locked_ring() { reserve(2); }
};

// A queue of two stripes behind the face of a ring: an actor goes to the stripe of its number, and
// the scheduler that pops has the second one.
class striped_queue {
 public:
  striped_queue() : queue_(run_queue_kind::striped, 2, 4) { queue_.reserve(2); }
  void push(slot& runnable) noexcept { queue_.push(runnable.index, runnable); }
  slot* pop() noexcept { return queue_.pop(1, 1); }
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

template <class Queue>
void a_look_behind_a_fence(Queue& queue) {
  task a(0);
  atomic<int> parked{0};
  bool seen_parked = false;
  bool seen_work = false;
  model::parallel(
      [&] {
        queue.push(a);
        fence(seq_cst);
        seen_parked = parked.load(relaxed) != 0;
      },
      [&] {
        parked.store(1, relaxed);
        fence(seq_cst);
        seen_work = !queue.looks_empty();
      });
  model::expect(seen_parked || seen_work, "of two fences one is first");
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
// A spawner that grows the queue, and one that finds the room there and relies on it.
PROTOCOL(queue_reserve_against_reserve) {
  run_queue queue(run_queue_kind::striped, 2, 4);
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
  model::expect(queue.pop(0, 1) != nullptr && queue.pop(0, 1) != nullptr, "both are there");
}

}  // namespace
}  // namespace smarm::detail
