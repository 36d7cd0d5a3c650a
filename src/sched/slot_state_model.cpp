// The state word under the checker: every race between park, wake, stop, exit and reuse.
//
// Proves, for each execution of at most three threads on one slot:
//   - no wake is lost, whether it comes before, during or after the park, and what the waker wrote
//     before it is visible to the actor that runs again, by the orders of the word alone;
//   - of two wakes, or a wake and a stop, one enqueues; what was queued is claimed once, after its
//     context was saved;
//   - a waker of a wait, or of an actor, that has passed does nothing;
//   - a stop ends a wait unless the actor is shielded, and is never forgotten;
//   - nobody finds an actor whose function has ended, and the next actor of the slot starts clean.
// Outside: the wrap of the 30-bit epoch and 28-bit generation, more than two wakers at once.
// The word is at its real width.
#include <array>

#include "sched/slot.hpp"
#include "sched/slot_state.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using unparked = slot_state::unparked;
using park_end = slot_state::park_end;
using stop_result = slot_state::stop_result;

// word_model is a slot and the data whose publication the word has to see to.
struct word_model {
  word_model() {
    state.publish_queued();
    state.try_claim();
    model::name(context, "context");
    model::name(news, "news");
  }

  // enqueue stands for the push to a run queue: who pops comes after who pushed, as
  // run_queue_model.cpp proves.
  void enqueue() { tokens.fetch_add(1, release); }
  // claim stands for a scheduler that pops the actor and runs it on.
  void claim() {
    tokens.await([](std::uint32_t n) { return n != 0; }, acquire);
    model::expect(tokens.fetch_sub(1, relaxed) == 1, "an actor is queued once");
    state.try_claim();
    static_cast<void>(context.read());
  }
  // park saves the context and parks, as finish_previous does.
  void park() {
    context.write(1);
    if (state.park_return() == park_end::must_enqueue) enqueue();
  }
  // wake ends the wait, as waker::wake does.
  unparked wake(std::uint64_t ticket) {
    const unparked result = state.unpark(ticket);
    if (result == unparked::must_enqueue) {
      look_at_context();
      enqueue();
    }
    return result;
  }
  stop_result stop(std::uint32_t generation) {
    const stop_result result = state.request_stop(generation);
    if (result == stop_result::must_enqueue) {
      look_at_context();
      enqueue();
    }
    return result;
  }

  // Whoever has unparked an actor may switch to it at once. The look must be over before the next
  // park, which the token does not see to: only for models with a single wait.
  void look_at_context() {
    if (single_wait) static_cast<void>(context.read());
  }

  bool single_wait = true;
  slot_state state;
  model::cell<int> context{0};
  model::cell<int> news{0};
  atomic<std::uint32_t> tokens{0};
};

PROTOCOL(slot_park_against_unpark) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  model::parallel(
      [&] {
        if (!slot.state.consume_notification()) {
          slot.park();
          return;  // whoever claims it goes on
        }
        model::expect(slot.news.read() == 1, "the news of the wake that came first");
        slot.context.write(2);
        slot.state.yield_return();
        slot.enqueue();
      },
      [&] {
        slot.news.write(1);
        model::expect(slot.wake(ticket) != unparked::stale, "the only wake is never stale");
      },
      [&] {
        slot.claim();
        model::expect(slot.news.read() == 1, "the news of the wake");
      });
}

// Whoever finds the actor alive sees its fields, also when it has been claimed since.
PROTOCOL(slot_found_alive_while_it_is_claimed) {
  slot_state state;
  model::cell<int> fields{0};
  atomic<int> queued{0};
  model::parallel(
      [&] {
        fields.write(1);
        state.publish_queued();
        queued.store(1, release);
      },
      [&] {
        queued.await([](int now) { return now == 1; }, acquire);
        state.try_claim();
        state.yield_return();
      },
      [&] {
        if (state.is_live(1)) model::expect(fields.read() == 1, "the fields of the actor");
      });
}

// A stop that comes late, when the slot has its next actor, does not undo the stop of that one.
PROTOCOL(slot_late_stop_of_the_actor_before) {
  slot_state state;
  state.publish_queued();
  state.try_claim();
  model::parallel([&] { static_cast<void>(state.request_stop(1)); },
                  [&] {
                    state.set_done();
                    model::expect(state.reclaim(), "there are generations left");
                    state.publish_queued();
                    state.try_claim();
                    model::expect(state.request_stop(2) == stop_result::requested, "it runs");
                  });
  model::expect(state.peek().stop_requested(), "the stop is not lost");
}

// The last shield goes while the wake of an open wait comes.
PROTOCOL(slot_wake_while_the_shield_goes) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  slot.state.set_shield();
  bool noted = false;
  model::parallel(
      [&] {
        slot.state.clear_shield();
        noted = slot.state.consume_notification();
        if (!noted) slot.park();
      },
      [&] { model::expect(slot.wake(ticket) != unparked::stale, "the only wake is never stale"); });
  if (!noted) slot.claim();
}

PROTOCOL(slot_two_unparkers_one_enqueue) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  std::array<unparked, 2> results{};
  model::parallel([&] { slot.park(); }, [&] { results[0] = slot.wake(ticket); },
                  [&] { results[1] = slot.wake(ticket); });
  slot.claim();
  model::expect(slot.tokens.load(relaxed) == 0, "two wakes enqueue once");
  model::expect(
      results[0] != results[1] || results[0] == unparked::stale || results[0] == unparked::noted,
      "not both wakes enqueue");
  model::expect(slot.state.peek().ticket() != ticket, "the wait is over");
}

// The second wait has a ticket of its own, and a wake of the first leaves it alone.
PROTOCOL(slot_two_epochs_in_flight) {
  word_model slot;
  slot.single_wait = false;
  const std::uint64_t first = slot.state.begin_wait(false);
  atomic<std::uint64_t> second{0};
  model::parallel(
      [&] {
        slot.park();
        slot.claim();
        const std::uint64_t ticket = slot.state.begin_wait(false);
        model::expect(ticket != first, "a wait that was ended by a wake has another epoch");
        second.store(ticket, release);
        slot.park();
        slot.claim();
        model::expect(slot.news.read() == 2, "the second wait ends by its own wake");
      },
      [&] { static_cast<void>(slot.wake(first)); },
      [&] {
        static_cast<void>(slot.wake(first));
        const std::uint64_t ticket =
            second.await([](std::uint64_t value) { return value != 0; }, acquire);
        slot.news.write(2);
        model::expect(slot.wake(ticket) != unparked::stale, "the wake of the open wait");
      });
}

// A wait that was opened and not ended by a wake (a timeout of its owner's) is opened anew.
PROTOCOL(slot_reopened_wait) {
  word_model slot;
  const std::uint64_t first = slot.state.begin_wait(false);
  unparked late{};
  unparked due{};
  atomic<std::uint64_t> second{0};
  model::parallel(
      [&] {
        second.store(slot.state.begin_wait(true), release);
        slot.park();
        slot.claim();
        model::expect(slot.news.read() == 1, "only the second wait's wake ends it");
      },
      [&] { late = slot.wake(first); },
      [&] {
        const std::uint64_t ticket =
            second.await([](std::uint64_t value) { return value != 0; }, acquire);
        slot.news.write(1);
        due = slot.wake(ticket);
      });
  model::expect(late != unparked::must_enqueue,
                "a wake of a wait that was given up enqueues nobody");
  model::expect(due != unparked::stale, "the wake of the open wait");
}

// A waker that comes late, when its actor has ended and the slot is another's.
PROTOCOL(slot_exit_and_reuse_against_late_waker) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  unparked late{};
  model::parallel(
      [&] {
        slot.state.set_done();
        model::expect(slot.state.reclaim(), "generations are left");
        slot.state.publish_queued();
        slot.state.try_claim();
        const std::uint64_t next = slot.state.begin_wait(false);
        model::expect(next != ticket, "no ticket is given out twice");
        model::expect(!slot.state.consume_notification(), "the new actor starts without a wake");
        model::expect(!slot.state.peek().stop_requested(), "the new actor starts without a stop");
      },
      [&] { late = slot.wake(ticket); }, [&] { static_cast<void>(slot.state.request_stop(1)); });
  model::expect(late != unparked::must_enqueue, "an actor that ended is enqueued by nobody");
  const slot_word now = slot.state.peek();
  model::expect(now.state() == run_state::running && now.generation() == 2,
                "the new actor runs undisturbed");
  model::expect(slot.tokens.load(relaxed) == 0);
}

PROTOCOL(slot_unpark_against_claim) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  unparked early{};
  unparked second{};
  slot.park();
  model::parallel(
      [&] {
        slot.news.write(1);
        early = slot.wake(ticket);
        second = slot.wake(ticket);
      },
      [&] {
        slot.claim();
        model::expect(slot.news.read() == 1, "the news of the wake");
        model::expect(!slot.state.consume_notification(), "a wait is ended once");
      });
  model::expect(early == unparked::must_enqueue && second == unparked::stale,
                "one wake ends the wait and the next is stale");
}

PROTOCOL(slot_stop_against_park) {
  word_model slot;
  static_cast<void>(slot.state.begin_wait(false));
  stop_result result{};
  model::parallel([&] { slot.park(); },
                  [&] {
                    slot.news.write(1);
                    result = slot.stop(1);
                  },
                  [&] {
                    slot.claim();
                    model::expect(slot.state.peek().stop_requested(),
                                  "the stop is there when it runs");
                    model::expect(slot.news.read() == 1, "what the stopper wrote");
                  });
  model::expect(result != stop_result::no_such_actor, "the actor lives");
}

PROTOCOL(slot_stop_against_unpark) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  stop_result stopped{};
  unparked woken{};
  model::parallel([&] { slot.park(); }, [&] { stopped = slot.stop(1); },
                  [&] { woken = slot.wake(ticket); });
  slot.claim();
  model::expect(slot.tokens.load(relaxed) == 0, "a wake and a stop enqueue once");
  model::expect(slot.state.peek().stop_requested(), "the stop is sticky");
  model::expect(stopped != stop_result::must_enqueue || woken != unparked::must_enqueue,
                "not both enqueue");
}

// A shield keeps the stop from ending the wait; the flag is seen when the shield is gone.
PROTOCOL(slot_shielded_stop_against_wake) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  slot.state.set_shield();
  stop_result stopped{};
  model::parallel([&] { slot.park(); }, [&] { stopped = slot.stop(1); },
                  [&] {
                    slot.news.write(1);
                    model::expect(slot.wake(ticket) != unparked::stale,
                                  "no stop has ended this wait");
                  });
  slot.claim();
  model::expect(slot.news.read() == 1, "only the wake ends the wait");
  model::expect(stopped == stop_result::requested, "a shielded wait is not ended by a stop");
  slot.state.clear_shield();
  const slot_word now = slot.state.peek();
  model::expect(now.stop_requested() && !now.is_shielded(), "the stop is pending now");
}

// The shield goes up or down while the stop comes: it is ended by the stop or sees it afterwards.
PROTOCOL(slot_stop_against_shield) {
  word_model slot;
  stop_result stopped{};
  bool pending = false;
  model::parallel(
      [&] {
        slot.state.set_shield();
        slot.state.clear_shield();
        static_cast<void>(slot.state.begin_wait(false));
        slot.park();
        slot.claim();
        pending = slot.state.peek().stop_requested();
      },
      [&] { stopped = slot.stop(1); });
  model::expect(pending && stopped != stop_result::no_such_actor, "the stop has ended the wait");
}

// A stop that meets a yield, or a wait that is opened anew, is not overwritten.
PROTOCOL(slot_stop_against_yield_and_reopening) {
  word_model slot;
  static_cast<void>(slot.state.begin_wait(false));
  stop_result stopped{};
  model::parallel(
      [&] {
        static_cast<void>(slot.state.begin_wait(true));
        slot.state.yield_return();
        slot.state.try_claim();
      },
      [&] { stopped = slot.stop(1); });
  model::expect(stopped == stop_result::requested, "a running or queued actor is only asked");
  model::expect(slot.state.peek().stop_requested(), "the stop is not lost");
}

// Shields within shields: the outermost one holds a stop off, which then is still there.
PROTOCOL(slot_nested_shields_against_stop) {
  slot self;
  self.state.publish_queued();
  self.state.try_claim();
  model::parallel(
      [&] {
        self.add_shield();
        self.add_shield();
        self.drop_shield();
        model::expect(self.state.peek().is_shielded(), "one is left");
        self.drop_shield();
        model::expect(!self.state.peek().is_shielded(), "none is left");
      },
      [&] {
        model::expect(self.state.request_stop(1) == stop_result::requested, "it does not wait");
      });
  model::expect(self.state.peek().stop_requested(), "the stop is not lost");
}

// A wake that was noted is consumed while a stop is asked for: neither undoes the other.
PROTOCOL(slot_stop_against_a_consumed_wake) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  model::expect(slot.wake(ticket) == unparked::noted, "it still runs");
  model::parallel(
      [&] {
        model::expect(slot.state.consume_notification(), "a wake has come");
        const slot_word now = slot.state.peek();
        model::expect(now.state() == run_state::running && now.ticket() != ticket,
                      "that wait is over");
      },
      [&] { model::expect(slot.stop(1) == stop_result::requested, "a running actor is asked"); });
  model::expect(slot.state.peek().stop_requested(), "the stop is not lost");
}

// A wait that was given up without a park: its waker finds the actor running or queued.
PROTOCOL(slot_yield_against_late_waker) {
  word_model slot;
  const std::uint64_t ticket = slot.state.begin_wait(false);
  unparked woken{};
  model::parallel(
      [&] {
        slot.state.yield_return();
        slot.state.try_claim();
      },
      [&] { woken = slot.wake(ticket); });
  model::expect(woken != unparked::must_enqueue, "who is queued already is not enqueued");
}

// The exit hides the actor: who finds it alive before may stop it in vain, who comes after learns
// so.
PROTOCOL(slot_stop_against_exit) {
  word_model slot;
  stop_result stopped{};
  model::parallel(
      [&] {
        slot.state.set_done();
        model::expect(slot.state.reclaim(), "generations are left");
      },
      [&] {
        stopped = slot.stop(1);
        model::expect(slot.stop(2) == stop_result::no_such_actor, "nobody of that generation yet");
      });
  model::expect(stopped != stop_result::must_enqueue, "an actor that ends is not enqueued");
  const slot_word now = slot.state.status();
  model::expect(now.state() == run_state::vacant && now.generation() == 2 && !now.stop_requested(),
                "the slot is vacant and clean");
}

// Who finds the new generation alive sees what its spawner wrote.
PROTOCOL(slot_publish_against_lookup) {
  slot_state state;
  model::cell<int> fields{0};
  stop_result stopped = stop_result::no_such_actor;
  model::parallel(
      [&] {
        fields.write(1);
        state.publish_queued();
      },
      [&] {
        if (state.is_live(1)) model::expect(fields.read() == 1, "the new actor's fields");
      },
      [&] {
        stopped = state.request_stop(1);
        if (stopped == stop_result::requested) {
          model::expect(fields.read() == 1, "the new actor's fields");
        }
      });
  state.try_claim();
  model::expect((stopped == stop_result::requested) == state.peek().stop_requested());
}

}  // namespace
}  // namespace smarm::detail
