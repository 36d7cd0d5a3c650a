// stream_socket is what streams and listeners have in common: a handle on an open socket, with
// waits that cost no system call for each request.
//
// The handle is a descriptor number and a generation; all else lies in a table entry of that
// number (src/io/fd_table.hpp). So an operation on a socket that was closed meanwhile, even one
// whose number has been given to another socket since, is recognised and answered
// bad_file_descriptor.
//
// Threads: at most one actor reads, one writes, and anybody may close, all at the same time.
// Moving or destroying the handle itself needs that nobody else uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/fd.hpp>
#include <smarm/io_result.hpp>

namespace smarm {

// const_buffer is bytes to be written; several of them are written as if they were one.
using const_buffer = std::span<const std::byte>;

namespace detail {

class stream_socket {
 public:
  stream_socket() noexcept = default;
  // adopt takes a socket in non-blocking mode that nobody else has; `local` says that it is a Unix
  // socket. The one error is too_many_files_open, for a descriptor number beyond 2^24.
  [[nodiscard]] static io_result<stream_socket> adopt(unique_fd fd, bool local) noexcept;
  stream_socket(stream_socket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), generation_(std::exchange(other.generation_, 0)) {}
  stream_socket& operator=(stream_socket&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = std::exchange(other.generation_, 0);
    }
    return *this;
  }
  ~stream_socket() { close(); }

  // The calls of stream of the same names; see there.
  io_result<std::size_t> read_some(std::span<std::byte> into, deadline until);
  io_result<std::size_t> write_some(const_buffer from, deadline until);
  io_result<std::size_t> write_some(std::span<const const_buffer> from, deadline until);
  io_result<void> write_all(const_buffer from, deadline until);
  io_result<void> write_all(std::span<const const_buffer> from, deadline until);
  io_result<void> shutdown_write() noexcept;
  io_result<void> set_option(int level, int name, int value) noexcept;

  // name writes the socket's own address or the peer's to `address`, which has room for a
  // sockaddr_storage.
  io_result<void> name(bool peer, void* address) const noexcept;

  // accept waits for a connection and returns it in non-blocking mode. Errors of the connection are
  // passed over; where descriptors or memory run out it tries again after a pause.
  io_result<unique_fd> accept(deadline until);

  // connect starts the connection and waits for its outcome. The address is a sockaddr.
  io_result<void> connect(const void* address, std::size_t size, deadline until);

  // close ends the socket for everybody; whoever waits on it gets bad_file_descriptor. Any thread;
  // never parks. True: this call closed it; false: it was not open.
  bool close() noexcept;

  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] int native_handle() const noexcept { return fd_; }

 private:
  stream_socket(int fd, std::uint32_t generation) noexcept : fd_(fd), generation_(generation) {}

  int fd_ = -1;
  std::uint32_t generation_ = 0;
};

// as_buffer gives text as the bytes that write_some and write_all take.
[[nodiscard]] inline const_buffer as_buffer(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace detail
}  // namespace smarm
