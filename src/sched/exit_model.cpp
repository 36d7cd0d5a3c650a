// The end of an actor under the checker: join against exit, and hooks against exit.
//
// Proves, for one actor that ends, one joiner or one that hangs on and takes off a hook:
//   - the joiner is woken, and sees the result and the reason; a deadline or a stop of the joiner
//     leaves a handle that still can be joined;
//   - the body is destroyed once, by whoever lets go of it last;
//   - a hook that was hung on is called once or taken off, never both or neither; its references
//   add
//     up.
// The exit here does what scheduler::publish_end does, in that order; actors are model threads
// (tests/model/actors.hpp).
// Outside: two joiners (misuse), more than two hooks, a spawn.
#include <optional>

#include "sched/body.hpp"
#include "sched/exit_hook_list.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::stage;

constexpr std::int64_t soon = 100;

// result is an actor's body: what the joiner takes.
struct result : actor_body {
  explicit result(std::in_place_t, int) {}
  void run() override { content.write(7); }
  void discard() noexcept override {}
  model::cell<int> content{0};
};

// start makes a body as body_start does, with two references.
body_ref start(actor& who) {
  body_ref made = make_body<result>(0);
  body_header& header = header_of(*made);
  header.started = true;
  header.references.store(2, relaxed);
  who.body = &header;
  return made;
}

// publish_end is scheduler::publish_end.
void publish_end(actor& self) {
  body_header& header = *self.body;
  header.why = exit_reason::stopped();
  self.state.set_done();
  exit_hook_list hooks(self);
  static_cast<void>(header.has_holder());
  header.end();
  hooks.call_all(self.who(), header.why);
  body_release(body_of(header));
  self.body = nullptr;
  static_cast<void>(self.state.reclaim());
}

void live(actor& self) {
  self.state.try_claim();
  body_of(*self.body).run();
  publish_end(self);
}

int take(actor_body& body) { return static_cast<result&>(body).content.read(); }

PROTOCOL(exit_join_against_exit) {
  stage here;
  actor joiner;
  actor child;
  body_ref handle = start(child);
  model::parallel(
      [&] {
        here.run(joiner, [&] {
          model::expect(body_wait(*handle, deadline::never()), "it ends");
          model::expect(take(*handle) == 7, "the result");
          model::expect(body_exit_reason(*handle).is_stopped(), "the reason");
        });
        handle = {};
      },
      [&] { live(child); });
}

PROTOCOL(exit_drop_of_the_handle_against_exit) {
  stage here;
  actor child;
  body_ref handle = start(child);
  model::parallel([&] { handle = {}; }, [&] { live(child); });
}

PROTOCOL(exit_join_with_deadline_against_exit) {
  stage here(true);
  actor joiner;
  actor child;
  body_ref handle = start(child);
  model::parallel(
      [&] {
        here.run(joiner, [&] {
          if (!body_wait(*handle, deadline::from_ns(soon))) {
            model::expect(body_wait(*handle, deadline::never()), "it can be joined again");
          }
          model::expect(take(*handle) == 7, "the result");
        });
        handle = {};
      },
      [&] { live(child); }, [&] { here.fire_due(soon); });
}

PROTOCOL(exit_stop_of_the_joiner_against_exit) {
  stage here;
  actor joiner;
  actor child;
  body_ref handle = start(child);
  model::parallel(
      [&] {
        const ending how =
            here.run(joiner, [&] { static_cast<void>(body_wait(*handle, deadline::never())); });
        if (how == ending::normal) model::expect(take(*handle) == 7, "the result");
        if (body_has_ended(*handle)) model::expect(take(*handle) == 7, "the result");
        handle = {};
      },
      [&] { live(child); }, [&] { under_model::stop(joiner); });
}

// hook counts its calls, and its end.
struct hook final : exit_hook {
  explicit hook(int& calls, bool& gone) : calls_(calls), gone_(gone) {}
  ~hook() override { gone_ = true; }
  void on_exit(pid, const exit_reason& why) noexcept override {
    calls_ += why.is_stopped() ? 1 : 100;
    seen_.write(seen_.read() + 1);
  }

 private:
  int& calls_;
  bool& gone_;
  model::cell<int> seen_{0};
};

PROTOCOL(exit_add_hook_against_exit) {
  stage here;
  actor child;
  stage::introduce(child, 1);
  const pid who = child.who();
  body_ref handle = start(child);
  int calls = 0;
  bool gone = false;
  bool added = false;
  model::parallel(
      [&] {
        auto* const mine = new hook(calls, gone);
        added = add_exit_hook(who, *mine);
        mine->drop_reference();
      },
      [&] { live(child); });
  model::expect(calls == (added ? 1 : 0) && gone, "a hook that hangs on is called once");
}

PROTOCOL(exit_remove_hook_against_exit) {
  stage here;
  actor child;
  stage::introduce(child, 1);
  const pid who = child.who();
  body_ref handle = start(child);
  int calls = 0;
  bool gone = false;
  bool removed = false;
  auto* const mine = new hook(calls, gone);
  model::expect(add_exit_hook(who, *mine), "it lives");
  model::parallel(
      [&] {
        removed = remove_exit_hook(who, *mine);
        mine->drop_reference();
      },
      [&] { live(child); });
  model::expect(calls == (removed ? 0 : 1) && gone, "taken off or called, once");
}

// One is hung on and one taken off, each while the exit may take the list.
PROTOCOL(exit_two_hooks_against_exit) {
  stage here;
  actor child;
  stage::introduce(child, 1);
  const pid who = child.who();
  body_ref handle = start(child);
  int calls[2] = {};
  bool gone[2] = {};
  bool added = false;
  bool removed = false;
  auto* const first = new hook(calls[0], gone[0]);
  auto* const second = new hook(calls[1], gone[1]);
  model::expect(add_exit_hook(who, *first), "it lives");
  model::parallel(
      [&] {
        removed = remove_exit_hook(who, *first);
        first->drop_reference();
      },
      [&] {
        added = add_exit_hook(who, *second);
        second->drop_reference();
      },
      [&] { live(child); });
  model::expect(calls[0] == (removed ? 0 : 1) && gone[0], "taken off or called, once");
  model::expect(calls[1] == (added ? 1 : 0) && gone[1], "a hook that hangs on is called once");
}

}  // namespace
}  // namespace smarm::detail
