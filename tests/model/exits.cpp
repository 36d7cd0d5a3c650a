// The shared state of actors in a model; see exits.hpp.
#include "tests/model/exits.hpp"

namespace smarm::detail {

shared_state& shared() noexcept { return *under_model::shared_actors::current(); }

}  // namespace smarm::detail
