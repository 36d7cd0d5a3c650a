// The keys of one shard; see store.hpp for the invariants.
#include "store.hpp"

namespace sider {

entry* shard_store::find(key_ref name, std::int64_t now_ms) {
  entry* found = table_.find(name);
  if (found == nullptr || found->expires_ms > now_ms) return found;
  erase(*found);
  return nullptr;
}

entry& shard_store::set(key_ref name, value content, bool keep_expiry) {
  if (entry* present = table_.find(name)) {
    present->content = std::move(content);
    if (!keep_expiry) set_expiry(*present, never);
    return *present;
  }
  return table_.insert(std::make_unique<entry>(name, std::move(content)));
}

std::unique_ptr<entry> shard_store::detach(entry& present) {
  if (present.expires_ms != never) expiries_.erase({present.expires_ms, &present});
  return table_.remove(present);
}

entry& shard_store::attach(std::unique_ptr<entry> moved, std::int64_t now_ms) {
  if (entry* present = find({moved->key, moved->hash}, now_ms)) erase(*present);
  entry& placed = table_.insert(std::move(moved));
  if (placed.expires_ms != never) expiries_.emplace(placed.expires_ms, &placed);
  return placed;
}

void shard_store::set_expiry(entry& present, std::int64_t deadline_ms) {
  if (present.expires_ms == deadline_ms) return;
  if (present.expires_ms != never) expiries_.erase({present.expires_ms, &present});
  present.expires_ms = deadline_ms;
  if (deadline_ms != never) expiries_.emplace(deadline_ms, &present);
}

std::optional<std::int64_t> shard_store::next_expiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

std::size_t shard_store::expire_due(std::int64_t now_ms, std::size_t count_max) {
  std::size_t erased = 0;
  while (erased < count_max && !expiries_.empty() && expiries_.begin()->first <= now_ms) {
    erase(*expiries_.begin()->second);
    ++erased;
  }
  return erased;
}

entry* shard_store::random_entry(std::int64_t now_ms) {
  // LIMIT: at least one slot in eight is taken once the table has grown, and a small table is
  // small, so this ends after a few throws; an expired find makes the table smaller.
  while (table_.size() > 0) {
    const std::uint64_t high = random_();
    entry* found = table_.at(high << 31 | random_());
    if (found == nullptr) continue;
    if (found->expires_ms > now_ms) return found;
    erase(*found);
  }
  return nullptr;
}

void shard_store::clear() {
  expiries_.clear();
  table_.clear();
}

bool shard_store::destroy_part(std::size_t steps_max) {
  for (; steps_max > 0 && !expiries_.empty(); --steps_max) expiries_.erase(expiries_.begin());
  return table_.destroy_part(steps_max);
}

}  // namespace sider
