// The one shared_state of the process.
#include "actor/shared_state.hpp"

#include <cstddef>
#include <new>
#include <type_traits>

namespace smarm::detail {

shared_state& shared() noexcept {
  static_assert(std::is_nothrow_default_constructible_v<shared_state>);
  // Never destroyed: actors may end after main. Not from the heap: who comes first may do so where
  // there is no memory, and the answer is not to be refused.
  alignas(shared_state) static std::byte place[sizeof(shared_state)];
  static auto* const only = ::new (place) shared_state;
  return *only;
}

}  // namespace smarm::detail
