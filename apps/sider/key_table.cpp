// The sorted open table of key_table.hpp.
#include "key_table.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace sider {

namespace {

// Seven slots of ten may be taken: a hit then costs two or three looks at adjacent slots. Below one
// in eight the table halves, well away from where it would grow again.
constexpr std::size_t taken_max(std::size_t homes) { return homes / 10 * 7 + 5; }

// Room behind the last home for entries pushed over it. A run that is longer makes the table grow.
constexpr std::size_t spare_count(unsigned home_bits) { return 16 + std::size_t{4} * home_bits; }

}  // namespace

entry* key_table::find(key_ref name) const {
  const slot* here = &slots_[home(name.hash)];
  while (here->item != nullptr && here->hash < name.hash) ++here;
  for (; here->item != nullptr && here->hash == name.hash; ++here) {
    if (here->item->key == name.text) return here->item;
  }
  return nullptr;
}

entry& key_table::insert(std::unique_ptr<entry> added) {
  const std::uint64_t hash = added->hash;
  if (size_ + 1 > taken_max(home_count())) rebuild(home_bits_ + 1);
  for (;;) {
    std::size_t place = home(hash);
    while (slots_[place].item != nullptr && slots_[place].hash <= hash) ++place;
    std::size_t empty = place;
    while (slots_[empty].item != nullptr) ++empty;
    if (empty + 1 == slots_.size()) {  // invariant 3
      rebuild(home_bits_ + 1);
      continue;
    }
    std::move_backward(slots_.begin() + static_cast<std::ptrdiff_t>(place),
                       slots_.begin() + static_cast<std::ptrdiff_t>(empty),
                       slots_.begin() + static_cast<std::ptrdiff_t>(empty) + 1);
    slots_[place] = {hash, added.release()};
    ++size_;
    return *slots_[place].item;
  }
}

std::unique_ptr<entry> key_table::remove(const entry& present) {
  std::size_t place = position_of(present);
  std::unique_ptr<entry> taken(slots_[place].item);
  for (; slots_[place + 1].item != nullptr && home(slots_[place + 1].hash) <= place; ++place) {
    slots_[place] = slots_[place + 1];
  }
  slots_[place] = {};
  --size_;
  if (home_bits_ > home_bits_min && size_ < home_count() / 8) rebuild(home_bits_ - 1);
  return taken;
}

key_table::~key_table() {
  for (slot& here : slots_) delete here.item;
}

void key_table::clear() {
  for (slot& here : slots_) delete here.item;
  slots_.clear();
  size_ = 0;
  rebuild(home_bits_min);
}

bool key_table::destroy_part(std::size_t slots_max) {
  for (; slots_max > 0 && !slots_.empty(); --slots_max) {
    delete slots_.back().item;
    slots_.pop_back();
  }
  return slots_.empty();
}

std::size_t key_table::position_of(const entry& present) const {
  std::size_t place = home(present.hash);
  while (slots_[place].item != &present) {
    SMARM_ASSERT(slots_[place].item != nullptr, "an entry to remove is not in its table");
    ++place;
  }
  return place;
}

// rebuild moves all entries to a table of 2^home_bits homes. Both are sorted, so it is one sweep.
void key_table::rebuild(unsigned home_bits) {
  for (;; ++home_bits) {
    std::vector<slot> fresh((std::size_t{1} << home_bits) + spare_count(home_bits));
    std::size_t next = 0;
    bool fits = true;
    for (const slot& here : slots_) {
      if (here.item == nullptr) continue;
      next = std::max(next, static_cast<std::size_t>(here.hash >> (64 - home_bits)));
      fits = next + 1 < fresh.size();
      if (!fits) break;
      fresh[next++] = here;
    }
    if (!fits) continue;
    slots_ = std::move(fresh);
    home_bits_ = home_bits;
    return;
  }
}

}  // namespace sider
