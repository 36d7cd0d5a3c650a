// Commands on lists. A list that loses its last element loses its key, so none is ever empty.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "command.hpp"
#include "text.hpp"

namespace sider::run {

namespace {

enum class list_end : std::uint8_t { left, right };

struct found_list {
  entry* owner = nullptr;
  list_value* items = nullptr;
  bool failed = false;  // the key holds something else, and the error is written
};

found_list find_list(shard_call& call) {
  entry* found = call.store.find(call.key, call.now_ms);
  if (found == nullptr) return {};
  list_value* items = list_in(*found);
  if (items == nullptr) call.reply.error(wrong_type_error);
  return {found, items, items == nullptr};
}

void push(shard_call& call, list_end end, bool only_present) {
  found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) {
    if (only_present) return call.reply.integer(0);
    list.items = list_in(call.store.set(call.key, std::make_unique<list_value>()));
  }
  for (const std::string_view element : call.arguments.subspan(2)) {
    if (end == list_end::left) {
      list.items->emplace_front(element);
    } else {
      list.items->emplace_back(element);
    }
  }
  call.grown = call.key.text;
  call.reply.integer(static_cast<std::int64_t>(list.items->size()));
}

void reply_popped(shard_call& call, list_value& items, list_end end) {
  if (end == list_end::left) {
    call.reply.bulk(items.front());
    items.pop_front();
  } else {
    call.reply.bulk(items.back());
    items.pop_back();
  }
}

void pop(shard_call& call, list_end end, std::string_view name) {
  if (call.arguments.size() > 3) return write_arity_error(call.reply, name);
  const bool has_count = call.arguments.size() == 3;
  std::size_t count = 1;
  if (has_count) {
    const auto given = parse_integer(call.arguments[2]);
    if (!given || *given < 0) {
      return call.reply.error("ERR value is out of range, must be positive");
    }
    count = static_cast<std::size_t>(*given);
  }
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return has_count ? call.reply.null_array() : call.reply.null_bulk();
  count = std::min(count, list.items->size());
  if (has_count) call.reply.array_header(count);
  for (std::size_t i = 0; i < count; ++i) reply_popped(call, *list.items, end);
  if (list.items->empty()) call.store.erase(*list.owner);
}

struct index_range {
  std::size_t begin = 0;
  std::size_t end = 0;  // one past the last; not above begin if the range is empty
};

// clamp_range turns Redis's inclusive, maybe negative indices into a range of `length` elements.
index_range clamp_range(std::int64_t first, std::int64_t last, std::size_t length) {
  const auto size = static_cast<std::int64_t>(length);
  if (first < 0) first = std::max<std::int64_t>(first + size, 0);
  if (last < 0) last += size;
  last = std::min(last, size - 1);
  if (first > last) return {};
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last) + 1};
}

// element_at resolves a maybe negative index; null if it is outside.
std::string* element_at(list_value& items, std::int64_t index) {
  if (index < 0) index += static_cast<std::int64_t>(items.size());
  if (index < 0 || index >= static_cast<std::int64_t>(items.size())) return nullptr;
  return &items[static_cast<std::size_t>(index)];
}

// remove_equal removes up to `count_max` elements equal to `wanted`, from the front or the back,
// in one pass.
template <typename Iterator>
std::size_t remove_equal(const Iterator& begin, const Iterator& end, std::string_view wanted,
                         std::size_t count_max, Iterator& kept_end) {
  std::size_t removed = 0;
  kept_end = std::remove_if(begin, end, [&](const std::string& element) {
    if (removed == count_max || element != wanted) return false;
    ++removed;
    return true;
  });
  return removed;
}

}  // namespace

void lpush(shard_call& call) { push(call, list_end::left, false); }

void rpush(shard_call& call) { push(call, list_end::right, false); }

void lpushx(shard_call& call) { push(call, list_end::left, true); }

void rpushx(shard_call& call) { push(call, list_end::right, true); }

void lpop(shard_call& call) { pop(call, list_end::left, "lpop"); }

void rpop(shard_call& call) { pop(call, list_end::right, "rpop"); }

void lrange(shard_call& call) {
  const auto first = parse_integer(call.arguments[2]);
  const auto last = parse_integer(call.arguments[3]);
  if (!first || !last) return call.reply.error(not_an_integer_error);
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.array_header(0);
  const auto [begin, end] = clamp_range(*first, *last, list.items->size());
  call.reply.array_header(end - begin);
  for (std::size_t i = begin; i < end; ++i) call.reply.bulk((*list.items)[i]);
}

void llen(shard_call& call) {
  const found_list list = find_list(call);
  if (list.failed) return;
  call.reply.integer(list.items == nullptr ? 0 : static_cast<std::int64_t>(list.items->size()));
}

void lindex(shard_call& call) {
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.null_bulk();
  const auto index = parse_integer(call.arguments[2]);
  if (!index) return call.reply.error(not_an_integer_error);
  const std::string* element = element_at(*list.items, *index);
  if (element == nullptr) return call.reply.null_bulk();
  call.reply.bulk(*element);
}

void lrem(shard_call& call) {
  const auto given = parse_integer(call.arguments[2]);
  if (!given) return call.reply.error(not_an_integer_error);
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.integer(0);
  const std::string_view wanted = call.arguments[3];
  list_value& items = *list.items;
  // 0 means all; a negative count works from the back. The least integer has no opposite.
  const std::size_t count_max =
      *given == 0 ? items.size()
                  : static_cast<std::size_t>(*given < 0 ? -(*given + 1) : *given - 1) + 1;
  std::size_t removed = 0;
  if (*given >= 0) {
    auto kept_end = items.begin();
    removed = remove_equal(items.begin(), items.end(), wanted, count_max, kept_end);
    items.erase(kept_end, items.end());
  } else {
    auto kept_end = items.rbegin();
    removed = remove_equal(items.rbegin(), items.rend(), wanted, count_max, kept_end);
    items.erase(items.begin(), kept_end.base());
  }
  if (items.empty()) call.store.erase(*list.owner);
  call.reply.integer(static_cast<std::int64_t>(removed));
}

void ltrim(shard_call& call) {
  const auto first = parse_integer(call.arguments[2]);
  const auto last = parse_integer(call.arguments[3]);
  if (!first || !last) return call.reply.error(not_an_integer_error);
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.ok();
  list_value& items = *list.items;
  const auto [begin, end] = clamp_range(*first, *last, items.size());
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(end), items.end());
  items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(begin));
  if (items.empty()) call.store.erase(*list.owner);
  call.reply.ok();
}

void lset(shard_call& call) {
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.error(no_such_key_error);
  const auto index = parse_integer(call.arguments[2]);
  if (!index) return call.reply.error(not_an_integer_error);
  std::string* element = element_at(*list.items, *index);
  if (element == nullptr) return call.reply.error("ERR index out of range");
  *element = call.arguments[3];
  call.reply.ok();
}

void linsert(shard_call& call) {
  const bool before = equals_caseless(call.arguments[2], "before");
  if (!before && !equals_caseless(call.arguments[2], "after")) {
    return call.reply.error(syntax_error);
  }
  const found_list list = find_list(call);
  if (list.failed) return;
  if (list.items == nullptr) return call.reply.integer(0);
  auto pivot = std::ranges::find(*list.items, call.arguments[3]);
  if (pivot == list.items->end()) return call.reply.integer(-1);
  list.items->emplace(before ? pivot : pivot + 1, call.arguments[4]);
  call.reply.integer(static_cast<std::int64_t>(list.items->size()));
}

}  // namespace sider::run
