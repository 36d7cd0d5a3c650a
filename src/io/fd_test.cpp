// Goal: waits for descriptors wake, time out and are stopped without a trace, whatever races.
// Method: pipes and socket pairs; what is registered with the kernel is read from /proc; races are
// run many times.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <smarm/fd.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>

#include "io/counted_calls.hpp"
#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::is_error;
using test::is_registered;
using test::pipe_ends;

using fd_test = test::actors_test;
SMARM_TEST_AT_1_2_8(fd_test);

struct socket_pair {
  unique_fd ours;
  unique_fd theirs;

  socket_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
      std::abort();
    }
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }

  // fill writes to our end until there is no room.
  void fill() const {
    const std::vector<char> block(65536);
    while (::write(ours.get(), block.data(), block.size()) > 0) {
    }
  }
  void drain() const {
    std::vector<char> block(65536);
    while (::read(theirs.get(), block.data(), block.size()) > 0) {
    }
  }
};

TEST_P(fd_test, a_reader_wakes_when_there_is_something_to_read) {
  run([] {
    const pipe_ends pipe;
    auto reader = spawn([&] { return wait_readable(pipe.reading.get()).has_value(); });
    eventually([&] { return is_registered(pipe.reading.get()); });
    pipe.put();
    EXPECT_TRUE(reader.join().value());
    EXPECT_FALSE(is_registered(pipe.reading.get()));
  });
}

TEST_P(fd_test, a_wait_ends_at_its_deadline_and_leaves_no_registration) {
  run([] {
    const pipe_ends pipe;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(is_error(wait_readable(pipe.reading.get(), 20ms), std::errc::timed_out));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_FALSE(is_registered(pipe.reading.get()));
  });
}

TEST_P(fd_test, a_deadline_that_has_passed_does_not_hide_what_is_there) {
  run([] {
    const pipe_ends pipe;
    EXPECT_TRUE(is_error(wait_readable(pipe.reading.get(), -1s), std::errc::timed_out));
    pipe.put();
    EXPECT_TRUE(wait_readable(pipe.reading.get(), -1s).has_value());
    EXPECT_TRUE(wait_writable(pipe.writing.get(), -1s).has_value());
  });
}

TEST_P(fd_test, a_descriptor_that_is_not_open_is_an_error) {
  run([] {
    EXPECT_TRUE(is_error(wait_readable(-1), std::errc::bad_file_descriptor));
    constexpr int never_opened = 4'000;
    EXPECT_TRUE(is_error(wait_readable(never_opened), std::errc::bad_file_descriptor));
    EXPECT_TRUE(is_error(wait_writable(never_opened), std::errc::bad_file_descriptor));
  });
}

TEST_P(fd_test, a_regular_file_is_always_ready) {
  run([] {
    char path[] = "/tmp/smarm_fd_test_XXXXXX";
    const unique_fd file(::mkstemp(path));
    ASSERT_TRUE(file);
    ::unlink(path);
    EXPECT_TRUE(wait_readable(file.get()).has_value());
    EXPECT_TRUE(wait_writable(file.get()).has_value());
  });
}

TEST_P(fd_test, a_second_reader_of_a_descriptor_is_refused) {
  run([] {
    const pipe_ends pipe;
    auto first = spawn([&] { return wait_readable(pipe.reading.get()).has_value(); });
    eventually([&] { return is_registered(pipe.reading.get()); });
    EXPECT_TRUE(is_error(wait_readable(pipe.reading.get()), std::errc::device_or_resource_busy));
    pipe.put();
    EXPECT_TRUE(first.join().value());
  });
}

TEST_P(fd_test, a_reader_and_a_writer_of_one_descriptor_wake_apart) {
  run([] {
    for (int round = 0; round < 20; ++round) {
      const socket_pair pair;
      pair.fill();
      auto reader = spawn([&] { return wait_readable(pair.ours.get()).has_value(); });
      auto writer = spawn([&] { return wait_writable(pair.ours.get()).has_value(); });
      eventually([&] { return is_registered(pair.ours.get()); });
      if (round % 2 == 0) {
        ASSERT_EQ(::write(pair.theirs.get(), "x", 1), 1);
        EXPECT_TRUE(reader.join().value());
        EXPECT_FALSE(writer.has_ended());
        pair.drain();
        EXPECT_TRUE(writer.join().value());
      } else {
        pair.drain();
        EXPECT_TRUE(writer.join().value());
        EXPECT_FALSE(reader.has_ended());
        ASSERT_EQ(::write(pair.theirs.get(), "x", 1), 1);
        EXPECT_TRUE(reader.join().value());
      }
      EXPECT_FALSE(is_registered(pair.ours.get()));
    }
  });
}

TEST_P(fd_test, a_peer_that_ends_its_half_wakes_the_reader_and_not_the_writer) {
  run([] {
    const socket_pair pair;
    pair.fill();
    auto reader = spawn([&] { return wait_readable(pair.ours.get()).has_value(); });
    auto writer =
        spawn([&] { return is_error(wait_writable(pair.ours.get(), 30ms), std::errc::timed_out); });
    for (int i = 0; i < 10; ++i) yield();
    ASSERT_EQ(::shutdown(pair.theirs.get(), SHUT_WR), 0);
    EXPECT_TRUE(reader.join().value());
    EXPECT_TRUE(writer.join().value()) << "there is no room, whatever the other half does";
  });
}

TEST_P(fd_test, a_stopped_reader_leaves_the_writer_of_the_same_descriptor_waiting) {
  run([] {
    const socket_pair pair;
    pair.fill();
    auto reader = spawn([&] { (void)wait_readable(pair.ours.get()); });
    auto writer = spawn([&] { return wait_writable(pair.ours.get()).has_value(); });
    eventually([&] { return is_registered(pair.ours.get()); });
    reader.request_stop();
    EXPECT_TRUE(reader.join().error().is_stopped());
    EXPECT_FALSE(writer.has_ended());
    pair.drain();
    EXPECT_TRUE(writer.join().value());
  });
}

TEST_P(fd_test, a_stopped_wait_leaves_nothing_and_the_next_wait_works) {
  run([] {
    const pipe_ends pipe;
    for (int round = 0; round < 50; ++round) {
      auto reader = spawn([&] { (void)wait_readable(pipe.reading.get()); });
      eventually([&] { return is_registered(pipe.reading.get()); });
      reader.request_stop();
      EXPECT_TRUE(reader.join().error().is_stopped());
      EXPECT_FALSE(is_registered(pipe.reading.get()));
      auto next = spawn([&] { return wait_readable(pipe.reading.get()).has_value(); });
      pipe.put();
      EXPECT_TRUE(next.join().value());
      EXPECT_TRUE(pipe.take());
    }
  });
}

TEST_P(fd_test, a_wait_works_after_a_stop_that_raced_readiness) {
  run([] {
    const pipe_ends pipe;
    auto random = test::make_rng(1);
    for (std::int64_t round = 0; round < test::rounds(2'000, 200'000); ++round) {
      auto reader = spawn([&] { return wait_readable(pipe.reading.get()).has_value(); });
      for (auto turns = random() % 4; turns > 0; --turns) yield();
      const bool stop_first = random() % 2 == 0;
      if (stop_first) reader.request_stop();
      pipe.put();
      if (!stop_first) reader.request_stop();
      const auto outcome = reader.join();
      EXPECT_TRUE(outcome ? *outcome : outcome.error().is_stopped());
      ASSERT_TRUE(wait_readable(pipe.reading.get()).has_value());
      ASSERT_TRUE(pipe.take());
    }
    EXPECT_FALSE(is_registered(pipe.reading.get()));
  });
}

// The kernel has reported a descriptor, and the thread that watches has not come to it yet when the
// wait is stopped, what there was is read, and the next wait begins. A writer waits throughout, so
// that the descriptor stays registered.
TEST_P(fd_test, a_report_for_a_wait_that_was_stopped_ends_no_later_one) {
  run([] {
    const socket_pair pair;
    pair.fill();
    const int fd = pair.ours.get();
    auto writer = spawn([fd] { return wait_writable(fd).has_value(); });
    for (int round = 0; round < 20; ++round) {
      auto stopped = spawn([fd] { (void)wait_readable(fd); });
      for (int i = 0; i < 10; ++i) yield();
      test::hold_next_report();
      ASSERT_EQ(::write(pair.theirs.get(), "x", 1), 1);
      // A scheduler that looks by itself may be first; then there is nothing to hold.
      eventually([&] { return test::is_report_held() || stopped.has_ended(); });
      stopped.request_stop();
      (void)stopped.join();
      char byte = 0;
      ASSERT_EQ(::read(fd, &byte, 1), 1);
      auto next = spawn([fd] { return is_error(wait_readable(fd, 20ms), std::errc::timed_out); });
      for (int i = 0; i < 10; ++i) yield();
      test::release_report();
      EXPECT_TRUE(next.join().value()) << "it was told of what was read before it began";
    }
    EXPECT_FALSE(writer.has_ended());
    pair.drain();
    EXPECT_TRUE(writer.join().value());
  });
}

TEST_P(fd_test, a_stopped_actor_leaves_the_fresh_wait_of_another_alone) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      const pipe_ends pipe;
      auto first = spawn([&] { (void)wait_readable(pipe.reading.get()); });
      eventually([&] { return is_registered(pipe.reading.get()); });
      pipe.put();
      // Busy on purpose: `first` is made runnable by the epoll thread, and with one scheduler it
      // has not run when its wait is over and the next one begins.
      while (is_registered(pipe.reading.get())) {
      }
      ASSERT_TRUE(pipe.take());
      first.request_stop();
      auto later = spawn([&] {
        eventually([&] { return first.has_ended(); });
        pipe.put();
      });
      EXPECT_TRUE(wait_readable(pipe.reading.get()).has_value());
      EXPECT_TRUE(later.join().has_value());
      (void)first.join();
    }
  });
}

TEST_P(fd_test, closing_a_descriptor_wakes_who_waits_for_it) {
  run([] {
    socket_pair pair;
    pair.fill();
    auto reader = spawn([&, fd = pair.ours.get()] {
      return is_error(wait_readable(fd), std::errc::bad_file_descriptor);
    });
    auto writer = spawn([&, fd = pair.ours.get()] {
      return is_error(wait_writable(fd), std::errc::bad_file_descriptor);
    });
    for (int i = 0; i < 100; ++i) yield();
    eventually([&] { return is_registered(pair.ours.get()); });
    pair.ours.reset();
    EXPECT_TRUE(reader.join().value());
    EXPECT_TRUE(writer.join().value());
  });
}

TEST_P(fd_test, stopping_an_actor_that_waits_ends_the_run_at_once_while_the_root_is_busy) {
  const pipe_ends pipe;
  runtime ours(make_config());
  std::chrono::steady_clock::time_point stopped;
  ours.run([&] {
    const auto reader = spawn([&] { (void)wait_readable(pipe.reading.get()); });
    eventually([&] { return ours.counts().fd_waiters == 1; });
    const auto busy_until = std::chrono::steady_clock::now() + 20ms;
    while (std::chrono::steady_clock::now() < busy_until) {
    }
    reader.request_stop();
    stopped = std::chrono::steady_clock::now();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s);
  test::expect_nothing_left(ours);
}

TEST_P(fd_test, a_thread_that_is_no_actor_waits_by_blocking) {
  const pipe_ends pipe;
  EXPECT_TRUE(is_error(wait_readable(pipe.reading.get(), 5ms), std::errc::timed_out));
  EXPECT_TRUE(is_error(wait_readable(-1), std::errc::bad_file_descriptor));
  run([&] {
    std::atomic<bool> woken{false};
    std::thread waiting([&] { woken = wait_readable(pipe.reading.get()).has_value(); });
    pipe.put();
    waiting.join();
    EXPECT_TRUE(woken);
  });
}

TEST_P(fd_test, one_descriptor_serves_run_after_run) {
  const pipe_ends pipe;
  runtime ours(make_config());
  for (int round = 0; round < 20; ++round) {
    ours.run([&] {
      auto reader = spawn([&] { return wait_readable(pipe.reading.get()).has_value(); });
      pipe.put();
      EXPECT_TRUE(reader.join().value());
      EXPECT_TRUE(pipe.take());
    });
  }
}

// The reader's runtime is the first to register the descriptor. When it has ended, the writer of
// the other runtime must be watched by its own.
TEST_P(fd_test, a_wait_survives_the_end_of_the_runtime_that_watched_its_descriptor) {
  for (int round = 0; round < 10; ++round) {
    const socket_pair pair;
    pair.fill();
    std::atomic<bool> reader_done{false};
    runtime second(make_config());
    std::thread other([&] {
      second.run([&] {
        eventually([&] { return is_registered(pair.ours.get()); });
        EXPECT_TRUE(wait_writable(pair.ours.get()).has_value());
      });
    });
    run([&] {
      auto reader = spawn([&] { return wait_readable(pair.ours.get()).has_value(); });
      eventually([&] { return second.counts().fd_waiters == 1; });
      reader.request_stop();
      (void)reader.join();
    });
    reader_done = true;
    pair.drain();
    other.join();
  }
}

// Readers and outside writers at full speed: each byte is waited for, so a lost report hangs.
TEST_P(fd_test, no_report_is_lost_while_schedulers_scan_and_sleep) {
  constexpr std::size_t pipes_count = 16;
  const std::int64_t bytes = test::rounds(2'000, 100'000);
  std::vector<pipe_ends> there(pipes_count);
  std::vector<pipe_ends> back(pipes_count);
  std::thread echo([&] {
    auto random = test::make_rng(2);
    for (std::int64_t i = 0; i < bytes; ++i) {
      for (std::size_t p = 0; p < pipes_count; ++p) there[p].put();
      for (std::size_t p = 0; p < pipes_count; ++p) {
        EXPECT_TRUE(wait_readable(back[p].reading.get()).has_value());
        EXPECT_TRUE(back[p].take());
      }
      if (random() % 64 == 0) std::this_thread::sleep_for(100us);  // let the schedulers fall asleep
    }
  });
  run([&] {
    for (std::size_t p = 0; p < pipes_count; ++p) {
      spawn([&, p] {
        for (std::int64_t i = 0; i < bytes; ++i) {
          ASSERT_TRUE(wait_readable(there[p].reading.get()).has_value());
          ASSERT_TRUE(there[p].take());
          back[p].put();
        }
      });
    }
  });
  echo.join();
}

TEST_P(fd_test, the_kernel_is_asked_once_and_not_again_and_again_while_somebody_waits) {
  if (!test::counts_calls) GTEST_SKIP() << "system calls are not counted under this sanitizer";
  run([] {
    const socket_pair pair;
    pair.fill();
    auto reader = spawn([&] { (void)wait_readable(pair.ours.get()); });
    auto writer = spawn([&] { (void)wait_writable(pair.ours.get()); });
    eventually([&] { return is_registered(pair.ours.get()); });
    sleep_for(20ms);
    const auto& waits = test::counted_calls().epoll_waits;
    const long before = waits;
    sleep_for(200ms);
    EXPECT_LE(waits - before, 50) << "a look by whoever goes to sleep; a loop makes thousands";
    reader.request_stop();
    writer.request_stop();
    (void)reader.join();
    (void)writer.join();
  });
}

}  // namespace
}  // namespace smarm
