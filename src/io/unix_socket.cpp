// Unix stream sockets on top of stream_socket; see smarm/unix_socket.hpp.
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <smarm/unix_socket.hpp>

#include "io/local_address.hpp"
#include "io/system_call.hpp"

namespace smarm {
namespace {

using detail::error_of;
using detail::local_address;
using detail::stream_socket;

io_result<stream_socket> open_socket() {
  const int fd = detail::make_socket(AF_UNIX);
  if (fd < 0) return std::unexpected(error_of(fd));
  return stream_socket::adopt(unique_fd(fd), true);
}

// is_stale tells whether the path is a socket that nobody listens on any more. It asks with a
// datagram socket: a living listener answers that it is of another type, and never learns of it.
bool is_stale(const local_address& at) noexcept {
  struct stat found{};
  if (::lstat(at.address.sun_path, &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const unique_fd probe(detail::make_local_datagram_socket());
  return probe && detail::connect_to(probe.get(), &at.address, at.size) == -ECONNREFUSED;
}

int bind_or_replace(int fd, const local_address& at, bool replace_stale) noexcept {
  const int result = detail::bind_socket(fd, &at.address, at.size);
  if (result != -EADDRINUSE || at.is_abstract || !replace_stale || !is_stale(at)) return result;
  ::unlink(at.address.sun_path);
  return detail::bind_socket(fd, &at.address, at.size);
}

}  // namespace

io_result<unix_stream> unix_stream::adopt(unique_fd connected) {
  if (const int result = detail::set_nonblocking(connected.get()); result < 0) {
    return std::unexpected(error_of(result));
  }
  auto socket = stream_socket::adopt(std::move(connected), true);
  if (!socket) return std::unexpected(socket.error());
  return unix_stream(std::move(*socket));
}

io_result<std::pair<unix_stream, unix_stream>> unix_stream::pair() {
  int ends[2];
  if (const int result = detail::make_socket_pair(ends); result < 0) {
    return std::unexpected(error_of(result));
  }
  unique_fd second_end(ends[1]);
  auto first = adopt(unique_fd(ends[0]));
  if (!first) return std::unexpected(first.error());
  auto second = adopt(std::move(second_end));
  if (!second) return std::unexpected(second.error());
  return std::pair(std::move(*first), std::move(*second));
}

io_result<unix_stream> unix_stream::connect(const std::string& path, deadline until) {
  const auto to = detail::to_local_address(path);
  if (!to) return std::unexpected(to.error());
  auto socket = open_socket();
  if (!socket) return std::unexpected(socket.error());
  if (const auto done = socket->connect(&to->address, to->size, until); !done) {
    return std::unexpected(done.error());
  }
  return unix_stream(std::move(*socket));
}

unix_listener& unix_listener::operator=(unix_listener&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::move(other.socket_);
    file_ = std::exchange(other.file_, {});
  }
  return *this;
}

io_result<unix_listener> unix_listener::bind(const std::string& path,
                                             const unix_listen_options& options) {
  const auto at = detail::to_local_address(path);
  if (!at) return std::unexpected(at.error());
  auto socket = open_socket();
  if (!socket) return std::unexpected(socket.error());
  int result = bind_or_replace(socket->native_handle(), *at, options.replace_stale);
  if (result < 0) return std::unexpected(error_of(result));
  own_file file;
  struct stat made_there{};
  if (!at->is_abstract && options.unlink_on_close && ::lstat(path.c_str(), &made_there) == 0) {
    file = {path, made_there.st_dev, made_there.st_ino};
  }
  unix_listener listener(std::move(*socket), std::move(file));
  result = detail::listen_socket(listener.native_handle(), options.backlog);
  if (result < 0) return std::unexpected(error_of(result));
  return listener;
}

io_result<unix_stream> unix_listener::accept(deadline until) {
  auto connection = socket_.accept(until);
  if (!connection) return std::unexpected(connection.error());
  auto socket = stream_socket::adopt(std::move(*connection), true);
  if (!socket) return std::unexpected(socket.error());
  return unix_stream(std::move(*socket));
}

void unix_listener::close() noexcept {
  if (!socket_.close() || file_.path.empty()) return;
  struct stat found{};
  if (::lstat(file_.path.c_str(), &found) != 0) return;
  // Another may have put its socket there since; that one stays.
  if (found.st_dev == file_.device && found.st_ino == file_.inode) ::unlink(file_.path.c_str());
}

}  // namespace smarm
