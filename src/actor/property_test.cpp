// The rules of links, signals and monitors against a small sequential model of them: random
// operations of a dozen actors, one after the other, and after each the model says who lives, how
// the others ended, and what every mailbox got. A failure names the step; SMARM_TEST_SEED repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/link.hpp>
#include <smarm/mailbox.hpp>
#include <smarm/monitor.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using news = std::vector<std::string>;  // sorted: what came from several is in no order

constexpr std::size_t puppets = 12;

// The rules, without actors, time or messages on their way.
class rules {
 public:
  struct one {
    bool lives = false;
    bool traps = false;
    std::set<std::size_t> links;
    std::vector<std::pair<std::size_t, int>> watches;  // whom, and which incarnation of it
    int incarnation = 0;
    std::string ended;  // how, where it does not live
    news got;
  };

  one& operator[](std::size_t i) { return all_[i]; }

  void signal(std::size_t from, std::size_t to, const std::string& why, bool from_link) {
    one& receiver = all_[to];
    if (!receiver.lives) return;
    if (why == "kill" && !from_link) return end(to, "killed");
    if (receiver.traps) {
      receiver.got.push_back("exit " + std::to_string(from) + " " + why);
    } else if (why != "normal" || (from == to && !from_link)) {
      end(to, why);
    }
  }

  void end(std::size_t who, const std::string& why) {
    one& gone = all_[who];
    gone.lives = false;
    gone.ended = why;
    const std::set<std::size_t> peers = std::exchange(gone.links, {});
    for (const std::size_t peer : peers) {
      if (all_[peer].links.erase(who) > 0) signal(who, peer, why, true);
    }
    for (one& watcher : all_) {
      for (const auto& [whom, incarnation] : watcher.watches) {
        if (watcher.lives && whom == who && incarnation == gone.incarnation) {
          watcher.got.push_back("down " + std::to_string(who) + " " + why);
        }
      }
    }
    gone.watches.clear();
    gone.got.clear();
  }

 private:
  std::array<one, puppets> all_;
};

// The actors that do what the rules are about.
class stage {
 public:
  using act = std::function<void()>;

  void spawn_puppet(std::size_t i) {
    auto [tx, rx] = channel<act>();
    acts_[i] = std::move(tx);
    auto handle = spawn([rx = std::move(rx)]() mutable {
      for (act next : rx) next();
    });
    pids_[i] = handle.id();
    names_[handle.id()] = i;
    ends_[i] = monitor(handle.id());
    handle.detach();
  }
  [[nodiscard]] pid who(std::size_t i) const { return pids_[i]; }
  [[nodiscard]] std::size_t number(pid who) const { return names_.at(who); }

  // run has the puppet do something and waits until it has, or has ended by it.
  void run(std::size_t i, act what) {
    auto [tx, rx] = oneshot<bool>();
    auto shared = std::make_shared<oneshot_sender<bool>>(std::move(tx));
    (void)acts_[i].send([what = std::move(what), shared] {
      what();
      (void)shared->send(true);
    });
    shared.reset();
    (void)rx.recv();  // closed where it ended: the act went with it
  }
  [[nodiscard]] std::string end_of(std::size_t i) {
    auto gone = ends_[i].recv_for(test::long_enough);
    return gone ? gone->reason.message() : "it lives";
  }
  [[nodiscard]] bool lives(std::size_t i) { return !ends_[i].try_recv().has_value(); }
  void stop_all() {
    for (sender<act>& each : acts_) each.close();
  }

 private:
  std::array<sender<act>, puppets> acts_;
  std::array<pid, puppets> pids_;
  std::array<monitor_handle, puppets> ends_;
  std::map<pid, std::size_t> names_;
};

class comparison {
 public:
  explicit comparison(std::mt19937_64& random) : random_(random) {
    for (std::size_t i = 0; i < puppets; ++i) revive(i);
  }

  // step does one random thing to both, and compares. False: they differ.
  [[nodiscard]] bool step() {
    const std::size_t actor = below(puppets);
    const std::size_t other = below(puppets);
    if (!model_[actor].lives) {
      revive(actor);
      return compare();
    }
    switch (below(10)) {
      case 0:
      case 1:
        link_two(actor, other);
        break;
      case 2:
        unlink_two(actor, other);
        break;
      case 3:
        watch(actor, other);
        break;
      case 4:
        unwatch(actor);
        break;
      case 5:
        trap(actor, below(2) == 0);
        break;
      case 6:
        end(actor, reason());
        break;
      case 7:
        kill_other(actor, other);
        break;
      default:
        signal(actor, other, reason());
    }
    return compare();
  }

  void finish() { actors_.stop_all(); }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  std::string reason() {
    static constexpr std::array names{"normal", "shutdown", "boom", "kill", "bang"};
    return names[below(names.size())];
  }

  void revive(std::size_t i) {
    rules::one& fresh = model_[i];
    const int incarnation = fresh.incarnation + 1;
    fresh = {};
    fresh.lives = true;
    fresh.incarnation = incarnation;
    monitors_[i].clear();
    actors_.spawn_puppet(i);
  }

  void link_two(std::size_t actor, std::size_t other) {
    bool told = false;
    actors_.run(actor, [&, to = actors_.who(other)] { told = !link(to).has_value(); });
    rules::one& mine = model_[actor];
    if (other == actor) return;
    if (model_[other].lives) {
      mine.links.insert(other);
      model_[other].links.insert(actor);
    } else if (mine.traps) {
      mine.got.push_back("exit " + std::to_string(other) + " no such actor");
    } else {
      EXPECT_TRUE(told) << "a link to a dead actor is an error";
    }
  }
  void unlink_two(std::size_t actor, std::size_t other) {
    actors_.run(actor, [to = actors_.who(other)] { unlink(to); });
    model_[actor].links.erase(other);
    model_[other].links.erase(actor);
  }
  void watch(std::size_t actor, std::size_t other) {
    monitor_ref made;
    actors_.run(actor, [&, to = actors_.who(other)] { made = monitor(to, to_mailbox); });
    if (model_[other].lives) {
      model_[actor].watches.emplace_back(other, model_[other].incarnation);
      monitors_[actor].push_back(std::move(made));
    } else {
      model_[actor].got.push_back("down " + std::to_string(other) + " no such actor");
    }
  }
  void unwatch(std::size_t actor) {
    auto& watches = model_[actor].watches;
    if (watches.empty()) return;
    const std::size_t which = below(watches.size());
    const auto at = static_cast<std::ptrdiff_t>(which);
    const auto [whom, incarnation] = watches[which];
    const bool stood = model_[whom].lives && model_[whom].incarnation == incarnation;
    bool was_there = false;
    actors_.run(actor, [&] { was_there = monitors_[actor][which].demonitor(); });
    EXPECT_EQ(was_there, stood);
    watches.erase(watches.begin() + at);
    monitors_[actor].erase(monitors_[actor].begin() + at);
  }
  void trap(std::size_t actor, bool on) {
    actors_.run(actor, [on] { trap_exit(on); });
    model_[actor].traps = on;
  }
  void end(std::size_t actor, const std::string& why) {
    actors_.run(actor, [&] { exit(exit_reason(atom(why))); });
    model_.end(actor, why);
  }
  void kill_other(std::size_t actor, std::size_t other) {
    actors_.run(actor, [to = actors_.who(other)] { kill(to); });
    if (model_[other].lives) model_.end(other, "killed");
  }
  void signal(std::size_t actor, std::size_t other, const std::string& why) {
    actors_.run(actor, [&, to = actors_.who(other)] { exit(to, exit_reason(atom(why))); });
    model_.signal(actor, other, why, false);
  }

  [[nodiscard]] bool compare() {
    bool same = true;
    for (std::size_t i = 0; i < puppets; ++i) same = compare_one(i) && same;
    return same;
  }
  [[nodiscard]] bool compare_one(std::size_t i) {
    rules::one& expected = model_[i];
    if (!expected.lives) {
      if (expected.ended.empty()) return true;
      const std::string how = actors_.end_of(i);
      EXPECT_EQ(how, expected.ended) << "puppet " << i;
      return how == std::exchange(expected.ended, {});
    }
    EXPECT_TRUE(actors_.lives(i)) << "puppet " << i;
    if (expected.got.empty() && below(8) != 0) return actors_.lives(i);
    // Cleared by whoever acts for this puppet, so that a late extra message shows as well.
    news got;
    actors_.run(i, [&, count = expected.got.size()] { got = take_news(count); });
    std::ranges::sort(got);
    std::ranges::sort(expected.got);
    EXPECT_EQ(got, expected.got) << "puppet " << i;
    return got == std::exchange(expected.got, {});
  }
  [[nodiscard]] news take_news(std::size_t count) {
    news got;
    const auto text = [&](pid who, const exit_reason& why) {
      return std::to_string(actors_.number(who)) + " " + why.message();
    };
    const auto next = [&](deadline until) {
      return receive(
          [&](const exit_signal& s) {
            got.push_back("exit " + text(s.from, s.reason));
            return true;
          },
          [&](const down& d) {
            got.push_back("down " + text(d.who, d.reason));
            return true;
          },
          after(until, [] { return false; }));
    };
    while (got.size() < count && next(test::long_enough)) {
    }
    while (next(std::chrono::seconds(0))) {
    }
    return got;
  }

  std::mt19937_64& random_;
  rules model_;
  stage actors_;
  std::array<std::vector<monitor_ref>, puppets> monitors_;
};

using rules_test = test::actors_test;
SMARM_TEST_AT_1_2_8(rules_test);

TEST_P(rules_test, random_operations_do_what_the_sequential_model_says) {
  run([] {
    const int steps = test::scaled(100'000);
    auto random = test::make_rng();
    comparison both(random);
    for (int step = 0; step < steps; ++step) {
      if (!both.step()) {
        ADD_FAILURE() << "at step " << step;
        break;
      }
    }
    both.finish();
  });
}

}  // namespace
}  // namespace smarm
