// What an exit reason carries, and how it is told to people and to other languages.
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include <smarm/exit_reason.hpp>

#include "base/atomic.hpp"
#include "base/captured_stack.hpp"

namespace smarm {

struct exit_reason::shared_term {
  explicit shared_term(term of) : value(std::move(of)) {}

  const term value;
  detail::atomic<std::uint32_t> references{1};
};

namespace {

// The kinds that are an atom and nothing else, by that atom.
constexpr std::array<std::pair<std::string_view, exit_kind>, 6> plain_kinds{{
    {"normal", exit_kind::normal},
    {"stopped", exit_kind::stopped},
    {"killed", exit_kind::killed},
    {"shutdown", exit_kind::shutdown},
    {"noproc", exit_kind::noproc},
    {"noconnection", exit_kind::noconnection},
}};

std::string_view name_of(exit_kind kind) noexcept {
  for (const auto& [name, plain] : plain_kinds) {
    if (plain == kind) return name;
  }
  return kind == exit_kind::error ? "error" : "custom";
}

// error_as calls f with the exception where it is a std::exception.
template <class F>
std::string error_as(const std::exception_ptr& error, F f) {
  if (error == nullptr) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return f(e);
  } catch (...) {
    return {};
  }
}

}  // namespace

namespace detail {

captured_stack* captured_stack::make(std::span<void* const> frames, unsigned level) noexcept {
  // malloc, because operator new throws within, also where it returns null.
  void* const place = std::malloc(sizeof(captured_stack) + frames.size_bytes());
  if (place == nullptr) return nullptr;
  auto* const made = ::new (place) captured_stack(static_cast<std::uint32_t>(frames.size()), level);
  std::ranges::copy(frames, reinterpret_cast<void**>(made + 1));  // SAFETY: as in frames()
  return made;
}

exit_reason captured_stack::reason(std::exception_ptr why) noexcept {
  error_ = std::move(why);
  exit_reason made;
  made.traced_ = this;
  made.form_ = {exit_kind::error, true};
  return made;
}

void captured_stack::share() noexcept {
  references_.fetch_add(1, relaxed);  // relaxed: whoever copies a reference already holds one
}

void captured_stack::drop() noexcept {
  // acq_rel: every use by the other holders happens before the end by the last one.
  if (references_.fetch_sub(1, acq_rel) != 1) return;
  this->~captured_stack();
  std::free(this);
}

}  // namespace detail

exit_reason::shared_term* exit_reason::share(shared_term& shared) noexcept {
  // relaxed: whoever copies a reference already holds one
  shared.references.fetch_add(1, detail::relaxed);
  return &shared;
}

void exit_reason::drop(shared_term& shared) noexcept {
  // acq_rel: every use by the other holders happens before the deletion by the last one.
  if (shared.references.fetch_sub(1, detail::acq_rel) == 1) delete &shared;
}

void exit_reason::share_error(const exit_reason& other) noexcept {
  if (form_.has_stack) {
    other.traced_->share();
    traced_ = other.traced_;
  } else {
    std::construct_at(&error_, other.error_);
  }
}

void exit_reason::drop_error() noexcept {
  if (form_.has_stack) {
    traced_->drop();
  } else {
    std::destroy_at(&error_);
  }
}

exit_reason::exit_reason(exit_kind kind, const term& detail) {
  detail_ = new shared_term(detail);
  form_.kind = kind;
}

exit_reason::exit_reason(const term& value) {
  for (const auto& [name, kind] : plain_kinds) {
    if (value.is_atom(name)) {
      form_.kind = kind;
      return;
    }
  }
  const bool is_shutdown =
      value.is(term::shape::tuple) && value.size() == 2 && value[0].is_atom("shutdown");
  detail_ = new shared_term(is_shutdown ? value[1] : value);
  form_.kind = is_shutdown ? exit_kind::shutdown : exit_kind::custom;
}

exit_reason exit_reason::shutdown(const term& detail) {
  return exit_reason(exit_kind::shutdown, detail);
}

exit_reason exit_reason::error(std::exception_ptr why) noexcept {
  exit_reason reason;
  std::construct_at(&reason.error_, std::move(why));
  reason.form_.kind = exit_kind::error;
  return reason;
}

const std::exception_ptr& exit_reason::exception() const noexcept {
  static const std::exception_ptr none;
  if (!is_error()) return none;
  return form_.has_stack ? traced_->error() : error_;
}

std::string exit_reason::type_name() const {
  if (!is_error()) return {};
  if (exception() == nullptr)
    return "foreign";  // of another language, which no exception_ptr holds
  const std::type_info* const type = exception().__cxa_exception_type();
  int status = 0;
  char* const readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  const std::unique_ptr<char, void (*)(void*)> owner(readable, &std::free);
  return status == 0 ? readable : type->name();
}

std::span<void* const> exit_reason::stack() const noexcept {
  if (!is_error() || !form_.has_stack) return {};
  return traced_->frames();
}

std::string exit_reason::text() const {
  if (!is_error()) return {};
  return error_as(exception(), [](const std::exception& e) { return std::string(e.what()); });
}

const term* exit_reason::detail() const noexcept {
  return is_error() || detail_ == nullptr ? nullptr : &detail_->value;
}

term exit_reason::to_term() const {
  if (is_error()) return term::tuple({atom("error"), type_name(), text()});
  if (const term* const more = detail()) {
    return kind() == exit_kind::custom ? *more : term::tuple({atom("shutdown"), *more});
  }
  return atom(name_of(kind()));
}

std::string exit_reason::message() const {
  if (kind() == exit_kind::noproc) return "no such actor";
  if (!is_error()) return to_string(to_term());
  std::string what = error_as(
      exception(), [](const std::exception& e) { return std::string("failed: ") + e.what(); });
  if (!what.empty()) return what;
  return exception() == nullptr ? "failed: an exception of another language"
                                : "failed: an exception of type " + type_name();
}

bool operator==(const exit_reason& left, const exit_reason& right) noexcept {
  if (left.kind() != right.kind()) return false;
  if (left.is_error()) return left.exception() == right.exception();
  const term* const mine = left.detail();
  const term* const others = right.detail();
  if (mine == nullptr || others == nullptr) return mine == others;
  return *mine == *others;
}

}  // namespace smarm
