// The reply cell under the checker: a reply against a deadline, a stop of the caller, and the death
// of the server.
//
// Proves, for one call (or two that are waited for together), one answerer, one server that ends,
// and one stop or deadline of the caller: the caller gets the reply or hears of the death, never
// both and never neither, and sees the value or the reason; a value that comes too late is
// destroyed, once; no wake is lost; the cell is freed once, by whoever lets go of it last, whether
// or not it still hangs on the server, and whenever the server gives back the request that lies in
// its block.
//
// The exit here does what scheduler::publish_end does to hooks; actors are model threads
// (tests/model/actors.hpp).
//
// Outside: requests in the mailbox; a server that keeps more than two answered cells.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <typeinfo>
#include <utility>

#include <smarm/detail/envelope.hpp>
#include <smarm/detail/reply_core.hpp>

#include "actor/actor_box.hpp"
#include "actor/mailbox_wait.hpp"
#include "actor/reply_cell.hpp"
#include "base/raw_mutex.hpp"
#include "sched/exit_hook_list.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/parcel.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::parcel;
using under_model::stage;

constexpr std::int64_t soon = 100;

// It owns memory: what nobody destroys leaks, and what two destroy is freed twice.
using value = std::unique_ptr<parcel>;

// call makes a cell that hangs on the server, as post_request does.
reply_cell& call(actor& server) {
  reply_cell& cell = *reply_cell::make(reply_layout_of<value>);
  const raw_guard guard(server.lock);
  cell.hang_on(server, 1);
  return cell;
}

// answer is reply_send of one that is not the server.
bool answer(reply_cell& cell) {
  ::new (cell.place()) value(std::make_unique<parcel>(7));
  cell.take_off();
  const bool taken = cell.send();
  cell.drop_answerer();
  return taken;
}

// answer_oneself is reply_send of the server, and the next time it takes its lock.
void answer_oneself(actor& server, reply_cell& cell) {
  ::new (cell.place()) value(std::make_unique<parcel>(7));
  static_cast<void>(cell.send());
  cell.chain_before(nullptr);
  {
    const raw_guard guard(server.lock);
    cell.take_off_locked();
  }
  reply_cell::drop_answered(&cell);
}

// A request that lies in the block of its cell, as calls make them.
constexpr message_type request_type{
    sizeof(value), alignof(value),
    [](void* at) noexcept { std::destroy_at(static_cast<value*>(at)); }, &typeid(value),
    &call_give_back};

envelope& request_of(reply_cell& cell) {
  return call_envelope(cell, shared_layout_of<value, value>);
}

reply_cell& call_with_request(actor& server) {
  reply_cell& cell = *reply_cell::make(shared_layout_of<value, value>, &request_type);
  ::new (payload_of(request_of(cell))) value(std::make_unique<parcel>(3));
  const raw_guard guard(server.lock);
  cell.hang_on(server, 1);
  return cell;
}

enum class request_goes { before_the_answer, behind_the_answer, behind_the_next_look };

// serve_one is a server that handles the request, answers, and looks for the next.
void serve_one(stage& here, actor& server, reply_cell& cell, request_goes when) {
  here.run(server, [&] {
    auto& box = static_cast<actor_box&>(*extension_of_self());
    full_envelope request(&request_of(cell));
    model::expect((*static_cast<value*>(payload_of(*request)))->content() == 3, "the request");
    if (when == request_goes::before_the_answer) request.reset();
    ::new (cell.place()) value(std::make_unique<parcel>(7));
    static_cast<void>(cell.send());
    box.note_answered(cell);
    if (when == request_goes::behind_the_answer) request.reset();
    static_cast<void>(box.take_first(deadline::from_ns(0)));
  });
  under_model::finish(server, exit_reason::killed());
}

// end_server is what scheduler::publish_end does, as far as hooks are concerned.
void end_server(actor& server) {
  server.state.try_claim();
  server.state.set_done();
  exit_hook_list hooks(server);
  hooks.call_all(server.who(), exit_reason::killed());
  static_cast<void>(server.state.reclaim());
}

int content(reply_cell& cell) { return (*static_cast<value*>(cell.place()))->content(); }

void expect_outcome(reply_cell& cell, reply_status status) {
  if (status == reply_status::replied) model::expect(content(cell) == 7, "the value");
  if (status == reply_status::died) model::expect(cell.reason().is_killed(), "the reason");
}

PROTOCOL(reply_against_wait) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  model::parallel(
      [&] {
        here.run(caller, [&] {
          model::expect(cell.wait(deadline::never()) == reply_status::replied, "it comes");
          model::expect(content(cell) == 7, "the value");
        });
        cell.drop_caller();
      },
      [&] { model::expect(answer(cell), "the caller waits"); });
}

// expect_in is a caller that waits from before the request can be seen, as post_and_wait has it;
// answer_posted waits for that request.
waker expect_in(actor& server, reply_cell& cell, atomic<int>& posted) {
  const raw_guard guard(server.lock);
  cell.hang_on(server, 1);
  const waker wait = begin_wait();
  cell.expect(wait);
  posted.store(1, relaxed);  // relaxed: the server takes the lock
  return wait;
}

bool answer_posted(actor& server, reply_cell& cell, atomic<int>& posted) {
  posted.await([](int now) { return now == 1; }, relaxed);
  {
    const raw_guard guard(server.lock);
  }
  return answer(cell);
}

PROTOCOL(reply_to_expecting_caller) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = *reply_cell::make(reply_layout_of<value>);
  atomic<int> posted{0};
  model::parallel(
      [&] {
        here.run(caller, [&] {
          const waker wait = expect_in(server, cell, posted);
          model::expect(cell.wait_expected(wait, deadline::never()) == reply_status::replied,
                        "it comes");
          model::expect(content(cell) == 7, "the value");
        });
        cell.drop_caller();
      },
      [&] { model::expect(answer_posted(server, cell, posted), "the caller waits"); });
}

PROTOCOL(reply_against_expecting_caller) {
  stage here(true);
  actor caller;
  actor server;
  reply_cell& cell = *reply_cell::make(reply_layout_of<value>);
  atomic<int> posted{0};
  bool taken = false;
  reply_status status = reply_status::pending;
  model::parallel(
      [&] {
        here.run(caller, [&] {
          const waker wait = expect_in(server, cell, posted);
          status = cell.wait_expected(wait, deadline::from_ns(soon));
          expect_outcome(cell, status);
        });
        cell.drop_caller();
      },
      [&] { taken = answer_posted(server, cell, posted); }, [&] { here.fire_due(soon); });
  model::expect(taken || status == reply_status::pending, "refused: the caller has gone");
}

PROTOCOL(reply_by_the_server_against_wait) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  model::parallel(
      [&] {
        here.run(caller, [&] {
          model::expect(cell.wait(deadline::never()) == reply_status::replied, "it comes");
          model::expect(content(cell) == 7, "the value");
        });
        cell.drop_caller();
      },
      [&] { answer_oneself(server, cell); });
}

PROTOCOL(reply_death_against_wait) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  model::parallel(
      [&] {
        here.run(caller, [&] {
          model::expect(cell.wait(deadline::never()) == reply_status::died, "it is told");
          model::expect(cell.reason().is_killed(), "the reason");
        });
        cell.drop_caller();
      },
      [&] {
        end_server(server);
        cell.drop_answerer();
      });
}

PROTOCOL(reply_by_another_against_death) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  bool taken = false;
  reply_status status = reply_status::pending;
  model::parallel(
      [&] {
        here.run(caller, [&] {
          status = cell.wait(deadline::never());
          expect_outcome(cell, status);
        });
        cell.drop_caller();
      },
      [&] { taken = answer(cell); }, [&] { end_server(server); });
  model::expect(status == (taken ? reply_status::replied : reply_status::died), "one of the two");
}

PROTOCOL(reply_against_deadline) {
  stage here(true);
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  bool taken = false;
  reply_status status = reply_status::pending;
  model::parallel(
      [&] {
        here.run(caller, [&] {
          status = cell.wait(deadline::from_ns(soon));
          expect_outcome(cell, status);
        });
        cell.drop_caller();
      },
      [&] { taken = answer(cell); }, [&] { here.fire_due(soon); });
  model::expect(taken || status == reply_status::pending, "refused: the caller has gone");
}

PROTOCOL(reply_by_the_server_against_a_caller_that_goes) {
  stage here;
  actor server;
  reply_cell& cell = call(server);
  model::parallel([&] { cell.drop_caller(); }, [&] { answer_oneself(server, cell); });
}

// A server keeps what it has answered until it looks for more messages, or ends.
PROTOCOL(reply_by_a_server_that_looks_and_ends) {
  stage here;
  actor server;
  stage::introduce(server, 1);
  under_model::with_box(server);
  reply_cell* const cells[] = {&call(server), &call(server), &call(server)};
  model::parallel(
      [&] {
        here.run(server, [&] {
          auto& box = static_cast<actor_box&>(*extension_of_self());
          for (reply_cell* const cell : cells) {
            ::new (cell->place()) value(std::make_unique<parcel>(7));
            static_cast<void>(cell->send());
            box.note_answered(*cell);
            if (cell == cells[1]) static_cast<void>(box.take_first(deadline::from_ns(0)));
          }
        });
        under_model::finish(server, exit_reason::killed());
      },
      [&] { cells[1]->drop_caller(); });
  cells[0]->drop_caller();
  cells[2]->drop_caller();
}

void serve_against_a_caller_that_goes(request_goes when) {
  stage here;
  actor server;
  stage::introduce(server, 1);
  under_model::with_box(server);
  reply_cell& cell = call_with_request(server);
  model::parallel([&] { serve_one(here, server, cell, when); }, [&] { cell.drop_caller(); });
}

PROTOCOL(reply_with_a_request_that_goes_before_the_answer) {
  serve_against_a_caller_that_goes(request_goes::before_the_answer);
}

PROTOCOL(reply_with_a_request_that_goes_behind_the_answer) {
  serve_against_a_caller_that_goes(request_goes::behind_the_answer);
}

PROTOCOL(reply_with_a_request_that_goes_behind_the_next_look) {
  serve_against_a_caller_that_goes(request_goes::behind_the_next_look);
}

// The server handed the call on, and lets go of the request while another answers.
PROTOCOL(reply_by_another_against_the_end_of_the_request) {
  stage here;
  actor server;
  reply_cell& cell = call_with_request(server);
  model::parallel([&] { static_cast<void>(answer(cell)); },
                  [&] { envelope_discard(request_of(cell)); }, [&] { cell.drop_caller(); });
}

PROTOCOL(reply_against_a_caller_that_goes) {
  stage here;
  actor server;
  reply_cell& cell = call(server);
  model::parallel([&] { cell.drop_caller(); }, [&] { static_cast<void>(answer(cell)); });
}

PROTOCOL(reply_death_against_a_caller_that_goes) {
  stage here;
  actor server;
  reply_cell& cell = call(server);
  model::parallel([&] { cell.drop_caller(); },
                  [&] {
                    end_server(server);
                    cell.drop_answerer();
                  });
}

// Two answers to one who waits for either: one wait, with its waker left twice.
PROTOCOL(reply_of_two_against_wait_for_any) {
  stage here;
  actor caller;
  actor server;
  reply_cell& first = call(server);
  reply_cell& second = call(server);
  reply_cell* const both[] = {&first, &second};
  model::parallel(
      [&] {
        here.run(caller, [&] {
          const std::size_t which = reply_cell::wait_any(both, deadline::never());
          model::expect(which < 2, "one of the two");
          model::expect(content(*both[which]) == 7, "the value");
        });
        first.drop_caller();
        second.drop_caller();
      },
      [&] { static_cast<void>(answer(first)); }, [&] { static_cast<void>(answer(second)); });
}

// One answer of two: it ends the wait, whenever it comes, and the other call leaves nothing behind.
PROTOCOL(reply_of_one_against_wait_for_any) {
  stage here;
  actor caller;
  actor server;
  reply_cell& first = call(server);
  reply_cell& second = call(server);
  reply_cell* const both[] = {&first, &second};
  model::parallel(
      [&] {
        here.run(caller, [&] {
          model::expect(reply_cell::wait_any(both, deadline::never()) == 0, "the one that came");
        });
        first.drop_caller();
        second.drop_caller();
      },
      [&] { static_cast<void>(answer(first)); });
  model::expect(server.hooks.load(relaxed) == nullptr, "none hangs on the server");
  second.drop_answerer();
}

// One of two calls is answered by another while the server ends with both on it.
PROTOCOL(reply_to_one_of_two_against_death) {
  stage here;
  actor server;
  reply_cell& first = call(server);
  reply_cell& second = call(server);
  bool taken = false;
  model::parallel([&] { taken = answer(second); }, [&] { end_server(server); });
  model::expect(first.look() == reply_status::died, "nobody answers it any more");
  model::expect(second.look() == (taken ? reply_status::replied : reply_status::died));
  first.drop_answerer();
  first.drop_caller();
  second.drop_caller();
}

PROTOCOL(reply_against_stop_of_the_caller) {
  stage here;
  actor caller;
  actor server;
  reply_cell& cell = call(server);
  bool taken = false;
  reply_status status = reply_status::pending;
  ending how{};
  model::parallel(
      [&] {
        how = here.run(caller, [&] {
          status = cell.wait(deadline::never());
          expect_outcome(cell, status);
        });
        cell.drop_caller();
      },
      [&] { taken = answer(cell); }, [&] { under_model::stop(caller); });
  model::expect((how == ending::normal) == (status == reply_status::replied),
                "replied, or stopped");
  model::expect(taken || how == ending::stopped, "refused: the caller has gone");
}

}  // namespace
}  // namespace smarm::detail
