// The registry gives actors names by which others find them.
//
//   smarm::register_name("cache");                  // the calling actor
//   smarm::send("cache", flush{});
//   if (auto who = smarm::whereis("cache")) smarm::monitor(*who, smarm::to_mailbox);
//
// An actor has one name at most, and a name one actor. A name is free again when its actor has
// ended: before any down of it is delivered and before a join returns, so who has seen the end may
// take the name. Names belong to a runtime: an actor sees those of its own, another thread those of
// all.
//
// Source: erlang(3): register/2, whereis/1.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <smarm/pid.hpp>

namespace smarm {

enum class registry_error : std::uint8_t {
  name_taken,     // another actor, or this one, has that name
  already_named,  // the actor has a name
  no_such_actor,
  bad_name,  // empty, or "undefined", which Erlang keeps for "none"
};

[[nodiscard]] std::string_view to_string(registry_error error) noexcept;

// register_name gives an actor a name; without a pid, the caller. Any thread (with a pid); never
// parks; no stop point. Throws std::bad_alloc, and misuse for the caller where that is no actor.
std::expected<void, registry_error> register_name(std::string_view name, pid who);
std::expected<void, registry_error> register_name(std::string_view name);

// unregister_name frees a name: true if somebody had it. Any thread; never parks.
bool unregister_name(std::string_view name);

// whereis is who has that name. Any thread; never parks.
[[nodiscard]] std::optional<pid> whereis(std::string_view name);

// name_of is an actor's registered name; empty: none. Any thread; never parks.
[[nodiscard]] std::string name_of(pid who);

// registered_names are all names in use, sorted. Any thread; never parks.
[[nodiscard]] std::vector<std::string> registered_names();

}  // namespace smarm
