// server_spec is a supervisor's child that is a server.
//
//   auto child = smarm::server_spec<cache>("cache", {.name = "cache"}, 1024);
//   auto tree = smarm::start_supervisor_link({}, {child});
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <smarm/server.hpp>
#include <smarm/start.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/term.hpp>

namespace smarm {

// server_spec makes a spec that starts an S(args...), linked to the supervisor, with copies of the
// arguments at each start. What else a spec says (restart, shutdown, ...) the caller sets in it.
// A deadline in the settings would be one moment for all starts: bound a start by what it does.
template <class S, class... Args>
[[nodiscard]] child_spec server_spec(term id, start_settings settings = {}, Args&&... args) {
  static_assert((std::is_copy_constructible_v<std::decay_t<Args>> && ...),
                "smarm::server_spec: each start of the child copies the arguments, and one of them "
                "cannot be copied; share it (std::shared_ptr), or set the spec's start yourself");
  child_spec spec{.id = std::move(id)};
  spec.start = [settings = std::move(settings),
                kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)] {
    const auto started = std::apply(
        [&](const auto&... each) { return start_server_link<S>(settings, each...); }, kept);
    return started ? start_result(started->id()) : start_result(std::unexpected(started.error()));
  };
  return spec;
}

}  // namespace smarm
