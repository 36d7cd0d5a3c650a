// epoll_set is one epoll descriptor and the form of what it reports: the descriptor number and the
// registration that the report belongs to.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "io/system_call.hpp"

namespace smarm::detail {

class epoll_set {
 public:
  explicit epoll_set(int epoll) noexcept : epoll_(epoll) {}

  // add, modify and remove are epoll_ctl(2): 0 or a negative error. Any thread; never block.
  int add(int fd, std::uint32_t registration, std::uint32_t events) noexcept {
    return control(epoll_.get(), EPOLL_CTL_ADD, fd, events, data_of(fd, registration));
  }
  int modify(int fd, std::uint32_t registration, std::uint32_t events) noexcept {
    return control(epoll_.get(), EPOLL_CTL_MOD, fd, events, data_of(fd, registration));
  }
  int remove(int fd) noexcept { return control(epoll_.get(), EPOLL_CTL_DEL, fd, 0, 0); }

  [[nodiscard]] int native_handle() const noexcept { return epoll_.get(); }

  static std::uint64_t data_of(int fd, std::uint32_t registration) noexcept {
    return (std::uint64_t{registration} << 32) | static_cast<std::uint32_t>(fd);
  }
  static int fd_of(std::uint64_t data) noexcept {
    return static_cast<int>(static_cast<std::uint32_t>(data));
  }
  static std::uint32_t registration_of(std::uint64_t data) noexcept {
    return static_cast<std::uint32_t>(data >> 32);
  }

 private:
  plain_fd epoll_;
};

}  // namespace smarm::detail
