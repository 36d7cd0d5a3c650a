// Terms: comparing and printing.
#include <array>
#include <charconv>

#include <smarm/term.hpp>

namespace smarm {

namespace {

// Erlang writes an atom bare if it begins with a small letter and goes on with letters, digits, _
// and @.
bool is_bare(std::string_view name) noexcept {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  if (name.empty() || !is_small(name.front())) return false;
  for (const char c : name) {
    if (!is_small(c) && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' &&
        c != '@') {
      return false;
    }
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text, char quote) {
  out += quote;
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += quote;
}

void append_real(std::string& out, double value) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out += text;
  if (text.find_first_of(".en") == std::string_view::npos) out += ".0";  // 2 is no real
}

void append(std::string& out, const term& value) {
  switch (value.kind()) {
    case term::shape::atom:
      if (is_bare(value.as_atom())) {
        out += value.as_atom();
      } else {
        append_quoted(out, value.as_atom(), '\'');
      }
      return;
    case term::shape::integer:
      out += std::to_string(value.as_integer());
      return;
    case term::shape::real:
      append_real(out, value.as_real());
      return;
    case term::shape::text:
      append_quoted(out, value.as_text(), '"');
      return;
    case term::shape::pid:
      out += to_string(value.as_pid());
      return;
    case term::shape::tuple:
    case term::shape::list:
      break;
  }
  const bool is_tuple = value.is(term::shape::tuple);
  out += is_tuple ? '{' : '[';
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += ',';
    append(out, value[i]);
  }
  out += is_tuple ? '}' : ']';
}

}  // namespace

const std::vector<term>& term::elements() const noexcept {
  static const std::vector<term> none;
  const auto* const tuple = std::get_if<sequence<shape::tuple>>(&value_);
  if (tuple != nullptr) return tuple->elements != nullptr ? *tuple->elements : none;
  const auto* const list = std::get_if<sequence<shape::list>>(&value_);
  return list != nullptr && list->elements != nullptr ? *list->elements : none;
}

bool operator==(const term& left, const term& right) {
  if (left.kind() != right.kind()) return false;
  if (left.is(term::shape::tuple) || left.is(term::shape::list)) {
    return left.elements() == right.elements();
  }
  switch (left.kind()) {
    case term::shape::atom:
      return left.as_atom() == right.as_atom();
    case term::shape::integer:
      return left.as_integer() == right.as_integer();
    case term::shape::real:
      return left.as_real() == right.as_real();
    case term::shape::text:
      return left.as_text() == right.as_text();
    default:
      return left.as_pid() == right.as_pid();
  }
}

std::string to_string(const term& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace smarm
