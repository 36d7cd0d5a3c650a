// Goal: what src/io opens is closed on exec, and where no descriptor is left it waits for one.
// Method: every descriptor of this process is looked at; in a process of its own the limit is set
// to none, and the attempts to accept are counted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/signals.hpp>
#include <smarm/spawn.hpp>
#include <smarm/tcp.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/unix_socket.hpp>

#include "fiber/sanitizer.hpp"
#include "io/counted_calls.hpp"
#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::is_error;

using descriptors_test = test::actors_test;
SMARM_TEST_AT_1_2_8(descriptors_test);

// Whatever this layer has opened: sockets of every kind, and what the driver and signals use.
TEST_P(descriptors_test, every_descriptor_is_closed_on_exec) {
  auto before = test::names_in("/proc/self/fd");
  // Without the one that the look itself had open, whose number the next one gets.
  std::erase_if(before,
                [](const std::string& name) { return ::fcntl(std::stoi(name), F_GETFD) < 0; });
  const long open_on_exec = test::counted_calls().sockets_open_on_exec;
  char directory[] = "/tmp/smarm_exec_XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/socket";
  run([&] {
    const signals received({SIGUSR2});
    auto listener = tcp_listener::bind("127.0.0.1", 0);
    const auto client = tcp_stream::connect("127.0.0.1", listener->local_address()->port);
    const auto accepted = listener->accept();
    EXPECT_TRUE(client.has_value() && accepted.has_value());
    const auto local_ends = unix_stream::pair();
    EXPECT_TRUE(unix_listener::bind(path, {.unlink_on_close = false}).has_value());
    // The second one asks, by a socket of its own, whether the first one lives.
    const auto local_listener = unix_listener::bind(path);
    EXPECT_TRUE(local_listener.has_value());
    std::size_t looked_at = 0;
    for (const std::string& name : test::names_in("/proc/self/fd")) {
      const int flags = ::fcntl(std::stoi(name), F_GETFD);
      if (flags < 0 || std::ranges::find(before, name) != before.end()) continue;
      ++looked_at;
      EXPECT_EQ(flags & FD_CLOEXEC, FD_CLOEXEC)
          << name << ": " << std::filesystem::read_symlink("/proc/self/fd/" + name);
    }
    EXPECT_GE(looked_at, 11U) << "6 sockets, a pipe, a catcher, an epoll set with its event";
  });
  EXPECT_EQ(test::counted_calls().sockets_open_on_exec, open_on_exec);
  ::rmdir(directory);
}

// Runs in a process of its own, since the limit is the process's.
[[noreturn]] void accept_at_the_limit_of_descriptors(unsigned schedulers) {
  config how;
  how.schedulers = schedulers;
  std::string failures;
  run(how, [&] {
    auto listener = tcp_listener::bind("127.0.0.1", 0);
    const auto port = listener->local_address()->port;
    auto warm_up = spawn([&] { return listener->accept().has_value(); });
    auto first = tcp_stream::connect("127.0.0.1", port);
    if (!warm_up.join().value()) failures += "no connection; ";
    auto second = tcp_stream::connect("127.0.0.1", port);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none_left{0, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none_left);
    // It neither fails nor spins: it tries after 0, 10, 30, 70 and 150 ms, and at the deadline
    // it says so.
    const long before = test::counted_calls().accepts;
    if (!is_error(listener->accept(160ms), std::errc::timed_out)) failures += "no timeout; ";
    const long attempts = test::counted_calls().accepts - before;
    if (attempts > 7) failures += std::to_string(attempts) + " attempts; ";
    if (test::counts_calls && attempts < 1) failures += "attempts are not counted; ";
    // And it recovers.
    auto recovering = spawn([&] { return listener->accept().has_value(); });
    sleep_for(20ms);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (!recovering.join().value()) failures += "does not recover; ";
  });
  std::fprintf(stderr, "failures: %s\n", failures.c_str());
  std::_Exit(failures.empty() ? 0 : 1);
}

TEST_P(descriptors_test, accept_pauses_while_descriptors_are_short_and_then_goes_on) {
#ifdef SMARM_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer's runtime needs descriptors itself, and reports an error without";
#endif
  EXPECT_EXIT(accept_at_the_limit_of_descriptors(schedulers()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace smarm
