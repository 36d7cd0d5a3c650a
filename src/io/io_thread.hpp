// io_thread starts a thread of the runtime's own: named, and with all signals blocked but those
// that a fault of the thread itself raises, so that no signal of the process is taken by it unseen.
#pragma once

#include <signal.h>

#include <functional>
#include <thread>

namespace smarm::detail {

// block_signals blocks all signals of the calling thread except the fatal ones and those in
// `except`, and returns the mask that was in force.
sigset_t block_signals(const sigset_t* except = nullptr) noexcept;

// start_io_thread runs `body` on a new thread; `name` has at most 15 characters. Throws
// std::system_error where no thread can be had.
[[nodiscard]] std::thread start_io_thread(const char* name, std::function<void()> body);

}  // namespace smarm::detail
