// The table of commands, and the refusals that come before any of them runs.
//
// The table is sorted by name (checked when compiled). Looking up goes through an index by hash of
// the lowered name that is built at compile time, for this is on the path of every request.
#include <algorithm>
#include <array>
#include <string>

#include "command.hpp"
#include "text.hpp"

namespace sider {

namespace {

constexpr command table[] = {
    {"append", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::append,
     "string", "Append a value to a key"},
    {"blpop", -3, routing::ordered, merging::single, flag_write | flag_blocking, 1, -2, 1, nullptr,
     "list", "Remove and get the first element in a list, or block until one is available"},
    {"brpop", -3, routing::ordered, merging::single, flag_write | flag_blocking, 1, -2, 1, nullptr,
     "list", "Remove and get the last element in a list, or block until one is available"},
    {"client", -2, routing::connection, merging::single, 0, 0, 0, 0, nullptr, "connection",
     "A container for client connection commands"},
    {"command", -1, routing::connection, merging::single, 0, 0, 0, 0, nullptr, "server",
     "Get array of command details"},
    {"config", -2, routing::connection, merging::single, flag_admin, 0, 0, 0, nullptr, "server",
     "A container for server configuration commands"},
    {"dbsize", 1, routing::every_shard, merging::sum, flag_readonly | flag_fast, 0, 0, 0,
     run::dbsize, "server", "Return the number of keys in the database"},
    {"debug", -2, routing::connection, merging::single, flag_admin, 0, 0, 0, nullptr, "server",
     "A container for debugging commands"},
    {"decr", 2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::decr,
     "string", "Decrement the integer value of a key by one"},
    {"decrby", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::decrby,
     "string", "Decrement the integer value of a key by the given number"},
    {"del", -2, routing::each_key, merging::sum, flag_write, 1, -1, 1, run::del_one, "generic",
     "Delete a key"},
    {"echo", 2, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Echo the given string"},
    {"exists", -2, routing::each_key, merging::sum, flag_readonly | flag_fast, 1, -1, 1,
     run::exists_one, "generic", "Determine if a key exists"},
    {"expire", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::expire,
     "generic", "Set a key's time to live in seconds"},
    {"expireat", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1,
     run::expireat, "generic", "Set the expiration for a key as a UNIX timestamp"},
    {"expiretime", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1,
     run::expiretime, "generic", "Get the expiration Unix timestamp for a key"},
    {"flushall", -1, routing::every_shard, merging::ok, flag_write, 0, 0, 0, run::flush, "server",
     "Remove all keys from all databases"},
    {"flushdb", -1, routing::every_shard, merging::ok, flag_write, 0, 0, 0, run::flush, "server",
     "Remove all keys from the current database"},
    {"get", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1, run::get,
     "string", "Get the value of a key"},
    {"getdel", 2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::getdel,
     "string", "Get the value of a key and delete the key"},
    {"getex", -2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::getex,
     "string", "Get the value of a key and optionally set its expiration"},
    {"getrange", 4, routing::one_key, merging::single, flag_readonly, 1, 1, 1, run::getrange,
     "string", "Get a substring of the string stored at a key"},
    {"getset", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::getset,
     "string", "Set the string value of a key and return its old value"},
    {"hello", -1, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Handshake with the server"},
    {"incr", 2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::incr,
     "string", "Increment the integer value of a key by one"},
    {"incrby", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::incrby,
     "string", "Increment the integer value of a key by the given amount"},
    {"incrbyfloat", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1,
     run::incrbyfloat, "string", "Increment the float value of a key by the given amount"},
    {"info", -1, routing::connection, merging::single, 0, 0, 0, 0, nullptr, "server",
     "Get information and statistics about the server"},
    {"keys", 2, routing::every_shard, merging::concat, flag_readonly, 0, 0, 0, run::keys, "generic",
     "Find all keys matching the given pattern"},
    {"lindex", 3, routing::one_key, merging::single, flag_readonly, 1, 1, 1, run::lindex, "list",
     "Get an element from a list by its index"},
    {"linsert", 5, routing::one_key, merging::single, flag_write, 1, 1, 1, run::linsert, "list",
     "Insert an element before or after another element in a list"},
    {"llen", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1, run::llen,
     "list", "Get the length of a list"},
    {"lpop", -2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::lpop,
     "list", "Remove and get the first elements in a list"},
    {"lpush", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::lpush,
     "list", "Prepend one or multiple elements to a list"},
    {"lpushx", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::lpushx,
     "list", "Prepend an element to a list, only if the list exists"},
    {"lrange", 4, routing::one_key, merging::single, flag_readonly, 1, 1, 1, run::lrange, "list",
     "Get a range of elements from a list"},
    {"lrem", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::lrem, "list",
     "Remove elements from a list"},
    {"lset", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::lset, "list",
     "Set the value of an element in a list by its index"},
    {"ltrim", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::ltrim, "list",
     "Trim a list to the specified range"},
    {"mget", -2, routing::each_key, merging::array, flag_readonly | flag_fast, 1, -1, 1,
     run::mget_one, "string", "Get the values of all the given keys"},
    {"mset", -3, routing::each_key, merging::ok, flag_write, 1, -1, 2, run::mset_one, "string",
     "Set multiple keys to multiple values"},
    {"persist", 2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::persist,
     "generic", "Remove the expiration from a key"},
    {"pexpire", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1,
     run::pexpire, "generic", "Set a key's time to live in milliseconds"},
    {"pexpireat", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1,
     run::pexpireat, "generic", "Set the expiration for a key as a UNIX timestamp in milliseconds"},
    {"pexpiretime", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1,
     run::pexpiretime, "generic", "Get the expiration Unix timestamp for a key in milliseconds"},
    {"ping", -1, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Ping the server"},
    {"psetex", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::psetex, "string",
     "Set the value and expiration in milliseconds of a key"},
    {"psubscribe", -2, routing::connection, merging::single, flag_pubsub, 0, 0, 0, nullptr,
     "pubsub", "Listen for messages published to channels matching the given patterns"},
    {"pttl", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1, run::pttl,
     "generic", "Get the time to live for a key in milliseconds"},
    {"publish", 3, routing::connection, merging::single, flag_pubsub | flag_fast, 0, 0, 0, nullptr,
     "pubsub", "Post a message to a channel"},
    {"pubsub", -2, routing::connection, merging::single, flag_pubsub, 0, 0, 0, nullptr, "pubsub",
     "A container for Pub/Sub commands"},
    {"punsubscribe", -1, routing::connection, merging::single, flag_pubsub, 0, 0, 0, nullptr,
     "pubsub", "Stop listening for messages posted to channels matching the given patterns"},
    {"quit", -1, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Close the connection"},
    {"randomkey", 1, routing::every_shard, merging::random, flag_readonly, 0, 0, 0, run::randomkey,
     "generic", "Return a random key from the keyspace"},
    {"rename", 3, routing::ordered, merging::single, flag_write, 1, 2, 1, run::rename_within,
     "generic", "Rename a key"},
    {"renamenx", 3, routing::ordered, merging::single, flag_write | flag_fast, 1, 2, 1,
     run::rename_within, "generic", "Rename a key, only if the new key does not exist"},
    {"reset", 1, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Reset the connection"},
    {"rpop", -2, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::rpop,
     "list", "Remove and get the last elements in a list"},
    {"rpush", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::rpush,
     "list", "Append one or multiple elements to a list"},
    {"rpushx", -3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::rpushx,
     "list", "Append an element to a list, only if the list exists"},
    {"scan", -2, routing::scan, merging::scan, flag_readonly, 0, 0, 0, run::scan, "generic",
     "Incrementally iterate the keys space"},
    {"select", 2, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "connection",
     "Change the selected database for the current connection"},
    {"set", -3, routing::one_key, merging::single, flag_write, 1, 1, 1, run::set, "string",
     "Set the string value of a key"},
    {"setex", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::setex, "string",
     "Set the value and expiration of a key"},
    {"setnx", 3, routing::one_key, merging::single, flag_write | flag_fast, 1, 1, 1, run::setnx,
     "string", "Set the value of a key, only if the key does not exist"},
    {"setrange", 4, routing::one_key, merging::single, flag_write, 1, 1, 1, run::setrange, "string",
     "Overwrite part of a string at key starting at the specified offset"},
    {"shutdown", -1, routing::connection, merging::single, flag_admin, 0, 0, 0, nullptr, "server",
     "Synchronously save nothing and shut the server down"},
    {"strlen", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1,
     run::strlen, "string", "Get the length of the value stored in a key"},
    {"subscribe", -2, routing::connection, merging::single, flag_pubsub, 0, 0, 0, nullptr, "pubsub",
     "Listen for messages published to the given channels"},
    {"substr", 4, routing::one_key, merging::single, flag_readonly, 1, 1, 1, run::getrange,
     "string", "Get a substring of the string stored at a key"},
    {"time", 1, routing::connection, merging::single, flag_fast, 0, 0, 0, nullptr, "server",
     "Return the current server time"},
    {"touch", -2, routing::each_key, merging::sum, flag_readonly | flag_fast, 1, -1, 1,
     run::exists_one, "generic", "Count the given keys that exist"},
    {"ttl", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1, run::ttl,
     "generic", "Get the time to live for a key in seconds"},
    {"type", 2, routing::one_key, merging::single, flag_readonly | flag_fast, 1, 1, 1, run::type,
     "generic", "Determine the type stored at key"},
    {"unlink", -2, routing::each_key, merging::sum, flag_write | flag_fast, 1, -1, 1, run::del_one,
     "generic", "Delete a key"},
    {"unsubscribe", -1, routing::connection, merging::single, flag_pubsub, 0, 0, 0, nullptr,
     "pubsub", "Stop listening for messages posted to the given channels"},
};

constexpr std::size_t table_size = std::size(table);
static_assert(std::ranges::is_sorted(table, {}, &command::name), "the table is sorted by name");

constexpr std::size_t name_length_max = 16;
constexpr std::size_t index_size = 256;
static_assert(table_size * 2 <= index_size, "the index keeps room for short probes");

constexpr std::size_t name_hash(std::string_view lowered) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char letter : lowered) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return (hash ^ hash >> 15) % index_size;
}

// make_index gives each command the first free place from its hash on; 0 is a free place.
constexpr std::array<std::uint8_t, index_size> make_index() {
  std::array<std::uint8_t, index_size> index{};
  for (std::size_t i = 0; i < table_size; ++i) {
    std::size_t place = name_hash(table[i].name);
    while (index[place] != 0) place = (place + 1) % index_size;
    index[place] = static_cast<std::uint8_t>(i + 1);
  }
  return index;
}

constexpr auto name_index = make_index();

}  // namespace

const command* find_command(std::string_view name) {
  if (name.size() > name_length_max) return nullptr;
  char lowered[name_length_max];
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char letter = name[i];
    lowered[i] = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  }
  const std::string_view wanted(lowered, name.size());
  for (std::size_t place = name_hash(wanted); name_index[place] != 0;
       place = (place + 1) % index_size) {
    const command& candidate = table[name_index[place] - 1];
    if (candidate.name == wanted) return &candidate;
  }
  return nullptr;
}

std::span<const command> all_commands() { return table; }

void write_arity_error(reply_writer reply, std::string_view full_name) {
  reply.error("ERR wrong number of arguments for '" + std::string(full_name) + "' command");
}

void write_unknown_command(reply_writer reply, argument_list arguments) {
  // As in Redis, at most 128 bytes of the name and about as many of the arguments are repeated,
  // each as far as a C string of it would go.
  constexpr std::size_t quoted_max = 128;
  const auto shown = [](std::string_view text, std::size_t length_max) {
    return text.substr(0, std::min(text.find('\0'), length_max));
  };
  std::string quoted;
  for (const std::string_view argument : arguments.subspan(1)) {
    if (quoted.size() >= quoted_max) break;
    quoted += '\'';
    quoted += shown(argument, quoted_max - (quoted.size() - 1));
    quoted += "' ";
  }
  reply.error("ERR unknown command '" + std::string(shown(arguments[0], quoted_max)) +
              "', with args beginning with: " + quoted);
}

void write_unknown_subcommand(reply_writer reply, std::string_view container,
                              std::string_view given) {
  reply.error("ERR unknown subcommand '" + std::string(given.substr(0, 128)) + "'. Try " +
              uppercase(container) + " HELP.");
}

}  // namespace sider
