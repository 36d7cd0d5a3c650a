// actor_body is what an actor and its join_handle share: the function, then its result.
//
// The core allocates it in one piece with a header of its own in front (references, exit reason,
// the joiner); this side knows only how to run the function and where the result lies.
// Order: run() at most once and then discard() once, on the actor's side; then, after the exit is
// published, take() on the holder's side; destruction when both sides have let go.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm {

struct spawn_options;
template <class Result>
class join_handle;

namespace detail {

class runtime_core;
struct slot;

// birth is what a spawn does to its actor before anybody can find it: tie it to its spawner.
class birth {
 public:
  birth() = default;
  birth(const birth&) = delete;
  birth& operator=(const birth&) = delete;
  virtual ~birth() = default;

  // attend is called once the actor has its slot and pid, and nobody knows of them. It follows that
  // the spawn succeeds; where it fails before, attend is not called.
  virtual void attend(slot& fresh, pid who) noexcept = 0;
};

class actor_body {
 public:
  actor_body() = default;
  actor_body(const actor_body&) = delete;
  actor_body& operator=(const actor_body&) = delete;
  virtual ~actor_body() = default;

  // run calls the function and keeps its result.
  virtual void run() = 0;
  // discard destroys the function, whether or not it ran. Not left to run: a destructor that parks
  // must find the actor shielded from its stop, which would be thrown out of it.
  virtual void discard() noexcept = 0;
};

struct start_options {
  std::string_view name;
  std::size_t stack_size = 0;
  birth* at_birth = nullptr;
};

// The core's side, in src/sched. Bodies are allocated, shared and freed there.
// body_allocate returns null without memory. `trivial`: the function has a trivial destructor.
void* body_allocate(std::size_t size, std::size_t align, bool trivial) noexcept;
void body_deallocate(void* unborn) noexcept;   // constructing the body threw
void body_release(actor_body& body) noexcept;  // gives one reference back
// body_start returns what spawn may be refused for; errc() is success.
std::errc body_start(actor_body& body, runtime_core* where, const start_options& options);
bool body_wait(actor_body& body, deadline when);  // true: the actor has ended
bool body_has_ended(const actor_body& body) noexcept;
bool body_request_stop(actor_body& body) noexcept;
pid body_pid(const actor_body& body) noexcept;
const exit_reason& body_exit_reason(const actor_body& body) noexcept;  // only after the end
[[noreturn]] void throw_empty_handle();

// body_ref is one counted reference on a body.
class body_ref {
 public:
  body_ref() noexcept = default;
  explicit body_ref(actor_body* adopted) noexcept : body_(adopted) {}
  body_ref(body_ref&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  body_ref& operator=(body_ref&& other) noexcept {
    if (this != &other) {
      if (body_ != nullptr) body_release(*body_);
      body_ = std::exchange(other.body_, nullptr);
    }
    return *this;
  }
  ~body_ref() {
    if (body_ != nullptr) body_release(*body_);
  }

  explicit operator bool() const noexcept { return body_ != nullptr; }
  actor_body& operator*() const noexcept { return *body_; }
  actor_body& require() const {
    if (body_ == nullptr) throw_empty_handle();
    return *body_;
  }

 private:
  actor_body* body_ = nullptr;
};

template <class Result>
class result_body : public actor_body {
 public:
  Result take() { return std::move(*result_); }

 protected:
  std::optional<Result> result_;
};

template <class Result>
class result_body<Result&> : public actor_body {
 public:
  Result& take() { return *result_; }

 protected:
  Result* result_ = nullptr;
};

template <>
class result_body<void> : public actor_body {
 public:
  std::expected<void, exit_reason> take() { return {}; }
};

template <class F, class Result>
class closure_body final : public result_body<Result> {
 public:
  template <class G>
  closure_body(std::in_place_t, G&& function) {
    ::new (static_cast<void*>(&function_)) F(std::forward<G>(function));
  }
  ~closure_body() override {}

  void run() override {
    if constexpr (std::is_void_v<Result>) {
      std::invoke(function_);
    } else if constexpr (std::is_reference_v<Result>) {
      this->result_ = &std::invoke(function_);
    } else {
      this->result_.emplace(std::invoke(function_));
    }
  }
  void discard() noexcept override { std::destroy_at(&function_); }

 private:
  union {
    F function_;
  };
};

// make_body returns an empty reference where memory has run out; what the function's constructor
// throws passes.
template <class Body, class F>
body_ref make_body(F&& function) {
  constexpr bool trivial = std::is_trivially_destructible_v<std::decay_t<F>>;
  void* memory = body_allocate(sizeof(Body), alignof(Body), trivial);
  if (memory == nullptr) return {};
  try {
    return body_ref(::new (memory) Body(std::in_place, std::forward<F>(function)));
  } catch (...) {
    body_deallocate(memory);
    throw;
  }
}

template <class F, class R>
std::expected<join_handle<R>, std::error_code> spawn_on(runtime_core* where,
                                                        spawn_options&& options, F&& f,
                                                        birth* attendant = nullptr);

}  // namespace detail
}  // namespace smarm
