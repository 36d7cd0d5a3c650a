// kernel is what the models of src/io have for an operating system: one descriptor, one epoll set
// that may watch it, and threads.
//
// All that the kernel knows of the descriptor is one atomic, and each system call is one relaxed
// update of it: the calls have an order among themselves and publish nothing in the program, so
// that what the source needs of memory order it has to have of its own.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "io/epoll_set.hpp"
#include "io/fd_table.hpp"
#include "model/cell.hpp"

namespace smarm::under_model {

inline constexpr int the_fd = 3;

class kernel {
 public:
  kernel();
  ~kernel();
  kernel(const kernel&) = delete;
  kernel& operator=(const kernel&) = delete;

  // current is the kernel of the running model.
  [[nodiscard]] static kernel& current() noexcept;

  // The peer's side: bytes arrive; there is room to write.
  void send(std::uint64_t bytes) noexcept;
  void make_room() noexcept;

  // await_registration returns when somebody has registered the descriptor.
  void await_registration() noexcept;

  // watch is the epoll driver's thread: it dispatches what epoll_wait reports until end_watch.
  void watch() noexcept;
  void end_watch() noexcept;

  // reopen gives the number out again, to whoever opened a descriptor.
  void reopen() noexcept;
  [[nodiscard]] bool is_closed() noexcept;

  // The system calls.
  int control(int operation, std::uint32_t events, std::uint64_t data) noexcept;
  long receive() noexcept;
  int poll(short events) noexcept;
  void close() noexcept;

  detail::epoll_set set{9};
  detail::fd_entry entry;
  // Operations in a driver's hands, as the runtime counts them.
  detail::atomic<int> outstanding{0};

 private:
  // The state in one word; fields() and word() translate.
  struct state {
    std::uint32_t registration = 0;
    std::uint8_t bytes = 0;
    bool room = false;
    bool closed = false;
    bool stopped = false;  // the thread that watches is told to end
    bool registered = false;
    bool one_shot = false;
    bool wants_in = false;
    bool wants_out = false;
    bool pending_in = false;  // epoll_wait has this to report
    bool pending_out = false;
  };
  [[nodiscard]] static state fields(std::uint64_t word) noexcept;
  [[nodiscard]] static std::uint64_t word(const state& of) noexcept;
  template <class Change>
  state update(Change change, std::memory_order order = detail::relaxed) noexcept;

  detail::atomic<std::uint64_t> word_{0};
  // The open file: who uses it races with who closes it, unless the source has ordered the two.
  model::cell<int> file_{0};
};

}  // namespace smarm::under_model
