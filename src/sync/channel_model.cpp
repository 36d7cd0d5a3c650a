// The channel under the checker, by its public face.
//
// Proves, for one receiver, one or two senders and one or two values:
//   - a value that was sent is received, or destroyed with the receiver, or handed back: once, and
//     what its sender wrote is visible to whoever has it; no cell leaks or is used after its end;
//   - no wake is lost: send against park, the last sender's drop against park, a bounded sender
//   that
//     is parked against the receiver that makes room or goes;
//   - a deadline or a stop that meets a value leaves it received or queued; one that meets the room
//     for a parked sender's value leaves it sent or with its sender;
//   - of each sender values arrive in the order in which they were sent; whoever is told that the
//     channel has ended sees what each sender did before it went.
// Actors are model threads (tests/model/actors.hpp); timers are the wheel's. Cells come straight
// from the allocator (tests/model/world.cpp).
// Outside: more than two values under way, the budget after which a sender yields, blocks that the
// pool gives out again.
#include <memory>
#include <optional>

#include <smarm/channel.hpp>

#include "tests/model/actors.hpp"
#include "tests/model/parcel.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::parcel;
using under_model::stage;

constexpr std::int64_t soon = 100;

template <class Received>
bool is_value(const Received& received, int content) {
  return received.has_value() && received->content() == content;
}

PROTOCOL(channel_send_against_park) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  model::parallel(
      [&] {
        here.run(reader,
                 [&] { model::expect(is_value(ends.rx.recv(), 7), "the value that was sent"); });
      },
      [&] { model::expect(ends.tx.send(parcel(7)).has_value(), "the receiver is there"); });
}

PROTOCOL(channel_two_sends_against_park) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  model::parallel(
      [&] {
        here.run(reader, [&] {
          model::expect(is_value(ends.rx.recv(), 1), "the first of one sender");
          model::expect(is_value(ends.rx.recv(), 2), "the second of one sender");
        });
      },
      [&] {
        model::expect(ends.tx.send(parcel(1)).has_value());
        model::expect(ends.tx.send(parcel(2)).has_value());
      });
}

PROTOCOL(channel_two_senders) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto first = ends.rx.recv();
          const auto second = ends.rx.recv();
          model::expect(first && second && first->content() + second->content() == 3, "each once");
        });
      },
      [&] { model::expect(ends.tx.send(parcel(1)).has_value()); },
      [&] { model::expect(ends.tx.send(parcel(2)).has_value()); });
}

PROTOCOL(channel_last_drop_against_park) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  model::cell<int> news{0};
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto got = ends.rx.recv();
          model::expect(!got && got.error() == recv_error::closed, "nobody is left to send");
          model::expect(news.read() == 1, "the end comes after what was done before it");
        });
      },
      [&] {
        news.write(1);
        ends.tx.close();
      });
}

// As a drop that the receiver finds without waiting for it.
PROTOCOL(channel_two_drops_against_a_look) {
  auto ends = channel<parcel>();
  sender<parcel> other = ends.tx;
  model::cell<int> news{0};
  model::cell<int> others{0};
  model::parallel(
      [&] {
        const auto got = ends.rx.try_recv();
        model::expect(!got.has_value(), "nothing was sent");
        if (got.error() == recv_error::closed) {
          model::expect(news.read() == 1 && others.read() == 1, "the end is after both drops");
        }
      },
      [&] {
        news.write(1);
        ends.tx.close();
      },
      [&] {
        others.write(1);
        other.close();
      });
}

// Two senders go, one of them with a value: `closed` comes after all values.
PROTOCOL(channel_send_and_last_drop_against_park) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  sender<parcel> other = ends.tx;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          model::expect(is_value(ends.rx.recv(), 1), "what was sent before the end");
          const auto last = ends.rx.recv();
          model::expect(!last && last.error() == recv_error::closed, "then the end");
        });
      },
      [&] {
        model::expect(ends.tx.send(parcel(1)).has_value());
        ends.tx.close();
      },
      [&] { other.close(); });
}

PROTOCOL(channel_receiver_drop_against_send) {
  stage here;
  auto ends = channel<parcel>();
  std::optional<receiver<parcel>> rx(std::move(ends.rx));
  model::parallel([&] { rx.reset(); },
                  [&] {
                    const auto sent = ends.tx.send(parcel(5));
                    model::expect(sent || (sent.error().why == send_failure::closed &&
                                           sent.error().value.content() == 5),
                                  "sent, or handed back");
                  });
}

// What is queued when the receiver goes is destroyed: the values own memory, which would leak.
PROTOCOL(channel_receiver_drop_with_values_queued) {
  stage here;
  auto ends = channel<std::unique_ptr<int>>();
  std::optional<receiver<std::unique_ptr<int>>> rx(std::move(ends.rx));
  model::expect(ends.tx.send(std::make_unique<int>(1)).has_value(), "the receiver is there");
  model::parallel([&] { rx.reset(); },
                  [&] { static_cast<void>(ends.tx.send(std::make_unique<int>(2))); });
}

PROTOCOL(channel_receiver_drop_against_two_senders) {
  stage here;
  auto ends = channel<parcel>();
  std::optional<receiver<parcel>> rx(std::move(ends.rx));
  std::optional<sender<parcel>> first(ends.tx);
  std::optional<sender<parcel>> second(std::move(ends.tx));
  model::parallel([&] { rx.reset(); },
                  [&] {
                    const auto sent = first->send(parcel(5));
                    model::expect(sent || sent.error().value.content() == 5);
                    first.reset();
                  },
                  [&] {
                    const auto sent = second->send(parcel(6));
                    model::expect(sent || sent.error().value.content() == 6);
                    second.reset();
                  });
}

PROTOCOL(channel_deadline_against_send) {
  stage here(true);
  actor reader;
  auto ends = channel<parcel>();
  std::optional<bool> received;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto got = ends.rx.recv_until(deadline::from_ns(soon));
          received = got.has_value();
          model::expect(got ? got->content() == 3 : got.error() == recv_error::timed_out);
        });
      },
      [&] { model::expect(ends.tx.send(parcel(3)).has_value()); }, [&] { here.fire_due(soon); });
  const auto left = ends.rx.try_recv();
  model::expect(left.has_value() != *received, "the value was received or is still queued");
  model::expect(!left || left->content() == 3);
}

PROTOCOL(channel_stop_against_send) {
  stage here;
  actor reader;
  auto ends = channel<parcel>();
  bool received = false;
  ending how{};
  model::parallel(
      [&] {
        how = here.run(reader, [&] {
          const auto got = ends.rx.recv();
          received = true;
          model::expect(is_value(got, 3));
        });
      },
      [&] { model::expect(ends.tx.send(parcel(3)).has_value()); },
      [&] { under_model::stop(reader); });
  const auto left = ends.rx.try_recv();
  model::expect(received == (how == ending::normal), "a stop leaves the wait, or comes too late");
  model::expect(left.has_value() != received, "the value was received or is still queued");
}

// A receiver that was stopped, and the next wait of another actor: the sender's wake is the
// latter's.
PROTOCOL(channel_stop_then_receive_again) {
  stage here;
  actor first;
  actor second;
  auto ends = channel<parcel>();
  model::parallel(
      [&] {
        bool received = false;
        here.run(first, [&] { received = is_value(ends.rx.recv(), 1); });
        if (received) return;
        here.run(second, [&] { model::expect(is_value(ends.rx.recv(), 1), "the value"); });
      },
      [&] { model::expect(ends.tx.send(parcel(1)).has_value()); },
      [&] { under_model::stop(first); });
}

// ---- bounded ---------------------------------------------------------------------------------

PROTOCOL(channel_bounded_send_parks) {
  stage here;
  actor reader;
  actor writer;
  auto ends = channel<parcel>(1);
  model::parallel(
      [&] {
        here.run(reader, [&] {
          model::expect(is_value(ends.rx.recv(), 1), "the first");
          model::expect(is_value(ends.rx.recv(), 2), "the second");
        });
      },
      [&] {
        here.run(writer, [&] {
          model::expect(ends.tx.send(parcel(1)).has_value());
          model::expect(ends.tx.send(parcel(2)).has_value());
        });
      });
}

PROTOCOL(channel_bounded_receiver_goes) {
  stage here;
  actor writer;
  auto ends = channel<parcel>(1);
  model::expect(ends.tx.try_send(parcel(1)).has_value(), "there is room for one");
  std::optional<receiver<parcel>> rx(std::move(ends.rx));
  model::parallel([&] { rx.reset(); },
                  [&] {
                    here.run(writer, [&] {
                      const auto sent = ends.tx.send(parcel(2));
                      model::expect(!sent && sent.error().why == send_failure::closed &&
                                        sent.error().value.content() == 2,
                                    "no room came, so it is handed back");
                    });
                  });
}

PROTOCOL(channel_bounded_room_against_deadline) {
  stage here(true);
  actor writer;
  auto ends = channel<parcel>(1);
  model::expect(ends.tx.try_send(parcel(1)).has_value(), "there is room for one");
  bool sent = false;
  model::parallel([&] { model::expect(is_value(ends.rx.try_recv(), 1), "the first"); },
                  [&] {
                    here.run(writer, [&] {
                      const auto result = ends.tx.send_until(parcel(2), deadline::from_ns(soon));
                      sent = result.has_value();
                      model::expect(sent || (result.error().why == send_failure::timed_out &&
                                             result.error().value.content() == 2));
                    });
                  },
                  [&] { here.fire_due(soon); });
  const auto left = ends.rx.try_recv();
  model::expect(left.has_value() == sent, "sent and queued, or kept");
  model::expect(ends.tx.try_send(parcel(3)).has_value(), "the room is not lost");
  model::expect(!ends.tx.try_send(parcel(4)).has_value(), "and there is room for one");
}

PROTOCOL(channel_bounded_room_against_stop) {
  stage here;
  actor writer;
  auto ends = channel<parcel>(1);
  model::expect(ends.tx.try_send(parcel(1)).has_value(), "there is room for one");
  bool sent = false;
  model::parallel([&] { model::expect(is_value(ends.rx.try_recv(), 1), "the first"); },
                  [&] { here.run(writer, [&] { sent = ends.tx.send(parcel(2)).has_value(); }); },
                  [&] { under_model::stop(writer); });
  const auto left = ends.rx.try_recv();
  model::expect(left.has_value() == sent, "an exception out of send means: not sent");
  model::expect(ends.tx.try_send(parcel(3)).has_value(), "the room is not lost");
}

}  // namespace
}  // namespace smarm
