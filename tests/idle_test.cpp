// Goal: a runtime in which nothing happens costs nothing: no wake-up, no processor time, however
// many actors are parked and however many deadlines lie ahead; and what is over leaves nothing
// behind. Method: the kernel's own count of each thread's context switches and processor time over
// a while in which nothing is due, and the runtime's counts.
#include <dirent.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/channel.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "tests/support/actors_test.hpp"
#include "tests/support/every_way_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::rounds;
using test::scaled;

using idle_test = test::actors_test;
SMARM_TEST_AT_1_2_8(idle_test);

// A reading of what the scheduler threads of this process have cost so far.
struct reading {
  std::int64_t switches = 0;
  std::int64_t ticks = 0;  // of processor time, a hundredth of a second each
};

std::int64_t field_of(const std::string& path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size()));
  }
  return 0;
}

// read_schedulers sums over the threads that are schedulers: the one that calls run, `main_thread`,
// and those that the runtime started.
reading read_schedulers(const std::string& main_thread) {
  reading sum;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string directory = std::string("/proc/self/task/") + entry->d_name;
    std::string name;
    std::ifstream(directory + "/comm") >> name;
    if (!name.starts_with("smarm/") && entry->d_name != main_thread) continue;
    sum.switches += field_of(directory + "/status", "voluntary_ctxt_switches:");
    std::ifstream stat(directory + "/stat");
    std::string line;
    std::getline(stat, line);
    std::vector<std::string> words;
    std::string word;
    for (const char c : line.substr(line.rfind(')') + 2) + " ") {
      if (c == ' ') {
        words.push_back(std::exchange(word, {}));
      } else {
        word += c;
      }
    }
    if (words.size() > 12) sum.ticks += std::stoll(words[11]) + std::stoll(words[12]);
  }
  closedir(tasks);
  return sum;
}

std::string own_thread_number() {
  std::string number;
  std::ifstream("/proc/thread-self/stat") >> number;
  return number;
}

TEST_P(idle_test, a_thousand_parked_actors_and_a_timer_an_hour_off_cost_no_wake_and_no_time) {
  runtime ours(make_config());
  const std::string main_thread = own_thread_number();
  std::atomic<bool> settled{false};
  reading before;
  reading after;
  std::uint64_t wakes = 0;
  std::thread watcher([&] {
    while (!settled.load()) yield();
    // What was surplus is given back and the watcher goes off duty: let that pass.
    sleep_for(1500ms);
    before = read_schedulers(main_thread);
    wakes = ours.counts().scheduler_wakes;
    sleep_for(1000ms);
    after = read_schedulers(main_thread);
    wakes = ours.counts().scheduler_wakes - wakes;
    ours.stop_all();
  });
  ours.run([&] {
    std::vector<join_handle<void>> parked;
    for (int i = 0; i < 999; ++i) parked.push_back(spawn([] { sleep_until(deadline::never()); }));
    parked.push_back(spawn([] { sleep_for(1h); }));
    while (ours.counts().timers == 0) yield();
    settled.store(true);
    sleep_until(deadline::never());
  });
  watcher.join();
  EXPECT_EQ(wakes, 0U);
  // A second's worth of decay of the stacks that are cached may cost one.
  EXPECT_LE(after.switches - before.switches, 2);
  EXPECT_LE(after.ticks - before.ticks, 1);
}

TEST_P(idle_test, timeouts_that_do_not_come_leave_no_timer_behind) {
  runtime ours(make_config());
  ours.run([&] {
    auto [tx, rx] = channel<int>();
    auto [back, answers] = channel<int>();
    auto echo = spawn([rx = std::move(rx), back = std::move(back)]() mutable {
      while (auto value = rx.recv_for(60s)) (void)back.send(*value);
    });
    const auto count = rounds(scaled(20'000), 1'000'000);
    std::size_t most = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      (void)tx.send(static_cast<int>(i));
      ASSERT_EQ(answers.recv_for(60s).value(), static_cast<int>(i));
      most = std::max(most, ours.counts().timers);
    }
    EXPECT_LE(most, 2U);
    tx.close();
    EXPECT_TRUE(echo.join().has_value());
  });
  test::expect_nothing_left(ours);
}

TEST_P(idle_test, the_stacks_and_slots_of_a_burst_are_used_again) {
  runtime ours(make_config());
  ours.run([&] {
    std::uint32_t highest = 0;
    for (int burst = 0; burst < 5; ++burst) {
      // All alive at once, so that every burst needs as many as the first.
      std::atomic<bool> all_there{false};
      std::vector<join_handle<void>> all;
      for (int i = 0; i < scaled(2'000); ++i) {
        all.push_back(spawn([&] {
          while (!all_there.load()) yield();
        }));
      }
      all_there.store(true);
      for (auto& each : all) {
        if (burst == 0) highest = std::max(highest, each.id().index);
        if (burst == 4) {
          EXPECT_LE(each.id().index, highest + 1024) << "slots are not used again";
        }
        EXPECT_TRUE(each.join().has_value());
      }
    }
  });
  test::expect_nothing_left(ours);
}

}  // namespace
}  // namespace smarm
