// Commands on keys whatever they hold: deleting, types, deadlines, and walks over a whole shard.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "command.hpp"
#include "expiry_options.hpp"
#include "glob.hpp"
#include "text.hpp"

namespace sider::run {

namespace {

std::string_view type_name(const entry& present) {
  return std::holds_alternative<std::string>(present.content) ? "string" : "list";
}

// The conditions of EXPIRE and its relatives.
struct expire_conditions {
  bool only_without = false;  // NX: only if there is no deadline
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_earlier = false;  // LT
};

std::optional<expire_conditions> parse_conditions(shard_call& call) {
  expire_conditions found;
  for (const std::string_view word : call.arguments.subspan(3)) {
    if (equals_caseless(word, "nx")) {
      found.only_without = true;
    } else if (equals_caseless(word, "xx")) {
      found.only_with = true;
    } else if (equals_caseless(word, "gt")) {
      found.only_later = true;
    } else if (equals_caseless(word, "lt")) {
      found.only_earlier = true;
    } else {
      call.reply.error("ERR Unsupported option " + std::string(word));
      return std::nullopt;
    }
  }
  if (found.only_without && (found.only_with || found.only_later || found.only_earlier)) {
    call.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (found.only_later && found.only_earlier) {
    call.reply.error("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return found;
}

// holds tells whether a key that expires at `current_ms` may be given `deadline_ms`. For GT and LT
// a key without a deadline lives for ever, which is how `never` compares anyway.
bool holds(const expire_conditions& wanted, std::int64_t current_ms, std::int64_t deadline_ms) {
  if (wanted.only_without && current_ms != never) return false;
  if (wanted.only_with && current_ms == never) return false;
  if (wanted.only_later && deadline_ms <= current_ms) return false;
  return !wanted.only_earlier || deadline_ms < current_ms;
}

// expire_at is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT. Unlike in SET, a time that has passed is
// no error: the key goes at once.
void expire_at(shard_call& call, expiry_kind kind, std::string_view name) {
  const auto wanted = parse_conditions(call);
  if (!wanted) return;
  const auto given = parse_integer(call.arguments[2]);
  if (!given) return call.reply.error(not_an_integer_error);
  std::int64_t deadline_ms = *given;
  const std::int64_t base_ms = kind.absolute ? 0 : call.now_ms;
  if ((kind.unit == expiry_unit::seconds &&
       __builtin_mul_overflow(deadline_ms, 1000, &deadline_ms)) ||
      __builtin_add_overflow(deadline_ms, base_ms, &deadline_ms)) {
    return write_expire_time_error(call.reply, name);
  }
  deadline_ms = std::min(deadline_ms, never - 1);
  entry* found = call.store.find(call.key, call.now_ms);
  if (found == nullptr || !holds(*wanted, found->expires_ms, deadline_ms)) {
    return call.reply.integer(0);
  }
  if (deadline_ms <= call.now_ms) {
    call.store.erase(*found);
  } else {
    call.store.set_expiry(*found, deadline_ms);
  }
  call.reply.integer(1);
}

// reply_deadline writes what TTL and EXPIRETIME have in common: -2 without a key, -1 without a
// deadline, else deadline less `base_ms`, in seconds (rounded) or milliseconds.
void reply_deadline(shard_call& call, std::int64_t base_ms, expiry_unit unit) {
  const entry* found = call.store.find(call.key, call.now_ms);
  if (found == nullptr) return call.reply.integer(-2);
  if (found->expires_ms == never) return call.reply.integer(-1);
  const std::int64_t left_ms = std::max<std::int64_t>(found->expires_ms - base_ms, 0);
  call.reply.integer(unit == expiry_unit::milliseconds ? left_ms
                                                       : left_ms / 1000 + (left_ms % 1000 >= 500));
}

struct scan_options {
  std::size_t count = 10;
  std::optional<std::string_view> pattern;
  std::optional<std::string_view> type;
};

std::optional<scan_options> parse_scan_options(shard_call& call) {
  scan_options found;
  const argument_list words = call.arguments.subspan(2);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) {
      call.reply.error(syntax_error);
      return std::nullopt;
    }
    if (equals_caseless(words[i], "count")) {
      const auto count = parse_integer(words[i + 1]);
      if (!count || *count < 1) {
        call.reply.error(count ? syntax_error : not_an_integer_error);
        return std::nullopt;
      }
      found.count = static_cast<std::size_t>(*count);
    } else if (equals_caseless(words[i], "match")) {
      found.pattern = words[i + 1];
    } else if (equals_caseless(words[i], "type")) {
      found.type = words[i + 1];
    } else {
      call.reply.error(syntax_error);
      return std::nullopt;
    }
  }
  return found;
}

}  // namespace

void del_one(shard_call& call) {
  entry* found = call.store.find(call.key, call.now_ms);
  call.number = found == nullptr ? 0 : 1;
  if (found != nullptr) call.store.erase(*found);
}

void exists_one(shard_call& call) {
  call.number = call.store.find(call.key, call.now_ms) == nullptr ? 0 : 1;
}

void type(shard_call& call) {
  const entry* found = call.store.find(call.key, call.now_ms);
  call.reply.simple(found == nullptr ? "none" : type_name(*found));
}

void expire(shard_call& call) { expire_at(call, {expiry_unit::seconds, false}, "expire"); }

void pexpire(shard_call& call) { expire_at(call, {expiry_unit::milliseconds, false}, "pexpire"); }

void expireat(shard_call& call) { expire_at(call, {expiry_unit::seconds, true}, "expireat"); }

void pexpireat(shard_call& call) {
  expire_at(call, {expiry_unit::milliseconds, true}, "pexpireat");
}

void ttl(shard_call& call) { reply_deadline(call, call.now_ms, expiry_unit::seconds); }

void pttl(shard_call& call) { reply_deadline(call, call.now_ms, expiry_unit::milliseconds); }

void expiretime(shard_call& call) { reply_deadline(call, 0, expiry_unit::seconds); }

void pexpiretime(shard_call& call) { reply_deadline(call, 0, expiry_unit::milliseconds); }

void persist(shard_call& call) {
  entry* found = call.store.find(call.key, call.now_ms);
  const bool had_deadline = found != nullptr && found->expires_ms != never;
  if (had_deadline) call.store.set_expiry(*found, never);
  call.reply.integer(had_deadline ? 1 : 0);
}

// rename_within moves a key to another name of the same shard; RENAMENX is told from RENAME by
// its name's length, for in either case arguments[0] is what the client wrote.
void rename_within(shard_call& call) {
  const bool only_new = equals_caseless(call.arguments[0], "renamenx");
  entry* found = call.store.find(call.key, call.now_ms);
  if (found == nullptr) return call.reply.error(no_such_key_error);
  const key_ref target(call.arguments[2]);
  if (only_new && call.store.find(target, call.now_ms) != nullptr) return call.reply.integer(0);
  if (target.text != call.key.text) {
    std::unique_ptr<entry> moved = call.store.detach(*found);
    moved->key = target.text;
    moved->hash = target.hash;
    call.store.attach(std::move(moved), call.now_ms);
  }
  call.grown = target.text;
  if (only_new) return call.reply.integer(1);
  call.reply.ok();
}

void keys(shard_call& call) {
  const std::string_view pattern = call.arguments[1];
  call.store.for_each(call.now_ms, [&](const entry& present) {
    if (pattern != "*" && !glob_matches(pattern, present.key)) return;
    call.reply.bulk(present.key);
    ++call.number;
  });
}

// scan leaves the position to go on from in `number` and the elements, as a whole array, in the
// reply; the router puts the two together with the shard's index.
void scan(shard_call& call) {
  const auto options = parse_scan_options(call);
  call.number = -1;
  if (!options) return;
  std::string elements;
  std::size_t length = 0;
  const std::uint64_t position = *parse_unsigned(call.arguments[1]) >> scan_shard_bits;
  const std::uint64_t next =
      call.store.scan(position, options->count, call.now_ms, [&](const entry& present) {
        if (options->pattern && !glob_matches(*options->pattern, present.key)) return;
        if (options->type && !equals_caseless(*options->type, type_name(present))) return;
        reply_writer(elements).bulk(present.key);
        ++length;
      });
  call.number = static_cast<std::int64_t>(next);
  call.reply.array_header(length);
  call.reply.raw(elements);
}

void dbsize(shard_call& call) { call.number = static_cast<std::int64_t>(call.store.size()); }

void randomkey(shard_call& call) {
  const entry* found = call.store.random_entry(call.now_ms);
  if (found == nullptr) return;
  call.reply.bulk(found->key);
  call.number = static_cast<std::int64_t>(call.store.size());
}

void flush(shard_call& call) { call.store.clear(); }

}  // namespace sider::run
