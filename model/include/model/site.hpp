// site is a place in the source text that touches shared state: file, line, column and operation.
//
// Sites name events in reports, show whether a repeated run does the same thing, and are what a
// mutation is aimed at: `FILE:LINE[:COLUMN][:OPERATION]:ACTION` makes one of them weaker for the
// whole process, so that one binary serves all mutants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/value.hpp"

namespace model {

enum class mutation : std::uint8_t {
  none,
  relaxed,  // the (success) order becomes this one
  acquire,
  release,
  acq_rel,
  seq_cst,       // for a heavy fence
  fail_relaxed,  // the failure order of a cas
  fail_acquire,
  drop,   // a fence, a wake or an unlock is not there
  skip,   // the access does not happen; a read gives what the thread knew before
  split,  // an update becomes a load and a store
  loose,  // a cas succeeds whatever it finds
};

inline constexpr std::array mutation_names{"none",    "relaxed", "acquire",      "release",
                                           "acq_rel", "seq_cst", "fail_relaxed", "fail_acquire",
                                           "drop",    "skip",    "split",        "loose"};

struct site {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  const char* what = "";  // load, store, fetch_add, fence, lock, ...
  order strength = order::relaxed;
  order failure = order::relaxed;
  bool has_failure = false;
  mutation change = mutation::none;
  std::uint64_t hits = 0;
};

// short_file drops the directories of a path.
[[nodiscard]] inline const char* short_file(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

class site_table {
 public:
  // intern returns the number of the site of a call. Its order is the one that stands in the
  // source.
  [[nodiscard]] std::uint32_t intern(const std::source_location& where, const char* what,
                                     order strength, order failure, bool has_failure) {
    const std::uint64_t key = (reinterpret_cast<std::uintptr_t>(where.file_name()) << 24) ^
                              (reinterpret_cast<std::uintptr_t>(what) << 1) ^
                              (std::uint64_t{where.line()} << 9) ^ where.column() ^
                              (std::uint64_t{where.line()} << 44);
    recent& known = recent_[key * 0x9e3779b97f4a7c15ULL >> (64 - recent_bits)];
    if (key == known.key) return known.id;
    auto [entry, fresh] = index_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
    if (fresh) {
      site s{where.file_name(),
             where.function_name(),
             where.line(),
             where.column(),
             what,
             strength,
             failure,
             has_failure};
      if (aims_at(s)) {
        s.change = action_;
        ++struck_;
      }
      sites_.push_back(s);
    }
    known = {key, entry->second};
    return known.id;
  }

  [[nodiscard]] const site& at(std::uint32_t id) const { return sites_[id]; }
  [[nodiscard]] site& at(std::uint32_t id) { return sites_[id]; }
  [[nodiscard]] const std::vector<site>& all() const { return sites_; }

  // mutate aims at a place; false if the text is not understood.
  [[nodiscard]] bool mutate(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t colon = std::min(text.find(':', from), text.size());
      parts.push_back(text.substr(from, colon - from));
      from = colon + 1;
    }
    if (parts.size() < 3) return false;
    for (std::size_t i = 1; i < mutation_names.size(); ++i)
      if (parts.back() == mutation_names[i]) action_ = static_cast<mutation>(i);
    aim_file_ = parts[0];
    aim_line_ = static_cast<std::uint32_t>(std::strtoul(parts[1].c_str(), nullptr, 10));
    for (std::size_t i = 2; i + 1 < parts.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(std::strtoul(parts[i].c_str(), nullptr, 10));
      if (number != 0) {
        aim_column_ = number;
      } else {
        aim_what_ = parts[i];
      }
    }
    return action_ != mutation::none && aim_line_ != 0;
  }

  // struck: how many sites the mutation has met.
  [[nodiscard]] std::uint32_t struck() const { return struck_; }
  [[nodiscard]] bool is_mutating() const { return action_ != mutation::none; }

 private:
  // What an access looks up first: most are of a few hundred sites, again and again.
  static constexpr unsigned recent_bits = 9;
  struct recent {
    std::uint64_t key = 0;
    std::uint32_t id = 0;
  };

  [[nodiscard]] bool aims_at(const site& s) const {
    if (action_ == mutation::none || s.line != aim_line_) return false;
    if (aim_column_ != 0 && aim_column_ != s.column) return false;
    if (!aim_what_.empty() && aim_what_ != s.what) return false;
    return std::string_view{s.file}.ends_with(aim_file_);
  }

  std::vector<site> sites_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::array<recent, std::size_t{1} << recent_bits> recent_{};
  mutation action_ = mutation::none;
  std::string aim_file_;
  std::string aim_what_;
  std::uint32_t aim_line_ = 0;
  std::uint32_t aim_column_ = 0;
  std::uint32_t struck_ = 0;
};

// sites is shared by all models of a process: a site's number means the same in each.
inline site_table sites;

// where writes a site as `file:line`.
[[nodiscard]] inline std::string where(std::uint32_t id) {
  const site& s = sites.at(id);
  if (s.line == 0) return s.what;
  return std::string{short_file(s.file)} + ":" + std::to_string(s.line);
}

// mutations_of lists the actions that make sense for a site: one step weaker each.
[[nodiscard]] inline std::vector<mutation> mutations_of(const site& s) {
  std::vector<mutation> found;
  const std::string_view what{s.what};
  const bool is_load = what == "load";
  const bool is_store = what == "store";
  const bool is_cas = what.starts_with("compare_exchange");
  const bool is_update = what == "exchange" || what.starts_with("fetch_");
  if (what == "fence") {
    if (s.strength == order::heavy) return {mutation::seq_cst};
    if (s.strength == order::seq_cst) return {mutation::acq_rel};
    if (s.strength == order::acq_rel) return {mutation::acquire, mutation::release};
    return {mutation::drop};
  }
  if (!is_load && !is_store && !is_cas && !is_update) {
    const bool wakes = what == "wake" || what == "notify_one" || what == "notify_all";
    return wakes ? std::vector{mutation::drop} : found;
  }
  switch (s.strength) {
    case order::seq_cst:
      found.push_back(is_load    ? mutation::acquire
                      : is_store ? mutation::release
                                 : mutation::acq_rel);
      break;
    case order::acq_rel:
      found.push_back(mutation::acquire);
      found.push_back(mutation::release);
      break;
    case order::acquire:
    case order::release:
      found.push_back(mutation::relaxed);
      break;
    default:
      break;
  }
  if (is_cas && s.failure == order::seq_cst) found.push_back(mutation::fail_acquire);
  if (is_cas && s.failure == order::acquire) found.push_back(mutation::fail_relaxed);
  if (is_load || is_store) found.push_back(mutation::skip);
  if (is_update) found.push_back(mutation::split);
  if (is_cas) found.push_back(mutation::loose);
  return found;
}

}  // namespace model
