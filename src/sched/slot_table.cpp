// Growth and free list of the process-wide slot table.
#include "sched/slot_table.hpp"

#include <new>

namespace smarm::detail {

namespace {

constinit slot_table the_table;

}  // namespace

slot_table& slot_table::instance() noexcept { return the_table; }

bool slot_table::grow() noexcept {
  const std::size_t chunk = chunk_count_.load(relaxed);  // relaxed: written under lock_ only
  if (chunk == table::chunk_count) return false;
  slot* const first = new (std::nothrow) slot[table::chunk_size];
  if (first == nullptr) return false;
  for (std::size_t i = table::chunk_size; i-- > 0;) {
    slot& fresh = first[i];
    fresh.index = static_cast<std::uint32_t>(chunk * table::chunk_size + i);
    fresh.next_free = free_;
    free_ = &fresh;
  }
  (void)slots_.publish(chunk, first);      // first, for want of another: lock_ is held
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
