// Goal: TCP streams carry every byte, end and fail as tcp.hpp says, and keep nothing.
// Method: listeners and streams on the loopback, in one runtime or against a plain socket of the
// test, which plays the peer that misbehaves.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/runtime.hpp>
#include <smarm/spawn.hpp>
#include <smarm/tcp.hpp>
#include <smarm/this_actor.hpp>

#include "io/counted_calls.hpp"
#include "io/io_fixture.hpp"
#include "tests/support/actors_test.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/watchdog.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::is_error;

using tcp_test = test::actors_test;
SMARM_TEST_AT_1_2_8(tcp_test);

tcp_listener listen(const tcp_listen_options& options = {}) {
  auto listener = tcp_listener::bind("127.0.0.1", 0, options);
  EXPECT_TRUE(listener.has_value());
  return std::move(*listener);
}

std::uint16_t port_of(const tcp_listener& listener) { return listener.local_address()->port; }

// A connected pair: .first was accepted, .second has connected.
std::pair<tcp_stream, tcp_stream> connected() {
  auto listener = listen();
  auto accepting = spawn([&] { return listener.accept(); });
  auto client = tcp_stream::connect("127.0.0.1", port_of(listener));
  EXPECT_TRUE(client.has_value());
  auto server = accepting.join().value();
  EXPECT_TRUE(server.has_value());
  return {std::move(*server), std::move(*client)};
}

// A stream of ours and a plain blocking socket of the test as its peer.
struct with_plain_peer {
  tcp_stream ours;
  unique_fd theirs;

  with_plain_peer() {
    auto listener = listen();
    theirs.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_of(listener));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(theirs.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    ours = std::move(*listener.accept());
  }
  void send(std::string_view text) const {
    EXPECT_EQ(::send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // reset makes the next close of theirs a reset of the connection.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(theirs.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    theirs.reset();
  }
};

std::string read_text(tcp_stream& from, deadline until = deadline::never()) {
  std::array<char, 256> buffer;
  const auto size = from.read_some(std::as_writable_bytes(std::span(buffer)), until);
  return size ? std::string(buffer.data(), *size) : "error: " + size.error().message();
}

// read_to_end returns how many bytes came, checking each against what pattern() sent.
unsigned char pattern(std::size_t at) { return static_cast<unsigned char>(at * 131 + at / 251); }

std::size_t read_to_end(tcp_stream& from, std::size_t buffer_size = 16384) {
  std::vector<std::byte> buffer(buffer_size);
  std::size_t total = 0;
  for (;;) {
    const auto size = from.read_some(buffer);
    EXPECT_TRUE(size.has_value());
    if (!size || *size == 0) return total;
    for (std::size_t i = 0; i < *size; i += 61) {
      if (std::to_integer<unsigned char>(buffer[i]) != pattern(total + i)) {
        ADD_FAILURE() << "wrong byte at " << total + i;
        return total;
      }
    }
    total += *size;
  }
}

void write_pattern(tcp_stream& to, std::size_t total, std::size_t block_size = 16384) {
  std::vector<std::byte> block(block_size);
  for (std::size_t done = 0; done < total;) {
    const std::size_t size = std::min(block.size(), total - done);
    for (std::size_t i = 0; i < size; ++i) block[i] = std::byte{pattern(done + i)};
    ASSERT_TRUE(to.write_all(std::span(block).first(size)).has_value());
    done += size;
  }
}

TEST_P(tcp_test, what_is_written_is_read_and_then_the_end) {
  run([] {
    auto [server, client] = connected();
    ASSERT_TRUE(client.write_all("hello").has_value());
    EXPECT_EQ(read_text(server), "hello");
    client.close();
    EXPECT_EQ(read_text(server), "");
    EXPECT_EQ(read_text(server), "");
  });
}

TEST_P(tcp_test, addresses_tell_both_ends_in_both_families) {
  run([] {
    for (const std::string host : {"127.0.0.1", "::1"}) {
      auto listener = tcp_listener::bind(host, 0);
      if (!listener && host == "::1") continue;  // a machine without IPv6
      ASSERT_TRUE(listener.has_value());
      auto client = tcp_stream::connect(host, port_of(*listener));
      ASSERT_TRUE(client.has_value()) << client.error().message();
      auto server = listener->accept();
      ASSERT_TRUE(server.has_value());
      EXPECT_EQ(client->local_address().value(), server->peer_address().value());
      EXPECT_EQ(client->peer_address().value(), listener->local_address().value());
      EXPECT_EQ(client->peer_address()->host, host);
    }
    EXPECT_EQ(to_string(tcp_address{"10.0.0.1", 80}), "10.0.0.1:80");
    EXPECT_EQ(to_string(tcp_address{"::1", 80}), "[::1]:80");
  });
}

TEST_P(tcp_test, a_listener_without_a_host_takes_connections_to_every_address) {
  run([] {
    auto listener = tcp_listener::bind("", 0);
    ASSERT_TRUE(listener.has_value());
    auto client = tcp_stream::connect("127.0.0.1", port_of(*listener));
    ASSERT_TRUE(client.has_value());
    EXPECT_TRUE(listener->accept().has_value());
  });
}

TEST_P(tcp_test, a_name_is_looked_up_on_a_thread_of_the_pool) {
  run([] {
    auto listener = tcp_listener::bind("localhost", 0);
    ASSERT_TRUE(listener.has_value()) << listener.error().message();
    auto client = tcp_stream::connect("localhost", port_of(*listener));
    ASSERT_TRUE(client.has_value()) << client.error().message();
    EXPECT_GE(test::threads_named("smarm-blocking"), 1U);
    const auto nowhere = tcp_stream::connect("no-such-host.invalid", 80);
    ASSERT_FALSE(nowhere.has_value());
    EXPECT_EQ(&nowhere.error().category(), &resolver_category());
    EXPECT_FALSE(nowhere.error().message().empty());
  });
}

TEST_P(tcp_test, a_host_with_a_zero_byte_is_not_the_host_before_it) {
  run([] {
    const auto listener = listen();
    for (const std::string& host : {std::string("127.0.0.1\0.example", 18), std::string(1, '\0')}) {
      EXPECT_TRUE(
          is_error(tcp_stream::connect(host, port_of(listener)), std::errc::invalid_argument));
      EXPECT_TRUE(is_error(tcp_listener::bind(host, 0), std::errc::invalid_argument));
    }
  });
}

TEST_P(tcp_test, an_address_that_belongs_to_no_link_has_no_scope) {
  run([] {
    const auto bound = tcp_listener::bind("::1%lo", 0);
    ASSERT_FALSE(bound.has_value());
    EXPECT_EQ(&bound.error().category(), &resolver_category());
  });
}

TEST_P(tcp_test, a_port_where_nobody_listens_refuses) {
  run([] {
    std::uint16_t port = 0;
    {
      const auto listener = listen();
      port = port_of(listener);
    }
    EXPECT_TRUE(is_error(tcp_stream::connect("127.0.0.1", port), std::errc::connection_refused));
    auto listener = listen();
    EXPECT_TRUE(
        is_error(tcp_listener::bind("127.0.0.1", port_of(listener)), std::errc::address_in_use));
  });
}

// A listener with a full queue drops what would open another connection.
struct full_listener {
  tcp_listener listener = listen({.backlog = 0});
  std::vector<tcp_stream> waiting;

  full_listener() {
    for (;;) {
      auto next = tcp_stream::connect("127.0.0.1", port_of(listener), 50ms);
      if (!next) break;
      waiting.push_back(std::move(*next));
    }
  }
};

TEST_P(tcp_test, a_connect_ends_at_its_deadline) {
  run([] {
    const full_listener full;
    EXPECT_TRUE(is_error(tcp_stream::connect("127.0.0.1", port_of(full.listener), 30ms),
                         std::errc::timed_out));
  });
}

TEST_P(tcp_test, stopped_accepts_and_connects_keep_no_descriptor) {
  run([] {
    const full_listener full;
    auto listener = listen();
    const std::size_t before = test::open_descriptors();
    auto random = test::make_rng(3);
    for (std::int64_t round = 0; round < test::rounds(300, 100'000); ++round) {
      auto accepting = spawn([&] { return listener.accept().has_value(); });
      auto connecting = spawn(
          [&] { return tcp_stream::connect("127.0.0.1", port_of(full.listener)).has_value(); });
      auto racing =
          spawn([&] { return tcp_stream::connect("127.0.0.1", port_of(listener)).has_value(); });
      for (auto turns = random() % 8; turns > 0; --turns) yield();
      accepting.request_stop();
      connecting.request_stop();
      racing.request_stop();
      (void)accepting.join();
      EXPECT_FALSE(connecting.join().has_value());
      (void)racing.join();
      // What was connected and not accepted goes, so that the queue does not fill up.
      while (listener.accept(-1s)) {
      }
    }
    EXPECT_EQ(test::open_descriptors(), before);
  });
}

TEST_P(tcp_test, a_read_that_was_stopped_never_writes_to_its_buffer_again) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      with_plain_peer peer;
      std::array<std::byte, 64> buffer{};
      auto reader = spawn([&] { (void)peer.ours.read_some(buffer); });
      for (int i = 0; i < 5; ++i) yield();
      reader.request_stop();
      EXPECT_TRUE(reader.join().error().is_stopped());
      buffer.fill(std::byte{0x5a});
      peer.send("late");
      EXPECT_EQ(read_text(peer.ours), "late");
      EXPECT_TRUE(std::ranges::all_of(buffer, [](std::byte b) { return b == std::byte{0x5a}; }));
    }
  });
}

TEST_P(tcp_test, reads_writes_and_accepts_end_at_their_deadlines) {
  run([] {
    auto listener = listen();
    EXPECT_TRUE(is_error(listener.accept(10ms), std::errc::timed_out));
    EXPECT_TRUE(is_error(listener.accept(-1s), std::errc::timed_out));
    auto [server, client] = connected();
    std::vector<std::byte> block(1 << 20);
    EXPECT_TRUE(is_error(server.read_some(block, 10ms), std::errc::timed_out));
    EXPECT_TRUE(is_error(server.read_some(block, -1s), std::errc::timed_out));
    io_result<void> written;
    while (written) written = client.write_all(block, 20ms);
    EXPECT_TRUE(is_error(written, std::errc::timed_out));
    // What is there is read, however late it is.
    EXPECT_GT(server.read_some(block, -1s).value(), 0U);
  });
}

TEST_P(tcp_test, empty_buffers_are_no_end) {
  run([] {
    auto [server, client] = connected();
    EXPECT_EQ(client.write_some(const_buffer{}).value(), 0U);
    EXPECT_EQ(server.read_some({}).value(), 0U);
    const std::array<const_buffer, 3> empty{};
    EXPECT_EQ(client.write_some(empty).value(), 0U);
    EXPECT_TRUE(client.write_all(empty).has_value());
    const std::array<const_buffer, 4> mixed{const_buffer{}, detail::as_buffer("ab"), const_buffer{},
                                            detail::as_buffer("c")};
    EXPECT_EQ(client.write_some(mixed).value(), 3U);
    EXPECT_EQ(server.read_some({}).value(), 0U);
    EXPECT_EQ(read_text(server), "abc");
  });
}

TEST_P(tcp_test, many_buffers_are_written_as_one_also_where_room_is_short) {
  run([] {
    auto [server, client] = connected();
    constexpr std::size_t parts_count = 1'000;
    std::size_t total = 0;
    std::vector<std::vector<std::byte>> blocks(parts_count);
    std::vector<const_buffer> parts;
    for (std::size_t i = 0; i < parts_count; ++i) {
      blocks[i].resize(i * 37 % 9'000);
      for (std::byte& b : blocks[i]) b = std::byte{pattern(total++)};
      parts.emplace_back(blocks[i]);
    }
    auto reader = spawn([&server] { return read_to_end(server, 3'000); });
    EXPECT_TRUE(client.write_all(parts).has_value());
    client.close();
    EXPECT_EQ(reader.join().value(), total);
  });
}

TEST_P(tcp_test, one_actor_reads_while_another_writes_the_same_stream) {
  const auto total =
      static_cast<std::size_t>(test::rounds(std::int64_t{64} << 20, std::int64_t{1} << 30));
  if (test::soaking()) test::extend_watchdog(30min);
  run([total] {
    auto ends = connected();
    std::vector<join_handle<std::size_t>> readers;
    std::vector<join_handle<void>> writers;
    for (tcp_stream* const end : {&ends.first, &ends.second}) {
      readers.push_back(spawn([end] { return read_to_end(*end, 65536); }));
      writers.push_back(spawn([end, total] {
        write_pattern(*end, total, 65536);
        EXPECT_TRUE(end->shutdown_write().has_value());
      }));
    }
    for (auto& writer : writers) EXPECT_TRUE(writer.join().has_value());
    for (auto& reader : readers) EXPECT_EQ(reader.join().value(), total);
  });
}

// Single bytes back and forth: every one of them is an edge, and a lost one hangs.
TEST_P(tcp_test, no_edge_is_lost_between_short_reads) {
  const auto rounds = test::rounds(5'000, 1'000'000);
  run([rounds] {
    std::vector<join_handle<void>> actors;
    for (int pair = 0; pair < 4; ++pair) {
      actors.push_back(spawn([rounds] {
        auto ends = connected();
        auto echo = spawn([&] {
          std::array<std::byte, 16> byte;
          while (ends.first.read_some(byte).value() == 1) {
            ASSERT_TRUE(ends.first.write_all(std::span(byte).first(1)).has_value());
          }
        });
        std::array<std::byte, 16> byte{};
        for (std::int64_t i = 0; i < rounds; ++i) {
          ASSERT_TRUE(ends.second.write_all(std::span(byte).first(1)).has_value());
          ASSERT_EQ(ends.second.read_some(byte).value(), 1U);
        }
        ends.second.close();
        EXPECT_TRUE(echo.join().has_value());
      }));
    }
    for (auto& actor : actors) EXPECT_TRUE(actor.join().has_value());
  });
}

// Both may find the socket empty, or ready, on the strength of what the other has changed since.
TEST_P(tcp_test, two_readers_that_race_for_single_bytes_get_them_all) {
  const auto bytes = test::rounds(3'000, 300'000);
  run([bytes] {
    with_plain_peer peer;
    std::atomic<std::int64_t> got{0};
    std::thread sender([&] {
      for (std::int64_t i = 0; i < bytes; ++i) {
        peer.send("x");
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
    std::vector<join_handle<void>> readers;
    for (int reader = 0; reader < 2; ++reader) {
      readers.push_back(spawn([&] {
        std::array<std::byte, 4> buffer;
        while (got < bytes) {
          const auto size = peer.ours.read_some(buffer, 1ms);
          if (size) got += static_cast<std::int64_t>(*size);
          // A second reader is refused while the first one waits; it comes again.
          if (!size && size.error() == std::errc::device_or_resource_busy) yield();
        }
      }));
    }
    for (auto& reader : readers) EXPECT_TRUE(reader.join().has_value());
    sender.join();
    EXPECT_EQ(got, bytes);
  });
}

TEST_P(tcp_test, a_peer_that_has_ended_its_half_is_read_to_the_end_and_answered) {
  run([] {
    for (int round = 0; round < 10; ++round) {
      auto [server, client] = connected();
      constexpr std::size_t size = 1 << 20;
      auto peer = spawn([&client] {
        write_pattern(client, size);
        EXPECT_TRUE(client.shutdown_write().has_value());
        EXPECT_EQ(read_text(client), "answer");
        EXPECT_EQ(read_text(client), "");
      });
      EXPECT_EQ(read_to_end(server, 1'000), size);
      ASSERT_TRUE(server.write_all("answer").has_value());
      server.close();
      EXPECT_TRUE(peer.join().has_value());
    }
  });
}

TEST_P(tcp_test, a_writer_waits_quietly_for_a_peer_that_has_ended_its_half) {
  run([] {
    with_plain_peer peer;
    auto reader = spawn([&] { return read_text(peer.ours); });
    // So that the end is reported, and the descriptor registered for both directions.
    eventually([&] { return test::is_registered(peer.ours.native_handle()); });
    ASSERT_EQ(::shutdown(peer.theirs.get(), SHUT_WR), 0);
    EXPECT_EQ(reader.join().value(), "");
    auto writer = spawn([&] {
      const std::vector<std::byte> block(8 << 20);
      return peer.ours.write_all(block).has_value();
    });
    sleep_for(50ms);  // by now the buffers are full
    const auto& counts = test::counted_calls();
    const long before = counts.sends + counts.epoll_waits;
    sleep_for(200ms);
    EXPECT_LE(counts.sends + counts.epoll_waits - before, 50) << "spins on the half-closed peer";
    std::thread drain([&] {
      std::vector<char> block(65536);
      for (ssize_t left = 8 << 20; left > 0;)
        left -= ::read(peer.theirs.get(), block.data(), 65536);
    });
    EXPECT_TRUE(writer.join().value());
    drain.join();
  });
}

TEST_P(tcp_test, urgent_data_does_not_hide_what_follows_it) {
  run([] {
    for (int round = 0; round < 20; ++round) {
      with_plain_peer peer;
      auto reader = spawn([&] {
        std::string all;
        for (;;) {
          const std::string next = read_text(peer.ours);
          if (next.empty()) return all;
          all += next;
        }
      });
      for (int i = 0; i < 3; ++i) yield();
      peer.send("before");
      EXPECT_EQ(::send(peer.theirs.get(), "!", 1, MSG_OOB), 1);
      peer.send("after");
      ::shutdown(peer.theirs.get(), SHUT_WR);
      EXPECT_EQ(reader.join().value(), "beforeafter");
    }
  });
}

TEST_P(tcp_test, writing_to_a_peer_that_has_reset_is_an_error_and_no_signal) {
  ASSERT_EQ(std::signal(SIGPIPE, SIG_DFL), SIG_DFL);
  run([] {
    for (int round = 0; round < 20; ++round) {
      with_plain_peer peer;
      peer.reset();
      const std::array<const_buffer, 2> parts{detail::as_buffer("a"), detail::as_buffer("b")};
      io_result<void> written;
      while (written) {
        written = round % 2 == 0 ? peer.ours.write_all("x") : peer.ours.write_all(parts);
      }
      EXPECT_TRUE(is_error(written, std::errc::broken_pipe) ||
                  is_error(written, std::errc::connection_reset));
      EXPECT_FALSE(peer.ours.write_all("x").has_value());
    }
  });
}

TEST_P(tcp_test, a_reset_wakes_who_reads) {
  run([] {
    with_plain_peer peer;
    auto reader = spawn([&] { return read_text(peer.ours); });
    for (int i = 0; i < 5; ++i) yield();
    peer.reset();
    EXPECT_NE(reader.join().value().find("error: "), std::string::npos);
  });
}

TEST_P(tcp_test, closing_wakes_the_reader_the_writer_and_the_acceptor) {
  run([] {
    auto listener = listen();
    with_plain_peer peer;
    auto reader = spawn([&] {
      std::array<std::byte, 8> buffer;
      return is_error(peer.ours.read_some(buffer), std::errc::bad_file_descriptor);
    });
    auto writer = spawn([&] {
      const std::vector<std::byte> block(32 << 20);
      return is_error(peer.ours.write_all(block), std::errc::bad_file_descriptor);
    });
    auto acceptor =
        spawn([&] { return is_error(listener.accept(), std::errc::bad_file_descriptor); });
    sleep_for(20ms);
    peer.ours.close();
    listener.close();
    EXPECT_TRUE(reader.join().value());
    EXPECT_TRUE(writer.join().value());
    EXPECT_TRUE(acceptor.join().value());
    EXPECT_FALSE(peer.ours.is_open());
    EXPECT_TRUE(is_error(peer.ours.shutdown_write(), std::errc::bad_file_descriptor));
    EXPECT_TRUE(is_error(peer.ours.peer_address(), std::errc::bad_file_descriptor));
  });
}

TEST_P(tcp_test, closing_wakes_a_thread_that_is_no_actor) {
  run([] {
    with_plain_peer peer;
    std::atomic<bool> refused{false};
    std::thread reader([&] {
      std::array<std::byte, 8> buffer;
      refused = is_error(peer.ours.read_some(buffer), std::errc::bad_file_descriptor);
    });
    sleep_for(10ms);
    peer.ours.close();
    reader.join();
    EXPECT_TRUE(refused);
  });
}

TEST_P(tcp_test, a_second_reader_is_refused_while_the_first_one_waits) {
  run([] {
    with_plain_peer peer;
    auto first = spawn([&] { return read_text(peer.ours); });
    eventually([&] { return test::is_registered(peer.ours.native_handle()); });
    std::array<std::byte, 8> buffer;
    EXPECT_TRUE(is_error(peer.ours.read_some(buffer), std::errc::device_or_resource_busy));
    peer.send("x");
    EXPECT_EQ(first.join().value(), "x");
  });
}

// Numbers of closed sockets are given out again at once. A report or a stale handle of the old
// socket must not touch the new one.
TEST_P(tcp_test, a_reused_descriptor_number_is_a_new_socket) {
  run([] {
    auto [server, client] = connected();
    tcp_stream stale = std::move(server);
    const int number = stale.native_handle();
    stale.close();
    auto fresh = connected();
    const bool reused =
        fresh.first.native_handle() == number || fresh.second.native_handle() == number;
    EXPECT_TRUE(reused) << "the kernel gives out the lowest number";
    std::array<std::byte, 8> buffer;
    EXPECT_TRUE(is_error(stale.read_some(buffer), std::errc::bad_file_descriptor));
    stale.close();
    ASSERT_TRUE(fresh.second.write_all("x").has_value());
    EXPECT_EQ(read_text(fresh.first), "x");
  });
}

TEST_P(tcp_test, connections_come_and_go_in_a_storm) {
  const auto rounds = test::rounds(150, 20'000);
  run([rounds] {
    auto listener = listen();
    auto acceptor = spawn([&] {
      for (;;) {
        auto next = listener.accept();
        if (!next) return;
        spawn([stream = std::move(*next)]() mutable {
          // Answer with what came, then leave in one of three ways.
          const std::string text = read_text(stream);
          (void)stream.write_all(text);
          if (text.size() % 3 == 1) (void)stream.shutdown_write();
          if (text.size() % 3 == 2) (void)read_text(stream, 1s);
        });
      }
    });
    std::vector<join_handle<void>> clients;
    for (std::size_t c = 0; c < 16; ++c) {
      clients.push_back(spawn([&, c] {
        for (std::int64_t i = 0; i < rounds; ++i) {
          auto stream = tcp_stream::connect("127.0.0.1", port_of(listener));
          ASSERT_TRUE(stream.has_value());
          const std::string text(1 + (c * 7 + static_cast<std::size_t>(i)) % 50,
                                 static_cast<char>('a' + c));
          ASSERT_TRUE(stream->write_all(text).has_value());
          ASSERT_EQ(read_text(*stream), text);
        }
      }));
    }
    for (auto& client : clients) EXPECT_TRUE(client.join().has_value());
    listener.close();
    EXPECT_TRUE(acceptor.join().has_value());
  });
}

TEST_P(tcp_test, a_stream_moves_from_actor_to_actor_and_from_run_to_run) {
  with_plain_peer peer;
  runtime ours(make_config());
  for (int round = 0; round < 5; ++round) {
    ours.run([&] {
      auto reader = spawn([stream = std::move(peer.ours)]() mutable {
        EXPECT_EQ(read_text(stream), "x");
        return std::move(stream);
      });
      for (int i = 0; i < 20; ++i) yield();
      peer.send("x");
      peer.ours = reader.join().value();
    });
  }
  peer.send("y");
  EXPECT_EQ(read_text(peer.ours), "y");  // here by a thread that is no actor
}

TEST_P(tcp_test, an_actor_whose_peer_is_always_ahead_lets_others_run) {
  run([] {
    with_plain_peer peer;
    std::atomic<bool> done{false};
    std::thread feed([&] {
      const std::vector<char> block(65536);
      while (!done && ::send(peer.theirs.get(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
      }
      ::shutdown(peer.theirs.get(), SHUT_WR);
    });
    auto reader = spawn([&] {
      std::array<std::byte, 64> buffer;
      while (!done && peer.ours.read_some(buffer).value() > 0) {
      }
      peer.ours.close();
    });
    for (int i = 0; i < 200; ++i) yield();  // with one scheduler: only if the reader gives way
    done = true;
    EXPECT_TRUE(reader.join().has_value());
    feed.join();
  });
}

}  // namespace
}  // namespace smarm
