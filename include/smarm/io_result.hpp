// io_result is what a call that the outside world may refuse gives back: the value, or the error.
//
// The error is a std::error_code: compare it with std::errc (timed_out at a deadline,
// bad_file_descriptor after a close, connection_reset, broken_pipe ...). A name that cannot be
// resolved comes as a code of resolver_category() (tcp.hpp).
#pragma once

#include <expected>
#include <system_error>

namespace smarm {

template <class T>
using io_result = std::expected<T, std::error_code>;

}  // namespace smarm
