// Unix stream sockets: as TCP, with a path for an address. stream.hpp says what holds for every
// call here, and has those that read and write.
//
// A path that begins with '@' or a zero byte names a socket in the abstract namespace, which has no
// file. Any other path is a file; LIMIT: 107 bytes, beyond that filename_too_long.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/stream_socket.hpp>
#include <smarm/fd.hpp>
#include <smarm/io_result.hpp>
#include <smarm/stream.hpp>

namespace smarm {

class unix_stream : public stream {
 public:
  // A stream that is not open; every call answers bad_file_descriptor.
  unix_stream() noexcept = default;

  // adopt makes a stream of a connected socket and switches it to non-blocking mode.
  [[nodiscard]] static io_result<unix_stream> adopt(unique_fd connected);

  // pair gives two streams that are connected with each other. Never parks.
  [[nodiscard]] static io_result<std::pair<unix_stream, unix_stream>> pair();

  // connect connects to a listener; where its queue is full it tries again until the deadline.
  [[nodiscard]] static io_result<unix_stream> connect(const std::string& path,
                                                      deadline until = deadline::never());

 private:
  friend class unix_listener;
  explicit unix_stream(detail::stream_socket socket) noexcept : stream(std::move(socket)) {}
};

struct unix_listen_options {
  int backlog = 1024;  // connections that the kernel keeps until they are accepted
  // replace_stale: a socket file on which nobody listens any more is removed first. A file that
  // somebody listens on, or that is no socket, is never removed.
  bool replace_stale = true;
  // unlink_on_close: the file goes with the listener, if it is still the listener's own.
  bool unlink_on_close = true;
};

class unix_listener {
 public:
  // A listener that is not open; accept answers bad_file_descriptor.
  unix_listener() noexcept = default;
  unix_listener(unix_listener&& other) noexcept
      : socket_(std::move(other.socket_)), file_(std::exchange(other.file_, {})) {}
  unix_listener& operator=(unix_listener&& other) noexcept;
  ~unix_listener() { close(); }

  // bind makes the socket and listens. Errors: address_in_use and the like. Never parks.
  [[nodiscard]] static io_result<unix_listener> bind(const std::string& path,
                                                     const unix_listen_options& options = {});

  // accept as tcp_listener::accept.
  [[nodiscard]] io_result<unix_stream> accept(deadline until = deadline::never());

  // close stops listening, and removes the file as the options say. Any thread; never parks.
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

 private:
  // The file that this listener made: its path, and what tells it from one made there later.
  struct own_file {
    std::string path;  // empty: no file, or one that stays
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };

  unix_listener(detail::stream_socket socket, own_file file) noexcept
      : socket_(std::move(socket)), file_(std::move(file)) {}

  detail::stream_socket socket_;
  own_file file_;
};

}  // namespace smarm
