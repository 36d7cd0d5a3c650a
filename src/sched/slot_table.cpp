// Growth and free list of the process-wide slot table.
#include "sched/slot_table.hpp"

#include <new>

namespace smarm::detail {

namespace {

constinit slot_table the_table;

}  // namespace

slot_table& slot_table::instance() noexcept { return the_table; }

slot* slot_table::find(std::uint32_t index) noexcept {
  const std::uint32_t chunk = index / chunk_slots;
  if (chunk >= chunks_max) return nullptr;
  // acquire: pairs with grow's release; without it the slots might be seen uninitialized.
  slot* const first = chunks_[chunk].load(acquire);
  return first == nullptr ? nullptr : first + index % chunk_slots;
}

bool slot_table::grow() noexcept {
  const std::uint32_t chunk = chunk_count_.load(relaxed);  // relaxed: written under lock_ only
  if (chunk == chunks_max) return false;
  slot* const first = new (std::nothrow) slot[chunk_slots];
  if (first == nullptr) return false;
  for (std::uint32_t i = chunk_slots; i-- > 0;) {
    slot& fresh = first[i];
    fresh.index = chunk * chunk_slots + i;
    fresh.next_free = free_;
    free_ = &fresh;
  }
  chunks_[chunk].store(first, release);    // pairs with find
  chunk_count_.store(chunk + 1, release);  // pairs with size
  return true;
}

std::size_t slot_table::take(slot** out, std::size_t count) noexcept {
  const raw_guard guard(lock_);
  std::size_t taken = 0;
  while (taken < count) {
    if (free_ == nullptr && !grow()) break;
    out[taken++] = free_;
    free_ = free_->next_free;
  }
  return taken;
}

void slot_table::give_back(slot* const* slots, std::size_t count) noexcept {
  const raw_guard guard(lock_);
  for (std::size_t i = 0; i < count; ++i) {
    slots[i]->next_free = free_;
    free_ = slots[i];
  }
}

}  // namespace smarm::detail
