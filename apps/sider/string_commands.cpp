// Commands on strings: SET and GET with all their options, and what reads or writes parts of one.
#include <algorithm>
#include <charconv>
#include <optional>

#include "command.hpp"
#include "expiry_options.hpp"
#include "text.hpp"

namespace sider::run {

namespace {

// No string grows beyond what a client could send in one piece.
constexpr std::size_t string_length_max = std::size_t{512} << 20;

// readable_string finds the key's string. If there is a value of another type it writes that error
// and sets `failed`.
std::string* readable_string(shard_call& call, bool& failed) {
  failed = false;
  entry* found = call.store.find(call.key, call.now_ms);
  if (found == nullptr) return nullptr;
  std::string* text = string_in(*found);
  if (text == nullptr) {
    call.reply.error(wrong_type_error);
    failed = true;
  }
  return text;
}

// reply_value writes the key's string or a null; false if it wrote an error.
bool reply_value(shard_call& call) {
  bool failed = false;
  const std::string* text = readable_string(call, failed);
  if (text != nullptr) call.reply.bulk(*text);
  if (text == nullptr && !failed) call.reply.null_bulk();
  return !failed;
}

bool too_long(shard_call& call, std::size_t length) {
  if (length <= string_length_max) return false;
  call.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return true;
}

void set_with_expiry(shard_call& call, expiry_unit unit, std::string_view name) {
  const auto deadline = read_deadline(call, call.arguments[2], {unit, false}, name);
  if (!deadline) return;
  entry& present = call.store.set(call.key, std::string(call.arguments[3]));
  call.store.set_expiry(present, *deadline);
  call.reply.ok();
}

}  // namespace

void get(shard_call& call) { static_cast<void>(reply_value(call)); }

void set(shard_call& call) {
  const auto options = parse_string_options(call.arguments.subspan(3), string_command::set);
  if (!options) return call.reply.error(syntax_error);
  std::optional<std::int64_t> deadline;
  if (options->expiry) {
    deadline = read_deadline(call, options->expiry_text, *options->expiry, "set");
    if (!deadline) return;
  }
  if (options->get && !reply_value(call)) return;
  const bool found = (options->only_new || options->only_present) &&
                     call.store.find(call.key, call.now_ms) != nullptr;
  if ((options->only_new && found) || (options->only_present && !found)) {
    if (!options->get) call.reply.null_bulk();
    return;
  }
  // A value whose deadline has passed must not lend it to the new one.
  const bool keep = options->keep_expiry && call.store.find(call.key, call.now_ms) != nullptr;
  entry& present = call.store.set(call.key, std::string(call.arguments[2]), keep);
  if (deadline) call.store.set_expiry(present, *deadline);
  if (!options->get) call.reply.ok();
}

void setnx(shard_call& call) {
  const bool absent = call.store.find(call.key, call.now_ms) == nullptr;
  if (absent) call.store.set(call.key, std::string(call.arguments[2]));
  call.reply.integer(absent ? 1 : 0);
}

void setex(shard_call& call) { set_with_expiry(call, expiry_unit::seconds, "setex"); }

void psetex(shard_call& call) { set_with_expiry(call, expiry_unit::milliseconds, "psetex"); }

void getset(shard_call& call) {
  if (reply_value(call)) call.store.set(call.key, std::string(call.arguments[2]));
}

void getdel(shard_call& call) {
  if (!reply_value(call)) return;
  if (entry* found = call.store.find(call.key, call.now_ms)) call.store.erase(*found);
}

void getex(shard_call& call) {
  const auto options = parse_string_options(call.arguments.subspan(2), string_command::getex);
  if (!options) return call.reply.error(syntax_error);
  bool failed = false;
  const std::string* text = readable_string(call, failed);
  if (failed) return;
  if (text == nullptr) return call.reply.null_bulk();
  std::optional<std::int64_t> deadline;
  if (options->expiry) {
    deadline = read_deadline(call, options->expiry_text, *options->expiry, "getex");
    if (!deadline) return;
  }
  call.reply.bulk(*text);
  entry& present = *call.store.find(call.key, call.now_ms);
  if (options->persist) call.store.set_expiry(present, never);
  if (!deadline) return;
  if (*deadline <= call.now_ms) {
    call.store.erase(present);
  } else {
    call.store.set_expiry(present, *deadline);
  }
}

// mget_one reports a key of another type as absent, as MGET does.
void mget_one(shard_call& call) {
  entry* found = call.store.find(call.key, call.now_ms);
  const std::string* text = found == nullptr ? nullptr : string_in(*found);
  if (text == nullptr) return call.reply.null_bulk();
  call.reply.bulk(*text);
}

void mset_one(shard_call& call) { call.store.set(call.key, std::string(call.arguments[2])); }

void append(shard_call& call) {
  bool failed = false;
  const std::string_view suffix = call.arguments[2];
  std::string* text = readable_string(call, failed);
  if (failed) return;
  if (text == nullptr) {
    call.store.set(call.key, std::string(suffix));
    return call.reply.integer(static_cast<std::int64_t>(suffix.size()));
  }
  if (too_long(call, text->size() + suffix.size())) return;
  text->append(suffix);
  call.reply.integer(static_cast<std::int64_t>(text->size()));
}

void strlen(shard_call& call) {
  bool failed = false;
  const std::string* text = readable_string(call, failed);
  if (!failed) call.reply.integer(text == nullptr ? 0 : static_cast<std::int64_t>(text->size()));
}

void getrange(shard_call& call) {
  const auto first = parse_integer(call.arguments[2]);
  const auto last = parse_integer(call.arguments[3]);
  if (!first || !last) return call.reply.error(not_an_integer_error);
  bool failed = false;
  const std::string* text = readable_string(call, failed);
  if (failed) return;
  const auto length = text == nullptr ? 0 : static_cast<std::int64_t>(text->size());
  if (*first < 0 && *last < 0 && *first > *last) return call.reply.bulk("");
  const std::int64_t begin = std::max<std::int64_t>(*first < 0 ? length + *first : *first, 0);
  const std::int64_t end =
      std::min(std::max<std::int64_t>(*last < 0 ? length + *last : *last, 0), length - 1);
  if (begin > end || length == 0) return call.reply.bulk("");
  call.reply.bulk(std::string_view(*text).substr(static_cast<std::size_t>(begin),
                                                 static_cast<std::size_t>(end - begin + 1)));
}

void setrange(shard_call& call) {
  const auto offset = parse_integer(call.arguments[2]);
  if (!offset) return call.reply.error(not_an_integer_error);
  if (*offset < 0) return call.reply.error("ERR offset is out of range");
  const std::string_view patch = call.arguments[3];
  bool failed = false;
  std::string* text = readable_string(call, failed);
  if (failed) return;
  if (patch.empty()) {
    return call.reply.integer(text == nullptr ? 0 : static_cast<std::int64_t>(text->size()));
  }
  const auto begin = static_cast<std::size_t>(*offset);
  if (begin > string_length_max || too_long(call, begin + patch.size())) {
    if (begin > string_length_max) static_cast<void>(too_long(call, begin));
    return;
  }
  if (text == nullptr) text = string_in(call.store.set(call.key, std::string()));
  if (text->size() < begin + patch.size()) text->resize(begin + patch.size());
  patch.copy(text->data() + begin, patch.size());
  call.reply.integer(static_cast<std::int64_t>(text->size()));
}

}  // namespace sider::run
