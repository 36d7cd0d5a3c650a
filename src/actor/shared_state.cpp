// The one shared_state of the process.
#include "actor/shared_state.hpp"

namespace smarm::detail {

shared_state& shared() noexcept {
  static auto* const only = new shared_state;  // never destroyed: actors may end after main
  return *only;
}

}  // namespace smarm::detail
