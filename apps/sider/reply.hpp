// Replies of RESP2, appended to a string that the caller sends later.
//
// A reply_writer holds nothing but the reference: making one is free, and whoever owns the string
// decides when it is flushed. Text that came from a client is made fit for a one-line reply here
// (line ends become blanks), so no caller can break the framing by echoing what it was sent.
// Threads: whoever owns the string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sider {

class reply_writer {
 public:
  explicit reply_writer(std::string& out) : out_(out) {}

  void ok() { out_ += "+OK\r\n"; }
  void simple(std::string_view text);
  // error writes "-" and `text`, which begins with its code ("ERR ...", "WRONGTYPE ...").
  void error(std::string_view text);
  void integer(std::int64_t value) { prefixed(':', value); }
  void bulk(std::string_view text);
  void null_bulk() { out_ += "$-1\r\n"; }
  void null_array() { out_ += "*-1\r\n"; }
  // array_header announces `length` replies that the caller writes next.
  void array_header(std::size_t length) { prefixed('*', static_cast<std::int64_t>(length)); }
  // raw appends what is already encoded.
  void raw(std::string_view encoded) { out_ += encoded; }

  [[nodiscard]] std::size_t size() const { return out_.size(); }

 private:
  void prefixed(char kind, std::int64_t value);
  void line(char kind, std::string_view text);

  std::string& out_;
};

}  // namespace sider
