// Where the kernel says how much processor time there is; see cpu_limit.hpp.
#include "base/cpu_limit.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace smarm::detail {

namespace {

namespace fs = std::filesystem;

enum class cgroup_version : std::uint8_t { one, two };

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');) {
    if (each == word) return true;
  }
  return false;
}

// The process's path within the hierarchy that limits CPUs: a line "number:controllers:path" of
// /proc/self/cgroup; the second version has no controllers.
std::optional<std::string> path_in_hierarchy(const fs::path& root, cgroup_version version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits =
        version == cgroup_version::two ? line.starts_with("0::") : has_word(controllers, "cpu");
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct mount {
  std::string of;     // which directory of the hierarchy is mounted
  std::string where;  // where
};

// A line of /proc/self/mountinfo: "id parent device root mount-point options ... - type source
// super-options" (proc(5)).
std::optional<mount> find_mount(const fs::path& root, cgroup_version version) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const auto dash = std::find(all.begin(), all.end(), "-");
    if (dash - all.begin() < 6 || all.end() - dash < 4) continue;
    const bool fits = version == cgroup_version::two
                          ? dash[1] == "cgroup2"
                          : dash[1] == "cgroup" && has_word(dash[3], "cpu");
    if (fits) return mount{.of = all[3], .where = all[4]};
  }
  return std::nullopt;
}

std::optional<double> quota_in(const fs::path& group, cgroup_version version) {
  double quota = 0;
  double period = 0;
  if (version == cgroup_version::two) {
    std::ifstream file(group / "cpu.max");  // "max 100000": no limit, and no number to read
    if (!(file >> quota >> period)) return std::nullopt;
  } else {
    std::ifstream quota_file(group / "cpu.cfs_quota_us");
    std::ifstream period_file(group / "cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> least_quota(const fs::path& root, cgroup_version version) {
  const auto path = path_in_hierarchy(root, version);
  const auto at = path ? find_mount(root, version) : std::nullopt;
  if (!at) return std::nullopt;
  // In a container the mount often shows only the part below the container's own group.
  std::string below = *path;
  if (at->of != "/" && below.starts_with(at->of)) below.erase(0, at->of.size());
  const fs::path top = root / fs::path(at->where).relative_path();
  fs::path group = top / fs::path(below).relative_path();
  std::optional<double> least;
  for (;;) {
    if (const auto quota = quota_in(group, version))
      least = std::min(least.value_or(*quota), *quota);
    if (group == top || group == group.parent_path()) return least;
    group = group.parent_path();
  }
}

}  // namespace

unsigned usable_cpus() noexcept {
  cpu_set_t set;
  // More CPUs than the set has room for: then as many schedulers as it can count.
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
}

std::optional<double> cgroup_cpus(const std::filesystem::path& root) noexcept {
  try {
    const auto two = least_quota(root, cgroup_version::two);
    const auto one = least_quota(root, cgroup_version::one);
    if (one && two) return std::min(*one, *two);
    return one ? one : two;
  } catch (...) {
    return std::nullopt;  // no memory to find out
  }
}

unsigned default_schedulers() noexcept {
  const unsigned cpus = usable_cpus();
  const double quota = cgroup_cpus().value_or(cpus);
  return std::clamp(static_cast<unsigned>(std::ceil(std::min<double>(quota, cpus))), 1U, cpus);
}

}  // namespace smarm::detail
