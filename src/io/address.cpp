// Resolution of names; see address.hpp.
#include "io/address.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "io/blocking_pool.hpp"
#include "io/system_call.hpp"
#include "sched/driver.hpp"

namespace smarm {
namespace {

class resolver_errors final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "resolver"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
};

}  // namespace

const std::error_category& resolver_category() noexcept {
  static const resolver_errors instance;
  return instance;
}

std::string to_string(const tcp_address& address) {
  const bool bracketed = address.host.find(':') != std::string::npos;
  const std::string port = ":" + std::to_string(address.port);
  return bracketed ? "[" + address.host + "]" + port : address.host + port;
}

namespace detail {
namespace {

template <class Address>
socket_address pack(const Address& address) noexcept {
  static_assert(sizeof(Address) <= sizeof(sockaddr_storage));
  socket_address packed;
  std::memcpy(&packed.storage, &address, sizeof address);
  packed.size = sizeof address;
  return packed;
}

socket_address ipv4(in_addr host, std::uint16_t port) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr = host;
  return pack(address);
}

socket_address ipv6(in6_addr host, std::uint16_t port, std::uint32_t scope) noexcept {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = host;
  address.sin6_scope_id = scope;
  return pack(address);
}

// lookup is a getaddrinfo with everything it reads and writes, so that it can be left behind.
class lookup final : public pool_job {
 public:
  lookup(std::string host, std::uint16_t port) : host_(std::move(host)), port_(port) {}

  void run() noexcept override {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    const std::string port = std::to_string(port_);
    addrinfo* list = nullptr;
    result_ = ::getaddrinfo(host_.c_str(), port.c_str(), &hints, &list);
    error_ = errno;
    list_.reset(list);
  }

  [[nodiscard]] io_result<std::vector<socket_address>> take() const {
    if (result_ == EAI_SYSTEM) return std::unexpected(error_of(-error_));
    if (result_ != 0) return std::unexpected(std::error_code(result_, resolver_category()));
    std::vector<socket_address> found;
    for (const addrinfo* one = list_.get(); one != nullptr; one = one->ai_next) {
      socket_address address;
      std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
      address.size = one->ai_addrlen;
      found.push_back(address);
    }
    if (found.empty()) return std::unexpected(std::error_code(EAI_NONAME, resolver_category()));
    return found;
  }

 private:
  struct free_list {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
  };

  std::string host_;
  std::uint16_t port_;
  int result_ = 0;
  int error_ = 0;
  std::unique_ptr<addrinfo, free_list> list_;
};

// has_zero tells of a host that the calls below would take for the text before its zero byte.
bool has_zero(const std::string& host) noexcept { return host.find('\0') != std::string::npos; }

}  // namespace

std::optional<socket_address> numeric_address(const std::string& host, std::uint16_t port) {
  if (has_zero(host)) return std::nullopt;
  in_addr four;
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return ipv4(four, port);
  const auto percent = host.find('%');  // fe80::1%eth0
  in6_addr six;
  if (::inet_pton(AF_INET6, host.substr(0, percent).c_str(), &six) != 1) return std::nullopt;
  std::uint32_t scope = 0;
  if (percent != std::string::npos) {
    // Only an address of a link has a scope by name; what else may stand there, getaddrinfo knows.
    if (!IN6_IS_ADDR_LINKLOCAL(&six) && !IN6_IS_ADDR_MC_LINKLOCAL(&six)) return std::nullopt;
    scope = ::if_nametoindex(host.c_str() + percent + 1);
    if (scope == 0) return std::nullopt;
  }
  return ipv6(six, port, scope);
}

io_result<std::vector<socket_address>> resolve(const std::string& host, std::uint16_t port,
                                               deadline until) {
  std::vector<socket_address> found;
  if (host.empty()) {
    found.push_back(ipv6(in6addr_any, port, 0));  // takes IPv4 as well, unless the machine has no
    found.push_back(ipv4(in_addr{INADDR_ANY}, port));  // IPv6 at all
    return found;
  }
  if (has_zero(host)) return failure(std::errc::invalid_argument);
  if (const auto numeric = numeric_address(host, port)) {
    found.push_back(*numeric);
    return found;
  }
  const auto job = std::make_shared<lookup>(host, port);
  runtime_core* const runtime = current_runtime();
  if (runtime == nullptr) {
    job->run();
    return job->take();
  }
  if (!blocking_pool_of(*runtime).run_detachable(job, until)) return failure(std::errc::timed_out);
  return job->take();
}

tcp_address to_tcp_address(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in four;
    std::memcpy(&four, &address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(four.sin_port)};
  }
  sockaddr_in6 six;
  std::memcpy(&six, &address, sizeof six);
  ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  return {text.data(), ntohs(six.sin6_port)};
}

}  // namespace detail
}  // namespace smarm
