// Goal: Unix sockets connect by path and by abstract name, clean up their files and nobody else's,
// and lose nothing where descriptors are passed.
// Method: sockets in a fresh directory; what the streams share with TCP is tested there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <smarm/fd.hpp>
#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/this_actor.hpp>
#include <smarm/unix_socket.hpp>

#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::is_error;

using unix_socket_test = test::actors_test;
SMARM_TEST_AT_1_2_8(unix_socket_test);

// A directory that goes with the test, and a socket's path in it.
struct fresh_directory {
  std::string directory;
  std::string path;

  fresh_directory() {
    char name[] = "/tmp/smarm_unix_XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    directory = name;
    path = directory + "/socket";
  }
  ~fresh_directory() {
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());
  }
  [[nodiscard]] bool exists() const { return ::access(path.c_str(), F_OK) == 0; }
};

std::string read_text(unix_stream& from) {
  std::array<char, 256> buffer;
  const auto size = from.read_some(std::as_writable_bytes(std::span(buffer)));
  return size ? std::string(buffer.data(), *size) : "error: " + size.error().message();
}

void exchange(unix_listener& listener, const std::string& path) {
  auto server = spawn([&] {
    auto stream = listener.accept();
    ASSERT_TRUE(stream.has_value());
    EXPECT_EQ(read_text(*stream), "question");
    EXPECT_TRUE(stream->write_all("answer").has_value());
  });
  auto client = unix_stream::connect(path);
  ASSERT_TRUE(client.has_value()) << client.error().message();
  EXPECT_TRUE(client->write_all("question").has_value());
  EXPECT_EQ(read_text(*client), "answer");
  EXPECT_EQ(read_text(*client), "");
  EXPECT_TRUE(server.join().has_value());
}

TEST_P(unix_socket_test, streams_connect_by_path_and_the_file_goes_with_the_listener) {
  run([] {
    const fresh_directory place;
    {
      auto listener = unix_listener::bind(place.path);
      ASSERT_TRUE(listener.has_value());
      EXPECT_TRUE(place.exists());
      exchange(*listener, place.path);
    }
    EXPECT_FALSE(place.exists());
  });
}

// A file that cannot be registered left its one shot in the table, and the next socket of its
// number was reported once and never again.
TEST_P(unix_socket_test, a_socket_gets_the_number_of_a_file_that_could_not_be_waited_for) {
  run([] {
    const fresh_directory place;
    unique_fd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const int number = file.get();
    ASSERT_TRUE(wait_readable(number).has_value());
    ASSERT_TRUE(wait_writable(number).has_value());
    file.reset();
    auto listener = unix_listener::bind(place.path);
    ASSERT_TRUE(listener.has_value());
    EXPECT_EQ(listener->native_handle(), number);
    for (int i = 0; i < 5; ++i) exchange(*listener, place.path);
  });
}

TEST_P(unix_socket_test, streams_connect_by_abstract_name) {
  run([] {
    const std::string name = "@smarm-test-" + std::to_string(::getpid());
    auto listener = unix_listener::bind(name);
    ASSERT_TRUE(listener.has_value());
    exchange(*listener, name);
    EXPECT_TRUE(is_error(unix_listener::bind(name), std::errc::address_in_use));
  });
}

TEST_P(unix_socket_test, a_stale_file_is_replaced_and_a_living_one_is_not) {
  run([] {
    const fresh_directory place;
    {
      auto left = unix_listener::bind(place.path, {.unlink_on_close = false});
      ASSERT_TRUE(left.has_value());
    }
    EXPECT_TRUE(place.exists());
    EXPECT_TRUE(is_error(unix_listener::bind(place.path, {.replace_stale = false}),
                         std::errc::address_in_use));
    auto listener = unix_listener::bind(place.path);
    ASSERT_TRUE(listener.has_value());
    EXPECT_TRUE(is_error(unix_listener::bind(place.path), std::errc::address_in_use));
    exchange(*listener, place.path);
  });
}

TEST_P(unix_socket_test, a_file_that_is_no_socket_and_the_socket_of_another_stay) {
  run([] {
    const fresh_directory place;
    {
      std::ofstream(place.path) << "precious";
    }
    EXPECT_TRUE(is_error(unix_listener::bind(place.path), std::errc::address_in_use));
    EXPECT_TRUE(place.exists());
    ::unlink(place.path.c_str());
    auto first = unix_listener::bind(place.path);
    ASSERT_TRUE(first.has_value());
    ::unlink(place.path.c_str());
    auto second = unix_listener::bind(place.path);
    ASSERT_TRUE(second.has_value());
    first->close();
    EXPECT_TRUE(place.exists());
    exchange(*second, place.path);
  });
}

TEST_P(unix_socket_test, bad_paths_are_errors) {
  run([] {
    EXPECT_TRUE(is_error(unix_listener::bind(""), std::errc::invalid_argument));
    EXPECT_TRUE(is_error(unix_listener::bind(std::string(108, 'x')), std::errc::filename_too_long));
    const fresh_directory place;
    EXPECT_TRUE(is_error(unix_listener::bind(place.path + std::string("\0.new", 5)),
                         std::errc::invalid_argument));
    EXPECT_FALSE(place.exists()) << "bound up to the zero byte";
    EXPECT_TRUE(is_error(unix_stream::connect("/nonexistent/socket"),
                         std::errc::no_such_file_or_directory));
  });
}

TEST_P(unix_socket_test, a_connect_waits_while_the_queue_of_the_listener_is_full) {
  run([] {
    const fresh_directory place;
    auto listener = unix_listener::bind(place.path, {.backlog = 0});
    ASSERT_TRUE(listener.has_value());
    auto first = unix_stream::connect(place.path);
    ASSERT_TRUE(first.has_value());
    EXPECT_TRUE(is_error(unix_stream::connect(place.path, 20ms), std::errc::timed_out));
    auto waiting = spawn([&] { return unix_stream::connect(place.path).has_value(); });
    sleep_for(5ms);
    ASSERT_TRUE(listener->accept().has_value());
    EXPECT_TRUE(waiting.join().value());
  });
}

TEST_P(unix_socket_test, descriptors_that_a_peer_passes_do_not_hide_what_follows) {
  run([] {
    auto ends = unix_stream::pair();
    ASSERT_TRUE(ends.has_value());
    auto reader = spawn([&] {
      std::string all;
      for (;;) {
        const std::string next = read_text(ends->first);
        if (next.empty()) return all;
        all += next;
      }
    });
    for (int i = 0; i < 5; ++i) yield();
    for (int round = 0; round < 50; ++round) {
      std::array<char, CMSG_SPACE(sizeof(int))> control{};
      char text[] = "ab";
      iovec part{text, 2};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      const int passed = STDERR_FILENO;
      std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
      ASSERT_EQ(::sendmsg(ends->second.native_handle(), &message, MSG_NOSIGNAL), 2);
      ASSERT_TRUE(ends->second.write_all("cd").has_value());
      if (round % 8 == 0) yield();
    }
    ends->second.close();
    std::string expected;
    for (int round = 0; round < 50; ++round) expected += "abcd";
    EXPECT_EQ(reader.join().value(), expected);
  });
}

}  // namespace
}  // namespace smarm
