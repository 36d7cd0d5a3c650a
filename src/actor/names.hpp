// What the rest of this layer needs of the registry.
#pragma once

#include <string_view>

#include <smarm/pid.hpp>

namespace smarm::detail {

// pid_of_name is who has that name among the actors that the caller reaches; nobody's pid: none.
[[nodiscard]] pid pid_of_name(std::string_view name) noexcept;

// forget_name frees the name of an actor that has ended. By its exit.
void forget_name(pid gone) noexcept;

}  // namespace smarm::detail
