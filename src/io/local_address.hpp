// local_address is the address of a Unix socket, from the text that people write.
//
// A name that starts with '@' or a zero byte is an abstract one; every other is a path. Any thread;
// nothing here asks the kernel.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

#include <smarm/io_result.hpp>

#include "io/system_call.hpp"

namespace smarm::detail {

struct local_address {
  sockaddr_un address{};
  std::size_t size = 0;
  bool is_abstract = false;
};

// to_local_address answers invalid_argument for a path that is empty or holds a zero byte, and
// filename_too_long.
[[nodiscard]] inline io_result<local_address> to_local_address(const std::string& path) {
  local_address to;
  to.address.sun_family = AF_UNIX;
  if (path.empty()) return failure(std::errc::invalid_argument);
  to.is_abstract = path.front() == '@' || path.front() == '\0';
  // The kernel would take the path up to its first zero byte: the name of another file.
  if (!to.is_abstract && path.find('\0') != std::string::npos) {
    return failure(std::errc::invalid_argument);
  }
  // A path in the file system needs room for the zero byte at its end; an abstract name has none.
  const std::size_t room = sizeof to.address.sun_path - (to.is_abstract ? 0 : 1);
  if (path.size() > room) return failure(std::errc::filename_too_long);
  std::memcpy(to.address.sun_path, path.data(), path.size());
  if (to.is_abstract) to.address.sun_path[0] = '\0';
  to.size = offsetof(sockaddr_un, sun_path) + path.size() + (to.is_abstract ? 0 : 1);
  return to;
}

}  // namespace smarm::detail
