// blocking_call is a job of the blocking pool: the function by reference, then what came of it.
//
// The pool's side (src/io) knows only that a job can be run and how its fields are used; this side
// knows the types.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace smarm::detail {

class blocking_work {
 public:
  blocking_work() = default;
  blocking_work(const blocking_work&) = delete;
  blocking_work& operator=(const blocking_work&) = delete;

  // run is called once, on a thread of the pool; what the function throws is kept.
  virtual void run() noexcept = 0;

 protected:
  ~blocking_work() = default;
};

// run_blocking returns when the work has run; see smarm::blocking for stops and errors.
void run_blocking(blocking_work& work);

template <class Result>
class blocking_outcome {
 public:
  template <class F>
  void fill(F&& f) {
    result_.emplace(std::invoke(std::forward<F>(f)));
  }
  Result take() { return std::move(*result_); }

 private:
  std::optional<Result> result_;
};

template <class Result>
  requires std::is_reference_v<Result>
class blocking_outcome<Result> {
 public:
  template <class F>
  void fill(F&& f) {
    Result result = std::invoke(std::forward<F>(f));
    result_ = std::addressof(result);
  }
  Result take() { return static_cast<Result>(*result_); }

 private:
  std::remove_reference_t<Result>* result_ = nullptr;
};

template <>
class blocking_outcome<void> {
 public:
  template <class F>
  void fill(F&& f) {
    std::invoke(std::forward<F>(f));
  }
  void take() {}
};

template <class F, class Result>
class blocking_call final : public blocking_work {
 public:
  explicit blocking_call(std::remove_reference_t<F>& f) noexcept : function_(f) {}

  void run() noexcept override {
    try {
      outcome_.fill(static_cast<F&&>(function_));
    } catch (...) {
      failure_ = std::current_exception();  // rethrown to the caller by take
    }
  }

  Result take() {
    // Moved out first: the last reference to an exception must not go while the stack unwinds it.
    if (failure_) std::rethrow_exception(std::move(failure_));
    return outcome_.take();
  }

 private:
  std::remove_reference_t<F>& function_;
  std::exception_ptr failure_;
  blocking_outcome<Result> outcome_;
};

}  // namespace smarm::detail
