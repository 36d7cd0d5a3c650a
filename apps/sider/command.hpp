// The commands of sider: what they are called, how they are routed, and the code that runs one of
// them on one shard.
//
// A command is run in up to three steps. The connection looks it up and checks its arity; the
// router cuts it into items, each of which concerns one shard (router.hpp); a shard's actor runs an
// item through its `run`, which writes the reply, or a part of it and a number that the router
// merges. So whatever is in a handler is single-threaded code on one shard_store, and handlers are
// pure but for the store: no clock, no input or output. Threads: the table is constant; handlers
// run in the actor that owns the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hash.hpp"
#include "reply.hpp"
#include "store.hpp"

namespace sider {

using argument_list = std::span<const std::string_view>;

// shard_call is one item while it runs.
struct shard_call {
  shard_store& store;
  argument_list arguments;  // the command's name, then what belongs to this item
  key_ref key;              // the item's key; of no meaning where it has none
  std::int64_t now_ms;
  reply_writer reply;
  std::int64_t number = 0;      // what the router adds up or weighs
  std::string_view grown = {};  // the key of a list that has gained elements, for those who wait
};

using handler = void (*)(shard_call&);

enum class routing : std::uint8_t {
  connection,   // the connection runs it itself; it has no handler here
  one_key,      // the shard of the first key
  each_key,     // an item for each key, at the key's shard
  every_shard,  // an item for each shard
  scan,         // the shard that the cursor names
  ordered,      // the connection takes several steps, one after the other: RENAME, BLPOP
};

// How the router makes one reply out of the items' parts.
enum class merging : std::uint8_t {
  single,  // the only item's reply
  ok,      // +OK once all are done
  sum,     // the sum of the numbers
  array,   // an array of the items' replies
  concat,  // an array of as many elements as the numbers add up to, each item holding some
  random,  // one item's reply, chosen by the numbers as weights; a null if all are 0
  scan,    // the next cursor, made of shard and number, and the only item's array
};

enum command_flag : std::uint16_t {
  flag_write = 1,
  flag_readonly = 2,
  flag_fast = 4,
  flag_admin = 8,
  flag_pubsub = 16,
  flag_blocking = 32,
};

struct command {
  std::string_view name;  // in lower case
  int arity;              // the argument count with the name; negative: at least so many
  routing route;
  merging merge;
  unsigned flags;
  int first_key;  // argument positions of the keys; 0: none. A negative last counts from the end.
  int last_key;
  int key_step;
  handler run;
  std::string_view group;
  std::string_view summary;
};

// find_command looks a command up by its name in any case; null if there is none.
[[nodiscard]] const command* find_command(std::string_view name);

// all_commands lists the table, sorted by name.
[[nodiscard]] std::span<const command> all_commands();

// arity_fits tells whether `count` arguments (the name included) are as many as `arity` allows.
[[nodiscard]] constexpr bool arity_fits(int arity, std::size_t count) {
  const auto wanted = static_cast<std::size_t>(arity < 0 ? -arity : arity);
  return arity < 0 ? count >= wanted : count == wanted;
}

// A SCAN cursor holds the shard in its low bits and the position in that shard's table above.
inline constexpr unsigned scan_shard_bits = 10;

// write_arity_error and write_unknown_command word the two refusals that precede every command, and
// write_unknown_subcommand that of a command which is a container of others.
void write_arity_error(reply_writer reply, std::string_view full_name);
void write_unknown_command(reply_writer reply, argument_list arguments);
void write_unknown_subcommand(reply_writer reply, std::string_view container,
                              std::string_view given);

inline constexpr std::string_view wrong_type_error =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view syntax_error = "ERR syntax error";
inline constexpr std::string_view not_an_integer_error =
    "ERR value is not an integer or out of range";
inline constexpr std::string_view no_such_key_error = "ERR no such key";
inline constexpr std::string_view shard_lost_error =
    "ERR a shard has crashed and lost its keys; the command was not completed";

// string_in and list_in return the entry's value if it is of that type, else null.
[[nodiscard]] inline std::string* string_in(entry& present) {
  return std::get_if<std::string>(&present.content);
}
[[nodiscard]] inline list_value* list_in(entry& present) {
  auto* held = std::get_if<std::unique_ptr<list_value>>(&present.content);
  return held == nullptr ? nullptr : held->get();
}

// The handlers, by the file that has them.
namespace run {

// string_commands.cpp
void get(shard_call&);
void set(shard_call&);
void setnx(shard_call&);
void setex(shard_call&);
void psetex(shard_call&);
void getset(shard_call&);
void getdel(shard_call&);
void getex(shard_call&);
void mget_one(shard_call&);
void mset_one(shard_call&);
void append(shard_call&);
void strlen(shard_call&);
void getrange(shard_call&);
void setrange(shard_call&);

// counter_commands.cpp
void incr(shard_call&);
void decr(shard_call&);
void incrby(shard_call&);
void decrby(shard_call&);
void incrbyfloat(shard_call&);

// key_commands.cpp
void del_one(shard_call&);
void exists_one(shard_call&);
void type(shard_call&);
void expire(shard_call&);
void pexpire(shard_call&);
void expireat(shard_call&);
void pexpireat(shard_call&);
void ttl(shard_call&);
void pttl(shard_call&);
void expiretime(shard_call&);
void pexpiretime(shard_call&);
void persist(shard_call&);
void rename_within(shard_call&);
void keys(shard_call&);
void scan(shard_call&);
void dbsize(shard_call&);
void randomkey(shard_call&);
void flush(shard_call&);

// list_commands.cpp
void lpush(shard_call&);
void rpush(shard_call&);
void lpushx(shard_call&);
void rpushx(shard_call&);
void lpop(shard_call&);
void rpop(shard_call&);
void lrange(shard_call&);
void llen(shard_call&);
void lindex(shard_call&);
void lrem(shard_call&);
void ltrim(shard_call&);
void lset(shard_call&);
void linsert(shard_call&);

}  // namespace run

}  // namespace sider
