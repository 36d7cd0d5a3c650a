// Goal: a host in numbers is read as the C library reads it, prints back to what is read as the
// same address, and no text does harm.
// Method: beside getaddrinfo, which takes more forms ("127.1"), but whatever ours takes it must.
#include <netdb.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "io/address.hpp"

namespace {

using smarm::detail::numeric_address;
using smarm::detail::socket_address;
using smarm::detail::to_tcp_address;

constexpr std::uint16_t port = 6380;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_same(const socket_address& left, const socket_address& right) {
  return left.size == right.size && std::memcmp(&left.storage, &right.storage, left.size) == 0;
}

void check_beside_library(const std::string& host, const socket_address& ours) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  require(::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) == 0);
  const std::unique_ptr<addrinfo, decltype([](addrinfo* each) { ::freeaddrinfo(each); })> kept(
      list);
  socket_address theirs;
  theirs.size = list->ai_addrlen;
  std::memcpy(&theirs.storage, list->ai_addr, list->ai_addrlen);
  require(is_same(ours, theirs));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string host(reinterpret_cast<const char*>(data), size);
  const auto read = numeric_address(host, port);
  if (!read) return 0;
  require(host.find('\0') == std::string::npos);
  check_beside_library(host, *read);
  const auto named = to_tcp_address(read->storage);
  require(named.port == port);
  const auto scope = host.find('%');
  const std::string in_scope = named.host + (scope == std::string::npos ? "" : host.substr(scope));
  const auto again = numeric_address(in_scope, port);
  require(again.has_value() && is_same(*read, *again));
  const bool bracketed = named.host.find(':') != std::string::npos;
  require(smarm::to_string(named) ==
          (bracketed ? "[" + named.host + "]:6380" : named.host + ":6380"));
  return 0;
}
