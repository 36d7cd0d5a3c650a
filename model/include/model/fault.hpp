// fault names mistakes that a checker of this kind is known to make. Each can be switched on in a
// running program, so that a test can show that the litmus corpus notices it.
#pragma once

#include <cstdint>

namespace model {

enum class fault : std::uint8_t {
  none,
  no_sequential_order,     // seq_cst is taken for acq_rel
  no_fence_order,          // a seq_cst fence is taken for an acq_rel one
  light_orders_light,      // a light fence is taken for a seq_cst one
  heavy_is_sequential,     // a heavy fence is taken for a seq_cst one
  no_order_by_fences,      // a fresh access that is not seq_cst breaks no order that fences make
  sequential_fence_syncs,  // a seq_cst fence synchronises with every earlier one
  release_sequence_2011,   // a later plain store of the same thread continues a release sequence
  no_release_sequence,     // an update does not hand on what it read
  acquire_ignored,         // acquire loads learn nothing
  release_ignored,         // release stores publish nothing
  acquire_fence_ignored,
  release_fence_ignored,
  failed_cas_strong,    // a failed cas takes the success order
  failed_cas_latest,    // a failed cas reads the newest write only
  weak_cas_strong,      // a weak cas never fails without a reason
  no_stale_read,        // loads read the newest write only
  any_stale_read,       // loads may go behind what they have seen
  stores_last,          // modification order is the order of execution
  no_revisit,           // a read never takes its value from a write that is added later
  revisit_not_maximal,  // revisits are taken from every graph: duplicates
  revisit_skips_cas,    // a cas is never revisited
  conflict_dropped,     // an update whose source is taken does not revisit before it is dropped
  split_update,         // a store may come between an update and what it read
  race_by_causes,       // reads-from without synchronisation counts as happens-before
  no_race_check,
  deadlock_ignored,
  spin_is_stuck,  // a spinning thread that could read something newer is called stuck
};

// The fault that is switched on; none outside of the tests of the checker itself.
inline fault planted = fault::none;

[[nodiscard]] inline bool is_planted(fault which) noexcept { return planted == which; }

}  // namespace model
