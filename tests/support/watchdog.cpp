// The watchdog thread; see watchdog.hpp.
//
// It uses the standard mutex and condition variable and nothing of smarm's: what it watches must
// not be able to take it along.
#include "tests/support/watchdog.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

namespace smarm::test {
namespace {

using steady = std::chrono::steady_clock;

struct watch_state {
  std::mutex mutex;
  std::condition_variable changed;
  std::string test_name;  // empty while no test runs
  steady::time_point begin{};
  steady::time_point deadline{};
};

watch_state& state() {
  // Never destroyed: the watchdog thread outlives static destruction.
  static auto* const instance = new watch_state;
  return *instance;
}

std::chrono::seconds time_limit() {
  if (const char* given = std::getenv("SMARM_TEST_TIMEOUT_S")) {
    if (const long seconds = std::atol(given); seconds > 0) return std::chrono::seconds(seconds);
  }
  return std::chrono::seconds(120);
}

// first_line(path) returns the first line of a /proc file, "?" where it cannot be read.
std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  return std::getline(in, line) && !line.empty() ? line : "?";
}

// thread_state(directory) returns the one-letter state out of /proc/.../stat.
std::string thread_state(const std::string& directory) {
  const std::string line = first_line(directory + "/stat");
  const auto after_name = line.rfind(')');  // the name itself may hold parentheses
  if (after_name == std::string::npos || after_name + 2 >= line.size()) return "?";
  return line.substr(after_name + 2, 1);
}

void print_threads() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string directory = std::string("/proc/self/task/") + entry->d_name;
    std::fprintf(stderr, "  thread %s \"%s\" state %s in %s (system call %s)\n", entry->d_name,
                 first_line(directory + "/comm").c_str(), thread_state(directory).c_str(),
                 first_line(directory + "/wchan").c_str(),
                 first_line(directory + "/syscall").c_str());
  }
  closedir(tasks);
}

[[noreturn]] void report_and_abort(const std::string& test_name, steady::time_point begin) {
  const double seconds = std::chrono::duration<double>(steady::now() - begin).count();
  std::fprintf(stderr, "watchdog: test %s hangs, it has run for %.1f s\n", test_name.c_str(),
               seconds);
  print_threads();
  std::fprintf(stderr,
               "  to see the stacks: SMARM_TEST_TIMEOUT_S=100000 in front of the test, and then\n"
               "  gdb -p $(pgrep -f %s) -batch -ex 'thread apply all bt'\n",
               test_name.c_str());
  std::fflush(stderr);
  std::abort();
}

void watch() {
  watch_state& watched = state();
  std::unique_lock lock(watched.mutex);
  for (;;) {
    if (watched.test_name.empty()) {
      watched.changed.wait(lock);
    } else if (steady::now() >= watched.deadline) {
      report_and_abort(watched.test_name, watched.begin);
    } else {
      watched.changed.wait_until(lock, watched.deadline);
    }
  }
}

class listener : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo& info) override {
    watch_state& watched = state();
    const std::lock_guard lock(watched.mutex);
    watched.test_name = std::string(info.test_suite_name()) + "." + info.name();
    watched.begin = steady::now();
    watched.deadline = watched.begin + time_limit();
    watched.changed.notify_one();
  }

  void OnTestEnd(const ::testing::TestInfo&) override {
    watch_state& watched = state();
    const std::lock_guard lock(watched.mutex);
    watched.test_name.clear();
  }
};

}  // namespace

void install_watchdog() {
  ::testing::UnitTest::GetInstance()->listeners().Append(new listener);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([] {
    pthread_setname_np(pthread_self(), "watchdog");
    watch();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void extend_watchdog(std::chrono::seconds limit) {
  watch_state& watched = state();
  const std::lock_guard lock(watched.mutex);
  watched.deadline = steady::now() + limit;
  watched.changed.notify_one();
}

}  // namespace smarm::test
