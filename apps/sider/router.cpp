// Splitting and merging; the promises stand in router.hpp.
#include "router.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "release.hpp"
#include "text.hpp"

namespace sider {

namespace {

// A batch that once held a large reply gives the memory back instead of keeping it for the next.
constexpr std::size_t text_kept_max = std::size_t{64} << 10;

template <typename Container>
void shrink(Container& held) {
  clear_within(held, text_kept_max);
}

template <typename Container>
std::size_t bytes_of(const Container& held) {
  return held.capacity() * sizeof(typename Container::value_type);
}

}  // namespace

reply_writer batch::add_local() {
  // The end of this reply is where the next local one begins; merge() reads it off then.
  if (open_local_ != none) requests_[open_local_].local_end = local_.size();
  open_local_ = requests_.size();
  requests_.push_back({merging::single, 0, none});
  return reply_writer(local_);
}

bool batch::add(const command& what, std::size_t count) {
  SMARM_ASSERT(count <= arguments_.size(), "a request's arguments are the tail of the batch's");
  const std::size_t first = arguments_.size() - count;
  if (!arity_fits(what.arity, count)) {
    write_arity_error(add_local(), what.name);
    return true;
  }
  switch (what.route) {
    case routing::one_key: {
      const std::uint64_t hash = hash_text(arguments_[first + 1]);
      add_item(shard_of(hash), {what.run, static_cast<std::uint32_t>(first),
                                static_cast<std::uint32_t>(count), hash});
      requests_.push_back({what.merge, 1, 0});
      return true;
    }
    case routing::each_key:
      return add_each_key(what, first, count);
    case routing::every_shard:
      return add_every_shard(what, first, count);
    case routing::scan:
      return add_scan(what, first, count);
    case routing::ordered:
      return what.run != nullptr && add_rename(what, first, count);
    case routing::connection:
      return false;
  }
  return false;
}

void batch::add_item(std::size_t shard, const item& one) {
  parts_[shard].items.push_back(one);
  item_shards_.push_back(static_cast<std::uint16_t>(shard));
}

// add_each_key gives each item the arguments from just before its key to what belongs to the key,
// so that a handler finds the key at 1 and a value at 2, as if it were a command of its own.
bool batch::add_each_key(const command& what, std::size_t first, std::size_t count) {
  const auto step = static_cast<std::size_t>(what.key_step);
  if ((count - 1) % step != 0) {
    write_arity_error(add_local(), what.name);
    return true;
  }
  for (std::size_t i = 1; i < count; i += step) {
    const std::uint64_t hash = hash_text(arguments_[first + i]);
    add_item(shard_of(hash), {what.run, static_cast<std::uint32_t>(first + i - 1),
                              static_cast<std::uint32_t>(step + 1), hash});
  }
  requests_.push_back({what.merge, static_cast<std::uint32_t>((count - 1) / step), 0});
  return true;
}

bool batch::add_every_shard(const command& what, std::size_t first, std::size_t count) {
  const bool is_flush = what.merge == merging::ok;
  if (is_flush && count > 1 &&
      (count > 2 || (!equals_caseless(arguments_[first + 1], "async") &&
                     !equals_caseless(arguments_[first + 1], "sync")))) {
    add_local().error(syntax_error);
    return true;
  }
  for (std::size_t shard = 0; shard < parts_.size(); ++shard) {
    add_item(shard,
             {what.run, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), 0});
  }
  requests_.push_back({what.merge, static_cast<std::uint32_t>(parts_.size()), 0});
  return true;
}

bool batch::add_scan(const command& what, std::size_t first, std::size_t count) {
  const auto cursor = parse_unsigned(arguments_[first + 1]);
  if (!cursor) {
    add_local().error("ERR invalid cursor");
    return true;
  }
  const std::size_t shard = *cursor & ((std::size_t{1} << scan_shard_bits) - 1);
  if (shard >= parts_.size()) {  // made up, or from a run with more shards: nothing is there
    add_local().raw("*2\r\n$1\r\n0\r\n*0\r\n");
    return true;
  }
  add_item(shard,
           {what.run, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), 0});
  requests_.push_back({what.merge, 1, 0});
  return true;
}

// add_rename plans a RENAME only if both names fall to one shard, where it is one step.
bool batch::add_rename(const command& what, std::size_t first, std::size_t count) {
  const std::uint64_t hash = hash_text(arguments_[first + 1]);
  if (shard_of(hash) != shard_of(hash_text(arguments_[first + 2]))) return false;
  add_item(shard_of(hash),
           {what.run, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), hash});
  requests_.push_back({what.merge, 1, 0});
  return true;
}

// run_item runs one handler. A value that memory cannot be had for fails its own command only.
void batch::run_item(handler run, shard_call& call, std::string& text) {
  const std::size_t begin = text.size();
  try {
    run(call);
  } catch (const std::bad_alloc&) {
    text.resize(begin);
    call.number = 0;
    call.reply.error("ERR out of memory");
  }
}

bool batch::is_complete(const request& one) const {
  // Results come in order, so it is enough to count, for each shard, how many are needed. Most
  // requests have one item; for the others the count is kept in the part they fall to.
  if (one.item_count == 1) {
    const part& only = parts_[item_shards_[next_shard_]];
    return only.merged < only.results.size();
  }
  std::vector<std::uint32_t> needed(parts_.size(), 0);
  for (std::uint32_t i = 0; i < one.item_count; ++i) ++needed[item_shards_[next_shard_ + i]];
  for (std::size_t shard = 0; shard < parts_.size(); ++shard) {
    if (parts_[shard].results.size() - parts_[shard].merged < needed[shard]) return false;
  }
  return true;
}

batch::piece batch::take_piece() {
  const std::size_t shard = item_shards_[next_shard_++];
  part& from = parts_[shard];
  has_taken_lost_ |= from.merged >= from.lost_from;
  const result& next = from.results[from.merged++];
  const std::string_view text =
      std::string_view(from.text).substr(from.text_merged, next.text_end - from.text_merged);
  from.text_merged = next.text_end;
  return {text, next.number, shard};
}

bool batch::merge(std::string& out, double random) {
  for (; next_request_ < requests_.size(); ++next_request_) {
    const request& one = requests_[next_request_];
    if (one.item_count == 0) {
      const std::size_t end = std::min(one.local_end, local_.size());
      out.append(local_, local_merged_, end - local_merged_);
      local_merged_ = end;
      continue;
    }
    if (!is_complete(one)) break;
    merge_request(one, out, random);
  }
  forget_merged();
  return next_request_ == requests_.size();
}

void batch::answer_lost() {
  for (part& each : parts_) {
    if (!each.is_lost) continue;
    each.is_lost = false;
    // What stands behind the last result is the beginning of a reply that was never finished.
    const bool all_merged = each.merged == each.results.size();
    const std::size_t end = all_merged ? each.text_merged : each.results.back().text_end;
    each.text.resize(end);
    each.lost_from = each.results.size();
    each.results.resize(each.items.size(), {end, 0});
    each.next_item = each.items.size();
  }
}

// merge_request puts one error in the place of whatever a request with lost items comes to.
void batch::merge_request(const request& one, std::string& out, double random) {
  const std::size_t begin = out.size();
  has_taken_lost_ = false;
  merge_pieces(one, out, random);
  if (!has_taken_lost_) return;
  out.resize(begin);
  reply_writer(out).error(shard_lost_error);
}

void batch::merge_pieces(const request& one, std::string& out, double random) {
  reply_writer reply(out);
  if (one.merge == merging::single) return merge_single(out);
  if (one.merge == merging::random) return merge_random(one, out, random);
  if (one.merge == merging::scan) return merge_scan(out);
  std::int64_t total = 0;
  std::string elements;
  if (one.merge == merging::array) reply.array_header(one.item_count);
  for (std::uint32_t i = 0; i < one.item_count; ++i) {
    const piece next = take_piece();
    total += next.number;
    if (one.merge == merging::array) reply.raw(next.text);
    if (one.merge == merging::concat) elements += next.text;
  }
  if (one.merge == merging::ok) reply.ok();
  if (one.merge == merging::sum) reply.integer(total);
  if (one.merge == merging::concat) {
    reply.array_header(static_cast<std::size_t>(total));
    reply.raw(elements);
  }
}

// merge_single moves a reply that is all there is on either side, and copies any other.
void batch::merge_single(std::string& out) {
  part& from = parts_[item_shards_[next_shard_]];
  const piece only = take_piece();
  // Results that hold no text count from its beginning too, so this must be the last.
  if (out.empty() && only.text.size() == from.text.size() && from.merged == from.results.size()) {
    out.swap(from.text);
    from.text_merged = 0;
  } else {
    out += only.text;
  }
}

void batch::merge_random(const request& one, std::string& out, double random) {
  std::vector<piece> pieces;
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < one.item_count; ++i) {
    pieces.push_back(take_piece());
    total += pieces.back().number;
  }
  auto left = static_cast<std::int64_t>(random * static_cast<double>(total));
  for (const piece& candidate : pieces) {
    if (left < candidate.number) return reply_writer(out).raw(candidate.text);
    left -= candidate.number;
  }
  reply_writer(out).null_bulk();
}

void batch::merge_scan(std::string& out) {
  const piece part = take_piece();
  reply_writer reply(out);
  if (part.number < 0) return reply.raw(part.text);
  auto position = static_cast<std::uint64_t>(part.number);
  std::size_t shard = part.shard;
  if (position == key_table::scan_end) {
    position = 0;
    shard = (shard + 1) % parts_.size();
  }
  reply.array_header(2);
  reply.bulk(std::to_string(position << scan_shard_bits | shard));
  reply.raw(part.text);
}

// forget_merged drops reply text that has been merged; positions stay what they mean.
void batch::forget_merged() {
  for (part& each : parts_) {
    if (each.merged < each.results.size() || each.text_merged == 0) continue;
    shrink(each.text);
    each.text_merged = 0;
  }
}

void batch::clear() {
  shrink(arguments_);
  shrink(requests_);
  shrink(item_shards_);
  for (part& each : parts_) {
    shrink(each.items);
    shrink(each.results);
    shrink(each.text);
    each.next_item = 0;
    each.merged = 0;
    each.text_merged = 0;
    each.is_lost = false;
    each.lost_from = none;
  }
  shrink(local_);
  next_request_ = 0;
  next_shard_ = 0;
  local_merged_ = 0;
  open_local_ = none;
}

std::size_t batch::held_bytes() const {
  std::size_t held =
      bytes_of(arguments_) + bytes_of(requests_) + bytes_of(item_shards_) + bytes_of(local_);
  for (const part& each : parts_) {
    held += bytes_of(each.items) + bytes_of(each.results) + bytes_of(each.text);
  }
  return held;
}

}  // namespace sider
