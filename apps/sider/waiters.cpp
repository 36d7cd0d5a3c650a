// Blocked pops of one shard; the protocol stands in waiters.hpp.
#include "waiters.hpp"

#include <utility>

#include "command.hpp"

namespace sider {

waiter_registry::outcome waiter_registry::pop_or_wait(shard_store& store, key_ref key,
                                                      std::int64_t now_ms, pop_end end,
                                                      const std::shared_ptr<pop_target>& target) {
  entry* found = store.find(key, now_ms);
  if (found == nullptr) {
    waiting_[std::string(key.text)].push_back({target, end});
    return outcome::waiting;
  }
  list_value* items = list_in(*found);
  if (items == nullptr) return outcome::wrong_type;
  if (!offer_one(*items, key.text, {target, end})) return outcome::refused;
  if (items->empty()) store.erase(*found);
  return outcome::served;
}

void waiter_registry::serve(shard_store& store, key_ref key, std::int64_t now_ms) {
  const auto queue = waiting_.find(std::string(key.text));
  if (queue == waiting_.end()) return;
  while (!queue->second.empty()) {
    entry* found = store.find(key, now_ms);
    list_value* items = found == nullptr ? nullptr : list_in(*found);
    if (items == nullptr) return;
    // Served or refused, this waiter's turn is over: a target refuses only once it is done.
    static_cast<void>(offer_one(*items, key.text, queue->second.front()));
    queue->second.pop_front();
    if (items->empty()) store.erase(*found);
  }
  waiting_.erase(queue);
}

void waiter_registry::forget(std::string_view key, const pop_target* target) {
  const auto queue = waiting_.find(std::string(key));
  if (queue == waiting_.end()) return;
  std::erase_if(queue->second, [&](const waiter& each) { return each.target.get() == target; });
  if (queue->second.empty()) waiting_.erase(queue);
}

void waiter_registry::abandon() noexcept {
  for (const auto& [key, queue] : waiting_) {
    for (const waiter& each : queue) each.target->lose();
  }
  waiting_.clear();
}

// offer_one takes an element from its end of the list and puts it back if it is refused.
bool waiter_registry::offer_one(list_value& items, std::string_view key, const waiter& to) {
  const bool left = to.end == pop_end::left;
  popped taken{std::string(key), std::move(left ? items.front() : items.back())};
  const bool accepted = to.target->offer(taken);
  if (!accepted) {
    (left ? items.front() : items.back()) = std::move(taken.element);
  } else if (left) {
    items.pop_front();
  } else {
    items.pop_back();
  }
  return accepted;
}

}  // namespace sider
