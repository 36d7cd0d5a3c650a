// Stopping children; see the header.
//
// A monitor tells the end, since the link's signal may be in the mailbox already, or never come
// from a child that has unlinked itself. A down with noproc means that the child had ended before;
// its exit signal then has the reason.
#include "actor/child_stop.hpp"

#include <unordered_map>
#include <utility>

#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>

namespace smarm::detail {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

child_end wait_for_down(monitor_id ref, deadline until) {
  return receive(when([ref](const down& d) { return d.ref == ref; },
                      [](down d) { return child_end(std::move(d.reason)); }),
                 after(until, [] { return child_end(); }));
}

// Takes the exit signal of that child out of the mailbox, if it is there in time.
child_end take_exit(pid child, deadline until) {
  return receive(when([child](const exit_signal& s) { return s.from == child; },
                      [](exit_signal s) { return child_end(std::move(s.reason)); }),
                 after(until, [] { return child_end(); }));
}

// The reason of a child that had ended before it was told to. Its signal is there or about to come
// as long as the link is.
child_end end_before(pid child, nanoseconds grace) {
  const bool about_to_come = is_linked(child);
  child_end from_link = take_exit(child, about_to_come ? deadline(grace) : deadline(seconds(0)));
  return from_link ? from_link : child_end(exit_reason::noproc());
}

void cut(pid child) {
  unlink(child);
  (void)take_exit(child, deadline(seconds(0)));
}

deadline shutdown_deadline(child_shutdown how) noexcept {
  return how.which() == child_shutdown::kind::infinity ? deadline::never() : deadline(how.time());
}

bool is_brutal(child_shutdown how) noexcept {
  return how.which() == child_shutdown::kind::brutal_kill;
}

struct stopping {
  monitor_ref watch;
  child_end from_link = {};
  bool ended = false;
};
using stopping_set = std::unordered_map<pid, stopping>;

// Takes downs and exit signals of the set until all have ended, or the deadline. The signals are
// taken as they come, lest each wait looks through those of thousands.
std::size_t wait_for_all(stopping_set& set, std::size_t left, deadline until, nanoseconds grace,
                         const std::function<void(pid, const child_end&)>& tell) {
  bool in_time = true;
  while (left > 0 && in_time) {
    receive(when(
                [&](const down& d) {
                  const auto found = set.find(d.who);
                  return found != set.end() && found->second.watch.id() == d.ref;
                },
                [&](down d) {
                  stopping& each = set.find(d.who)->second;
                  each.ended = true;
                  --left;
                  child_end end(std::move(d.reason));
                  if (end->kind() == exit_kind::noproc) {
                    end = each.from_link ? each.from_link : end_before(d.who, grace);
                  }
                  unlink(d.who);
                  tell(d.who, end);
                }),
            when([&](const exit_signal& s) { return set.contains(s.from); },
                 [&](exit_signal s) { set.find(s.from)->second.from_link = std::move(s.reason); }),
            after(until, [&] { in_time = false; }));
  }
  return left;
}

}  // namespace

child_shutdown shutdown_of(const child_spec& spec) noexcept {
  if (spec.shutdown.which() != child_shutdown::kind::by_type) return spec.shutdown;
  return spec.type == child_type::supervisor ? child_shutdown::infinity()
                                             : child_shutdown(seconds(5));
}

child_end stop_child(pid child, child_shutdown how, nanoseconds grace) {
  monitor_ref watch = monitor(child, to_mailbox);
  child_end end;
  if (!is_brutal(how)) {
    exit(child, exit_reason::shutdown());
    end = wait_for_down(watch.id(), shutdown_deadline(how));
  }
  if (!end) {
    kill(child);
    end = wait_for_down(watch.id(), deadline(grace));
  }
  if (!end) (void)watch.demonitor_and_flush();
  if (end && end->kind() == exit_kind::noproc) end = end_before(child, grace);
  cut(child);
  return end;
}

void stop_children(const std::vector<pid>& children, child_shutdown how, nanoseconds grace,
                   const std::function<void(pid, const child_end&)>& tell) {
  stopping_set set;
  set.reserve(children.size());
  for (const pid child : children) {
    set.emplace(child, stopping{monitor(child, to_mailbox)});
    if (is_brutal(how)) {
      kill(child);
    } else {
      exit(child, exit_reason::shutdown());
    }
  }
  std::size_t left = set.size();
  if (!is_brutal(how)) left = wait_for_all(set, left, shutdown_deadline(how), grace, tell);
  if (left > 0) {
    for (const auto& [child, each] : set) {
      if (!each.ended && !is_brutal(how)) kill(child);
    }
    left = wait_for_all(set, left, deadline(grace), grace, tell);
  }
  for (auto& [child, each] : set) {
    if (!each.ended) {
      (void)each.watch.demonitor_and_flush();
      tell(child, {});
    }
    cut(child);
  }
}

bool is_expected(const exit_reason& why, child_shutdown how, child_restart restart) noexcept {
  const bool permanent = restart == child_restart::permanent;
  if (is_brutal(how) && why.is_killed()) return true;
  if (!is_brutal(how) && why.is_shutdown() && why.detail() == nullptr) return true;
  return !permanent && why.is_orderly();
}

}  // namespace smarm::detail
