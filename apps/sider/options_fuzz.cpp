// Goal: no command line and no CONFIG SET does harm: each is refused in words or gives values in
// their ranges, and a setting that was printed can be set again and stays as it is.
// Method: the input's lines are the arguments; and each two of them are a setting and its value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.hpp"
#include "settings.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

void check_options(const std::vector<std::string_view>& lines) {
  const auto read = sider::parse_options(lines);
  if (!read) {
    require(!read.error().empty());
    return;
  }
  require(read->schedulers <= 1024 && read->shards <= 1024 && read->clients_max >= 1 &&
          read->clients_max <= 1'000'000 && read->timeout_s <= 31'536'000);
}

// check_printed sets each setting to the value that it shows.
void check_printed(sider::settings& all) {
  const auto before = all.matching({"*"});
  for (const auto& [name, value] : before) require(all.set(name, value).has_value());
  require(all.matching({"*"}) == before);
}

void check_settings(const std::vector<std::string_view>& lines) {
  sider::settings all{sider::options{}};
  check_printed(all);
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    const auto before = all.matching({"*"});
    const auto set = all.set(lines[i], lines[i + 1]);
    require(set ? true : !set.error().empty() && all.matching({"*"}) == before);
    check_printed(all);
    (void)all.matching({std::string(lines[i])});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = lines_of({reinterpret_cast<const char*>(data), size});
  check_options(lines);
  check_settings(lines);
  return 0;
}
