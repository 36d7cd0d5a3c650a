// The oneshot under the checker, by its public face.
//
// Proves, for its two ends and one stop or deadline: the value is received, destroyed with the
// receiver, or handed back, once, and visible to whoever has it; no wake is lost; a deadline leaves
// the value where a later receive finds it; nothing leaks and nothing is used after its end.
// Actors are model threads (tests/model/actors.hpp); timers are the wheel's.
// Outside: blocks that the pool gives out again.
#include <memory>
#include <optional>

#include <smarm/oneshot.hpp>

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

PROTOCOL(oneshot_send_against_park) {
  stage here;
  actor reader;
  auto ends = oneshot<parcel>();
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto got = ends.rx.recv();
          model::expect(got && got->content() == 7, "the value that was sent");
        });
      },
      [&] { model::expect(ends.tx.send(parcel(7)).has_value(), "the receiver is there"); });
}

PROTOCOL(oneshot_sender_drop_against_park) {
  stage here;
  actor reader;
  auto ends = oneshot<parcel>();
  model::cell<int> news{0};
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto got = ends.rx.recv();
          model::expect(!got && got.error() == recv_error::closed, "nothing will come");
          model::expect(news.read() == 1, "what the sender did before it went");
        });
      },
      [&] {
        news.write(1);
        ends.tx.close();
      });
}

// A value that nobody takes is destroyed, by one of the two: it owns memory, which would leak.
PROTOCOL(oneshot_receiver_drop_against_owner) {
  stage here;
  auto ends = oneshot<std::unique_ptr<int>>();
  model::parallel([&] { ends.rx.close(); },
                  [&] {
                    const auto sent = ends.tx.send(std::make_unique<int>(5));
                    model::expect(sent || *sent.error().value == 5, "sent, or handed back");
                  });
}

PROTOCOL(oneshot_receiver_drop_against_send) {
  stage here;
  auto ends = oneshot<parcel>();
  model::cell<int> news{0};
  model::parallel(
      [&] {
        news.write(1);
        ends.rx.close();
      },
      [&] {
        const auto sent = ends.tx.send(parcel(5));
        if (sent) return;
        model::expect(sent.error().value.content() == 5, "handed back");
        model::expect(news.read() == 1, "what the receiver did before it went");
      });
}

PROTOCOL(oneshot_both_go) {
  stage here;
  auto ends = oneshot<parcel>();
  model::parallel([&] { ends.rx.close(); }, [&] { ends.tx.close(); });
}

PROTOCOL(oneshot_deadline_against_send) {
  stage here(true);
  actor reader;
  auto ends = oneshot<parcel>();
  bool received = false;
  model::parallel(
      [&] {
        here.run(reader, [&] {
          const auto got = ends.rx.recv_until(deadline::from_ns(soon));
          received = got.has_value();
          model::expect(got ? got->content() == 3 : got.error() == recv_error::timed_out);
        });
      },
      [&] { model::expect(ends.tx.send(parcel(3)).has_value()); }, [&] { here.fire_due(soon); });
  if (received) return;
  const auto late = ends.rx.try_recv();
  model::expect(late && late->content() == 3, "the value is still there");
}

PROTOCOL(oneshot_stop_against_send) {
  stage here;
  actor reader;
  auto ends = oneshot<parcel>();
  bool received = false;
  ending how{};
  model::parallel([&] { how = here.run(reader, [&] { received = ends.rx.recv().has_value(); }); },
                  [&] { model::expect(ends.tx.send(parcel(3)).has_value()); },
                  [&] { under_model::stop(reader); });
  model::expect(received == (how == ending::normal), "a stop leaves the wait, or comes too late");
  if (received) return;
  const auto late = ends.rx.try_recv();
  model::expect(late && late->content() == 3, "the value is still there");
}

PROTOCOL(oneshot_stop_and_drop_against_send) {
  stage here;
  actor reader;
  auto ends = oneshot<parcel>();
  model::parallel(
      [&] {
        here.run(reader, [&] {
          oneshot_receiver<parcel> mine = std::move(ends.rx);
          static_cast<void>(mine.recv());
        });
      },
      [&] {
        const auto sent = ends.tx.send(parcel(3));
        model::expect(sent || sent.error().value.content() == 3, "sent, or handed back");
      },
      [&] { under_model::stop(reader); });
}

}  // namespace
}  // namespace smarm
