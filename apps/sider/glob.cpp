// Glob matching with one level of backtracking; the argument stands in glob.hpp.
#include "glob.hpp"

#include <algorithm>
#include <cstddef>

namespace sider {

namespace {

struct step {
  bool matches;
  std::size_t next;  // where in the pattern the following element begins
};

// match_class compares `letter` with the class whose '[' stands at `at`.
step match_class(std::string_view pattern, std::size_t at, char letter) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  bool found = false;
  for (; i < pattern.size() && pattern[i] != ']'; ++i) {
    const std::size_t left = pattern.size() - i;
    if (left >= 2 && pattern[i] == '\\') {
      ++i;
      found |= pattern[i] == letter;
    } else if (left >= 3 && pattern[i + 1] == '-') {
      // Bounds compare as plain chars, which are signed here as they are in Redis.
      const auto [low, high] = std::minmax(pattern[i], pattern[i + 2]);
      found |= letter >= low && letter <= high;
      i += 2;
    } else {
      found |= pattern[i] == letter;
    }
  }
  return {found != negated, std::min(i + 1, pattern.size())};
}

// match_one compares `letter` with the element at `at`, which is not a '*'.
step match_one(std::string_view pattern, std::size_t at, char letter) {
  switch (pattern[at]) {
    case '?':
      return {true, at + 1};
    case '[':
      return match_class(pattern, at, letter);
    case '\\':
      if (at + 1 < pattern.size()) ++at;
      [[fallthrough]];
    default:
      return {pattern[at] == letter, at + 1};
  }
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t at = 0;
  std::size_t star = none;  // the pattern after the last '*', and the text it is tried on
  std::size_t star_text = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_text = i;
      continue;
    }
    if (at < pattern.size()) {
      const step one = match_one(pattern, at, text[i]);
      if (one.matches) {
        at = one.next;
        ++i;
        continue;
      }
    }
    if (star == none) return false;
    at = star;
    i = ++star_text;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace sider
