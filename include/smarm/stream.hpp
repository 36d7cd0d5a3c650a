// stream is a connection of bytes: what tcp_stream and unix_stream have in common, which is all but
// how they come about and what their addresses are.
//
// An actor that waits here parks; no thread is blocked. Each call that may wait takes a deadline
// and then answers timed_out; it is a stop point on entry and on return. On a thread that is no
// actor it blocks that thread.
//
// One actor may read while another writes the same stream, and any thread may close it meanwhile:
// then both get bad_file_descriptor. A second reader, or writer, at the same time gets
// device_or_resource_busy. A stream may be moved from actor to actor, also to another runtime, and
// a tcp_stream or unix_stream into a stream, where it does not matter which it was.
// No write raises SIGPIPE; every descriptor is closed on exec.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/stream_socket.hpp>
#include <smarm/io_result.hpp>

namespace smarm {

class stream {
 public:
  // A stream that is not open; every call answers bad_file_descriptor.
  stream() noexcept = default;

  // read_some waits for bytes and reads as many as are there and fit. 0 is the end: the peer will
  // send no more, and all it had sent before has been read. An empty span reads nothing and gives
  // 0 at once, which says nothing about the end. A deadline that has passed still gets what is
  // there.
  io_result<std::size_t> read_some(std::span<std::byte> into, deadline until = deadline::never()) {
    return socket_.read_some(into, until);
  }

  // write_some waits for room and writes as much as fits, at least a byte unless there is none to
  // write. The form with several buffers writes them in order as if they were one; it looks at
  // the first 64 that are not empty.
  io_result<std::size_t> write_some(const_buffer from, deadline until = deadline::never()) {
    return socket_.write_some(from, until);
  }
  io_result<std::size_t> write_some(std::span<const const_buffer> from,
                                    deadline until = deadline::never()) {
    return socket_.write_some(from, until);
  }

  // write_all writes everything. After an error, part of it may have been written.
  io_result<void> write_all(const_buffer from, deadline until = deadline::never()) {
    return socket_.write_all(from, until);
  }
  io_result<void> write_all(std::string_view from, deadline until = deadline::never()) {
    return socket_.write_all(detail::as_buffer(from), until);
  }
  io_result<void> write_all(std::span<const const_buffer> from,
                            deadline until = deadline::never()) {
    return socket_.write_all(from, until);
  }

  // shutdown_write tells the peer that no more will come; reading goes on. Never parks.
  io_result<void> shutdown_write() noexcept { return socket_.shutdown_write(); }

  // close ends the stream for everybody who uses it. Any thread; never parks.
  void close() noexcept { socket_.close(); }

  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  // native_handle is the descriptor, still owned by the stream; -1 where there is none.
  [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

 protected:
  explicit stream(detail::stream_socket socket) noexcept : socket_(std::move(socket)) {}
  [[nodiscard]] detail::stream_socket& socket() noexcept { return socket_; }
  [[nodiscard]] const detail::stream_socket& socket() const noexcept { return socket_; }

 private:
  detail::stream_socket socket_;
};

}  // namespace smarm
