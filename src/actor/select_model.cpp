// select under the checker: one wait that is registered in several places at once.
//
// Proves, for a receiver of two sources and a sender for each:
//   - a value that is sent is received by this select or the next: none sleeps on it;
//   - whichever source was not chosen works as before: its waker was taken back whole;
//   - a deadline and a stop take every registration along.
// Actors are model threads (tests/model/actors.hpp). Outside: three sources and more, the choice
// among several that are ready (here the first).
#include <smarm/channel.hpp>
#include <smarm/oneshot.hpp>
#include <smarm/select.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/exits.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::finish;
using under_model::stage;
using under_model::with_box;

using received = std::expected<int, recv_error>;

constexpr std::int64_t soon = 100;

PROTOCOL(select_two_channels_against_their_senders) {
  stage here;
  actor chooser;
  auto first = channel<int>();
  auto second = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          int sum = 0;
          for (int turn = 0; turn < 2; ++turn) {
            sum += select(on(first.rx, [](received v) { return v.value_or(0); }),
                          on(second.rx, [](received v) { return v.value_or(0); }));
          }
          model::expect(sum == 3, "each value once");
        });
      },
      [&] { static_cast<void>(first.tx.try_send(1)); },
      [&] { static_cast<void>(second.tx.try_send(2)); });
}

PROTOCOL(select_channel_left_against_its_sender) {
  stage here;
  actor chooser;
  auto first = channel<int>();
  auto second = channel<int>();
  static_cast<void>(second.tx.try_send(2));
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(first.rx, [](received v) { return v.value_or(0); }),
                                    on(second.rx, [](received v) { return v.value_or(0); }));
          if (chosen == 1) {
            model::expect(second.rx.try_recv().value_or(0) == 2, "what was not chosen is there");
          } else {
            model::expect(first.rx.recv().value_or(0) == 1, "what comes later is received");
          }
        });
      },
      [&] { static_cast<void>(first.tx.try_send(1)); });
}

PROTOCOL_WITH(select_channel_and_mailbox, SAMPLED_IN_THE_SUITE) {
  stage here;
  actor chooser;
  stage::introduce(chooser, 1);
  with_box(chooser);
  const pid who = chooser.who();
  auto ends = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          int sum = 0;
          for (int turn = 0; turn < 2; ++turn) {
            sum += select(on(ends.rx, [](received v) { return v.value_or(0); }),
                          on_message([](int v) { return v; }));
          }
          model::expect(sum == 3, "each once");
        });
        finish(chooser, exit_reason::normal());
      },
      [&] { static_cast<void>(ends.tx.try_send(1)); }, [&] { send(who, 2); });
}

PROTOCOL(select_message_against_its_sender) {
  stage here;
  actor chooser;
  stage::introduce(chooser, 1);
  with_box(chooser);
  const pid who = chooser.who();
  auto ends = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(ends.rx, [](received v) { return v.value_or(0); }),
                                    on_message([](int v) { return v; }));
          model::expect(chosen == 2 && receive<int>() == 3, "in their order");
        });
        finish(chooser, exit_reason::normal());
      },
      [&] {
        send(who, 2);
        send(who, 3);
      });
}

PROTOCOL(select_message_left_against_its_sender) {
  stage here;
  actor chooser;
  stage::introduce(chooser, 1);
  with_box(chooser);
  const pid who = chooser.who();
  auto ends = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(ends.rx, [](received v) { return v.value_or(0); }),
                                    on_message([](int v) { return v; }));
          if (chosen == 1) {
            model::expect(receive<int>() == 2, "what comes later is received");
          } else {
            model::expect(chosen == 2 && ends.rx.recv().value_or(0) == 1, "likewise");
          }
        });
        finish(chooser, exit_reason::normal());
      },
      [&] {
        static_cast<void>(ends.tx.try_send(1));
        send(who, 2);
      });
}

// Nobody else wakes the chooser: what it left of its wait has to be seen by the one who sends.
PROTOCOL(select_oneshot_against_its_sender) {
  stage here;
  actor chooser;
  auto answer = oneshot<int>();
  auto ends = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(answer.rx, [](received v) { return v.value_or(0); }),
                                    on(ends.rx, [](received v) { return v.value_or(0); }));
          model::expect(chosen == 2, "it comes");
        });
      },
      [&] { static_cast<void>(answer.tx.send(2)); });
}

PROTOCOL(select_oneshot_left_against_its_sender) {
  stage here;
  actor chooser;
  auto answer = oneshot<int>();
  auto ends = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(answer.rx, [](received v) { return v.value_or(0); }),
                                    on(ends.rx, [](received v) { return v.value_or(0); }));
          if (chosen == 1) {
            model::expect(answer.rx.recv().value_or(0) == 2, "what comes later is received");
          } else {
            model::expect(chosen == 2 && ends.rx.recv().value_or(0) == 1, "likewise");
          }
        });
      },
      [&] { static_cast<void>(ends.tx.try_send(1)); },
      [&] { static_cast<void>(answer.tx.send(2)); });
}

PROTOCOL(select_deadline_against_a_sender) {
  stage here(true);
  actor chooser;
  auto first = channel<int>();
  auto second = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const int chosen = select(on(first.rx, [](received v) { return v.value_or(0); }),
                                    on(second.rx, [](received v) { return v.value_or(0); }),
                                    after(deadline::from_ns(soon), [] { return -1; }));
          if (chosen == -1) model::expect(first.rx.recv().value_or(0) == 1, "it stays to be had");
        });
      },
      [&] { static_cast<void>(first.tx.try_send(1)); }, [&] { here.fire_due(soon); });
}

PROTOCOL(select_stop_against_a_sender) {
  stage here;
  actor chooser;
  auto first = channel<int>();
  auto second = channel<int>();
  bool taken = false;
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          select(on(first.rx, [&](received v) { taken = v.has_value(); }),
                 on(second.rx, [](received) {}));
        });
      },
      [&] { static_cast<void>(first.tx.try_send(1)); }, [&] { under_model::stop(chooser); });
  model::expect(first.rx.try_recv().has_value() != taken, "received, or still there");
}

PROTOCOL(select_channel_that_ends) {
  stage here;
  actor chooser;
  auto first = channel<int>();
  auto second = channel<int>();
  model::parallel(
      [&] {
        here.run(chooser, [&] {
          const bool closed = select(on(first.rx, [](received v) { return !v.has_value(); }),
                                     on(second.rx, [](received) { return false; }));
          model::expect(closed, "closed");
        });
      },
      [&] { first.tx.close(); });
}

}  // namespace
}  // namespace smarm
