// Goal: glob patterns mean what they mean in Redis, and no pattern takes for ever.
// Method: beside Redis's own algorithm, which tries every '*', told anew and with what it has
// found out remembered; pattern and text are the two sides of the first zero byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "glob.hpp"

namespace {

constexpr std::size_t length_max = 256;  // of pattern and text: the matrix below grows with both

class reference {
 public:
  reference(std::string_view pattern, std::string_view text)
      : pattern_(pattern), text_(text), known_((pattern.size() + 1) * (text.size() + 1)) {}

  bool matches() { return matches(0, 0); }

 private:
  bool matches(std::size_t at, std::size_t i) {
    std::optional<bool>& known = known_[at * (text_.size() + 1) + i];
    if (!known) known = compute(at, i);
    return *known;
  }

  bool compute(std::size_t at, std::size_t i) {
    if (at == pattern_.size()) return i == text_.size();
    if (pattern_[at] == '*') {
      return matches(at + 1, i) || (i < text_.size() && matches(at, i + 1));
    }
    if (i == text_.size()) return false;
    const auto [fits, next] = one(at, text_[i]);
    return fits && matches(next, i + 1);
  }

  // one compares a letter with the element at `at`; the second is where the next element begins.
  [[nodiscard]] std::pair<bool, std::size_t> one(std::size_t at, char letter) const {
    switch (pattern_[at]) {
      case '?':
        return {true, at + 1};
      case '[':
        return of_class(at + 1, letter);
      case '\\':
        if (at + 1 < pattern_.size()) ++at;
        break;
      default:
        break;
    }
    return {pattern_[at] == letter, at + 1};
  }

  [[nodiscard]] std::pair<bool, std::size_t> of_class(std::size_t at, char letter) const {
    const std::size_t size = pattern_.size();
    const bool negated = at < size && pattern_[at] == '^';
    if (negated) ++at;
    bool found = false;
    while (at < size && pattern_[at] != ']') {
      if (pattern_[at] == '\\' && at + 1 < size) {
        found = found || pattern_[at + 1] == letter;
        at += 2;
      } else if (at + 2 < size && pattern_[at + 1] == '-') {
        char low = pattern_[at];
        char high = pattern_[at + 2];
        if (low > high) std::swap(low, high);
        found = found || (low <= letter && letter <= high);
        at += 3;
      } else {
        found = found || pattern_[at] == letter;
        at += 1;
      }
    }
    return {found != negated, at < size ? at + 1 : size};
  }

  std::string_view pattern_;
  std::string_view text_;
  std::vector<std::optional<bool>> known_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t middle = all.find('\0');
  if (middle == std::string_view::npos) return 0;
  const std::string_view pattern = all.substr(0, middle);
  const std::string_view text = all.substr(middle + 1);
  if (pattern.size() > length_max || text.size() > length_max) return 0;
  if (sider::glob_matches(pattern, text) != reference(pattern, text).matches()) std::abort();
  return 0;
}
