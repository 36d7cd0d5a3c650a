// select_case is one of the things that a select waits for at once. The classes for what lies below
// the mailbox are here; their bodies are in src/sync/select.cpp.
#pragma once

#include <cstddef>
#include <span>

#include <smarm/deadline.hpp>

namespace smarm::detail {

class channel_core;
class oneshot_core;
class waker;

class select_case {
 public:
  select_case() = default;
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

  // is_ready tells whether a receive would not park. What is there stays there.
  [[nodiscard]] virtual bool is_ready() = 0;
  // enroll has the waker called when that may have changed; false: it is ready.
  [[nodiscard]] virtual bool enroll(const waker& wake) = 0;
  // withdraw takes the waker back, whether or not it was called.
  virtual void withdraw() noexcept = 0;
  // source is what it waits for; a select waits for a thing once.
  [[nodiscard]] virtual const void* source() const noexcept = 0;

 protected:
  ~select_case() = default;
};

class channel_case : public select_case {
 public:
  explicit channel_case(channel_core& core) noexcept : core_(core) {}
  bool is_ready() final;
  bool enroll(const waker& wake) final;
  void withdraw() noexcept final;
  [[nodiscard]] const void* source() const noexcept final { return &core_; }

 protected:
  ~channel_case() = default;

 private:
  channel_core& core_;
};

class oneshot_case : public select_case {
 public:
  explicit oneshot_case(oneshot_core& core) noexcept : core_(core) {}
  bool is_ready() final;
  bool enroll(const waker& wake) final;
  void withdraw() noexcept final;
  [[nodiscard]] const void* source() const noexcept final { return &core_; }

 protected:
  ~oneshot_case() = default;

 private:
  oneshot_core& core_;
};

// select_wait waits until one is ready and returns which; the number of cases: none was until the
// deadline. Parks; a stop point on entry and while parked.
[[nodiscard]] std::size_t select_wait(std::span<select_case* const> cases, deadline until);

}  // namespace smarm::detail
