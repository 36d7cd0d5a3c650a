// term is a small immutable value that any actor, process or language can read: what an exit
// reason carries, and the name of a child in a supervisor's reports.
//
// It has Erlang's shapes and prints as Erlang writes them: atom("bad"), 42, 2.5, "text", a pid,
// a tuple {failed_to_start_child,2,bad}, a list [1,2]. Two terms are equal if they have the same
// shape and contents; an integer never equals a real. Copies share their elements.
//
// Source: Erlang reference manual, "Data Types".
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <smarm/pid.hpp>

namespace smarm {

// atom is a name that stands for itself.
struct atom {
  std::string name;

  explicit atom(std::string_view of) : name(of) {}
  friend auto operator<=>(const atom&, const atom&) = default;
};

class term {
 public:
  enum class shape : std::uint8_t { atom, integer, real, text, pid, tuple, list };

  // The empty tuple.
  term() : value_(sequence<shape::tuple>{}) {}
  term(atom value) : value_(std::move(value)) {}
  term(std::integral auto value) : value_(static_cast<std::int64_t>(value)) {}
  term(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  term(std::string value) : value_(std::move(value)) {}
  term(std::string_view value) : value_(std::string(value)) {}
  term(const char* value) : value_(std::string(value)) {}
  term(smarm::pid value) : value_(value) {}

  [[nodiscard]] static term tuple(std::vector<term> elements) {
    return term(sequence<shape::tuple>{share(std::move(elements))});
  }
  [[nodiscard]] static term list(std::vector<term> elements) {
    return term(sequence<shape::list>{share(std::move(elements))});
  }

  [[nodiscard]] shape kind() const noexcept { return static_cast<shape>(value_.index()); }
  [[nodiscard]] bool is(shape which) const noexcept { return kind() == which; }
  // is_atom tells whether this is the atom of that name.
  [[nodiscard]] bool is_atom(std::string_view name) const noexcept {
    const atom* const value = std::get_if<atom>(&value_);
    return value != nullptr && value->name == name;
  }

  // The content, where the shape is that one; otherwise std::bad_variant_access.
  [[nodiscard]] const std::string& as_atom() const { return std::get<atom>(value_).name; }
  [[nodiscard]] std::int64_t as_integer() const { return std::get<std::int64_t>(value_); }
  [[nodiscard]] double as_real() const { return std::get<double>(value_); }
  [[nodiscard]] const std::string& as_text() const { return std::get<std::string>(value_); }
  [[nodiscard]] smarm::pid as_pid() const { return std::get<smarm::pid>(value_); }

  // The elements of a tuple or a list; empty for every other shape.
  [[nodiscard]] std::size_t size() const noexcept { return elements().size(); }
  [[nodiscard]] const term& operator[](std::size_t index) const { return elements().at(index); }
  [[nodiscard]] const std::vector<term>& elements() const noexcept;

  friend bool operator==(const term& left, const term& right);

 private:
  template <shape>
  struct sequence {
    std::shared_ptr<const std::vector<term>> elements;
  };
  using storage = std::variant<atom, std::int64_t, double, std::string, smarm::pid,
                               sequence<shape::tuple>, sequence<shape::list>>;

  explicit term(storage value) : value_(std::move(value)) {}
  [[nodiscard]] static std::shared_ptr<const std::vector<term>> share(std::vector<term> elements) {
    return std::make_shared<const std::vector<term>>(std::move(elements));
  }

  storage value_;
};

// to_string writes a term as Erlang's ~p does: names that are no plain atoms stand in quotes.
[[nodiscard]] std::string to_string(const term& value);

}  // namespace smarm
