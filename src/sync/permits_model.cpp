// permits under the checker: what a semaphore is, and what bounds a channel.
//
// Proves, for one or two takers and one or two permits that come back:
//   - no permit is lost or taken twice, and none free while somebody waits for ever;
//   - who takes a permit sees what its giver did before;
//   - a deadline or a stop that meets a permit: it is the waiter's, or it is free again;
//   - close sends away whoever waits and whoever comes.
// Actors are model threads (tests/model/actors.hpp); timers are the wheel's.
// Outside: more than two waiters, the limit of a semaphore.
#include "sync/permits.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::stage;
using taken = permits::taken;

constexpr std::int64_t soon = 100;

taken acquire_from(permits& room, deadline until = deadline::never()) {
  if (room.try_take()) return taken::free;
  waiter me;
  return room.take(me, wait_reason::semaphore_acquire, until);
}

bool has_permit(taken how) { return how == taken::free || how == taken::waited; }

PROTOCOL(permits_take_against_give_back) {
  stage here;
  actor taker;
  permits room(0);
  model::cell<int> news{0};
  model::parallel(
      [&] {
        here.run(taker, [&] {
          model::expect(has_permit(acquire_from(room)), "the permit that came back");
          model::expect(news.read() == 1, "what the giver did before");
        });
      },
      [&] {
        news.write(1);
        room.give_back();
      });
  model::expect(room.free_count() == 0);
}

PROTOCOL(permits_two_takers) {
  stage here;
  actor first;
  actor second;
  permits room(1);
  model::cell<int> guarded{0};
  const auto visit = [&] {
    model::expect(has_permit(acquire_from(room)), "a permit in the end");
    guarded.write(guarded.read() + 1);
    room.give_back();
  };
  model::parallel([&] { here.run(first, visit); }, [&] { here.run(second, visit); });
  model::expect(guarded.read() == 2 && room.free_count() == 1, "one permit, and it is free again");
}

PROTOCOL(permits_two_givers) {
  stage here;
  actor first;
  actor second;
  permits room(0);
  const auto take = [&] { model::expect(has_permit(acquire_from(room)), "a permit in the end"); };
  model::parallel([&] { here.run(first, take); }, [&] { here.run(second, take); },
                  [&] { model::expect(room.add(2, 2), "two fit"); });
  model::expect(room.free_count() == 0);
}

PROTOCOL(permits_deadline_against_give_back) {
  stage here(true);
  actor taker;
  permits room(0);
  bool got = false;
  model::parallel(
      [&] {
        here.run(taker, [&] { got = has_permit(acquire_from(room, deadline::from_ns(soon))); });
      },
      [&] { room.give_back(); }, [&] { here.fire_due(soon); });
  model::expect(room.free_count() == (got ? 0 : 1), "the permit is the taker's, or free");
  model::expect(room.try_take() != got, "and whoever comes next can have it");
}

PROTOCOL(permits_stop_against_give_back) {
  stage here;
  actor taker;
  permits room(0);
  bool got = false;
  model::parallel([&] { here.run(taker, [&] { got = has_permit(acquire_from(room)); }); },
                  [&] { room.give_back(); }, [&] { under_model::stop(taker); });
  model::expect(room.try_take() != got, "the permit is the taker's, or free");
}

// The stopped one leaves the place in the queue to the other.
// No exchange fails without a reason: with one that does it takes minutes.
PROTOCOL_WITH(permits_stop_of_the_first_waiter, o.weak_failures = 0; SAMPLED_IN_THE_SUITE) {
  stage here;
  actor first;
  actor second;
  permits room(0);
  bool first_got = false;
  model::parallel(
      [&] {
        here.run(first, [&] {
          first_got = has_permit(acquire_from(room));
          if (first_got) room.give_back();
        });
      },
      [&] {
        here.run(second,
                 [&] { model::expect(has_permit(acquire_from(room)), "a permit in the end"); });
      },
      [&] {
        under_model::stop(first);
        room.give_back();
      });
}

PROTOCOL(permits_close_against_take) {
  stage here;
  actor taker;
  permits room(0);
  model::parallel(
      [&] {
        here.run(taker,
                 [&] { model::expect(acquire_from(room) == taken::closed, "there will be none"); });
      },
      [&] { room.close(); });
  room.give_back();  // by one who had taken before: nobody waits for it any more
  model::expect(room.free_count() == 1, "the word is nobody's");
}

}  // namespace
}  // namespace smarm::detail
