// Monitors under the checker, by their public face: monitor and demonitor against the exit.
//
// Proves, for one actor that ends and one watcher:
//   - a down is delivered once, or, after a demonitor that says so, never;
//   - who watches an actor that ends at that moment gets its down or no_such_actor;
//   - nothing leaks, whoever lets go of the hook last.
// The exit does what scheduler::publish_end does with hooks; actors are model threads
// (tests/model/actors.hpp).
// Outside: links between many, a bounded channel (misuse).
#include <optional>

#include <smarm/monitor.hpp>

#include "sched/exit_hook_list.hpp"
#include "tests/model/actors.hpp"
#include "tests/model/protocol.hpp"

namespace smarm {
namespace {

using under_model::actor;
using under_model::ending;
using under_model::stage;

void live(actor& self) {
  const pid who = self.who();
  self.state.try_claim();
  self.state.set_done();
  detail::exit_hook_list hooks(self);
  hooks.call_all(who, exit_reason::stopped());
  static_cast<void>(self.state.reclaim());
}

bool tells_of_the_end(const down& news) {
  return news.reason.is_stopped() || news.reason.kind() == exit_kind::noproc;
}

PROTOCOL(monitor_against_exit) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(child, 1);
  const pid who = child.who();
  model::parallel(
      [&] {
        here.run(watcher, [&] {
          monitor_handle watch = monitor(who);
          model::expect(tells_of_the_end(watch.recv()), "the down");
        });
      },
      [&] { live(child); });
}

PROTOCOL(monitor_waiting_against_exit) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(child, 1);
  std::optional<monitor_handle> watch(monitor(child.who()));
  model::parallel(
      [&] {
        here.run(watcher, [&] {
          model::expect(watch->recv().reason.is_stopped(), "it lived when it was watched");
        });
        watch.reset();
      },
      [&] { live(child); });
}

PROTOCOL(monitor_dropped_against_exit) {
  stage here;
  actor child;
  stage::introduce(child, 1);
  std::optional<monitor_handle> watch(monitor(child.who()));
  model::parallel([&] { watch.reset(); }, [&] { live(child); });
}

PROTOCOL(monitor_stop_of_the_watcher_against_exit) {
  stage here;
  actor watcher;
  actor child;
  stage::introduce(child, 1);
  std::optional<monitor_handle> watch(monitor(child.who()));
  model::parallel(
      [&] {
        here.run(watcher, [&] { static_cast<void>(watch->recv()); });
        watch.reset();
      },
      [&] { live(child); }, [&] { under_model::stop(watcher); });
}

PROTOCOL(monitor_into_channel_against_demonitor) {
  stage here;
  actor child;
  stage::introduce(child, 1);
  auto ends = channel<down>();
  monitor_ref watch = monitor(child.who(), ends.tx);
  bool taken_off = false;
  model::parallel([&] { taken_off = watch.demonitor(); }, [&] { live(child); });
  const auto news = ends.rx.try_recv();
  model::expect(news.has_value() != taken_off, "a down, or none will come");
}

}  // namespace
}  // namespace smarm
