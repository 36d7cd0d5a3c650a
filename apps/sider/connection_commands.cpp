// Commands about the connection and the server as a whole.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "connection.hpp"
#include "glob.hpp"
#include "text.hpp"

namespace sider {

namespace {

// What clients that adapt to a version are told: the one whose behaviour this is.
constexpr std::string_view redis_version = "7.0.15";

void write_help(reply_writer reply, std::initializer_list<std::string_view> lines) {
  reply.array_header(lines.size());
  for (const std::string_view line : lines) reply.simple(line);
}

void append_line(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(":").append(value).append("\r\n");
}

void write_command(reply_writer reply, const command& what) {
  static constexpr std::pair<unsigned, std::string_view> names[] = {
      {flag_write, "write"}, {flag_readonly, "readonly"}, {flag_fast, "fast"},
      {flag_admin, "admin"}, {flag_pubsub, "pubsub"},     {flag_blocking, "blocking"},
  };
  reply.array_header(10);
  reply.bulk(what.name);
  reply.integer(what.arity);
  reply.array_header(static_cast<std::size_t>(std::ranges::count_if(
      names, [&](const auto& each) { return (what.flags & each.first) != 0; })));
  for (const auto& [flag, name] : names) {
    if ((what.flags & flag) != 0) reply.simple(name);
  }
  reply.integer(what.first_key);
  reply.integer(what.last_key);
  reply.integer(what.key_step);
  for (int i = 0; i < 4; ++i) reply.array_header(0);  // categories, tips, key specs, subcommands
}

void write_docs(reply_writer reply, argument_list names) {
  std::vector<const command*> wanted;
  for (const std::string_view name : names) {
    if (const command* found = find_command(name)) wanted.push_back(found);
  }
  if (names.empty()) {
    for (const command& each : all_commands()) wanted.push_back(&each);
  }
  reply.array_header(wanted.size() * 2);
  for (const command* each : wanted) {
    reply.bulk(each->name);
    reply.array_header(4);
    reply.bulk("summary");
    reply.bulk(each->summary);
    reply.bulk("group");
    reply.bulk(each->group);
  }
}

}  // namespace

void connection::ping(argument_list arguments, reply_writer reply) {
  if (arguments.size() > 2) return write_arity_error(reply, "ping");
  if (is_subscribed()) {
    reply.array_header(2);
    reply.bulk("pong");
    return reply.bulk(arguments.size() > 1 ? arguments[1] : "");
  }
  if (arguments.size() > 1) return reply.bulk(arguments[1]);
  reply.simple("PONG");
}

void connection::echo(argument_list arguments, reply_writer reply) { reply.bulk(arguments[1]); }

void connection::select(argument_list arguments, reply_writer reply) {
  const auto number = parse_integer(arguments[1]);
  if (!number) return reply.error(not_an_integer_error);
  if (*number != 0) return reply.error("ERR DB index is out of range");
  reply.ok();
}

void connection::hello(argument_list arguments, reply_writer reply) {
  std::size_t next = 1;
  if (arguments.size() > 1) {
    const auto version = parse_integer(arguments[1]);
    if (!version) return reply.error("ERR Protocol version is not an integer or out of range");
    if (*version != 2) return reply.error("NOPROTO unsupported protocol version");
    next = 2;
  }
  for (; next < arguments.size(); next += 2) {
    if (equals_caseless(arguments[next], "setname") && next + 1 < arguments.size()) {
      if (!set_name(arguments[next + 1], reply)) return;
    } else {
      return reply.error("ERR Syntax error in HELLO option '" + std::string(arguments[next]) + "'");
    }
  }
  reply.array_header(14);
  reply.bulk("server");
  reply.bulk("redis");
  reply.bulk("version");
  reply.bulk(redis_version);
  reply.bulk("proto");
  reply.integer(2);
  reply.bulk("id");
  reply.integer(static_cast<std::int64_t>(client_->id));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  reply.array_header(0);
}

void connection::quit(argument_list, reply_writer reply) {
  reply.ok();
  closing_ = true;
}

void connection::reset(argument_list, reply_writer reply) {
  if (subscriber_ != nullptr) server_.hub().forget(*subscriber_);
  server_.clients().set_name(*client_, "");
  reply.simple("RESET");
}

void connection::time(argument_list, reply_writer reply) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  reply.array_header(2);
  reply.bulk(std::to_string(now / 1'000'000));
  reply.bulk(std::to_string(now % 1'000'000));
}

// shutdown takes what Redis takes and refuses what it refuses, which matters here: a word that was
// passed over would end the server. There is never one in progress that ABORT could call off.
void connection::shutdown(argument_list arguments, reply_writer reply) {
  const argument_list words = arguments.subspan(1);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(words, [&](std::string_view w) { return equals_caseless(w, name); });
  };
  const bool known = std::ranges::all_of(words, [](std::string_view word) {
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"nosave", "save", "now", "force", "abort"},
        [&](std::string_view each) { return equals_caseless(word, each); });
  });
  const bool aborts = has("abort");
  const bool plain_abort = words.size() == 1;
  if (!known || (has("save") && has("nosave")) || (aborts && !plain_abort)) {
    return reply.error(syntax_error);
  }
  if (aborts) return reply.error("ERR No shutdown in progress.");
  closing_ = true;
  server_.terminate();
}

// set_config sets all or nothing: what was set before one that fails gets back the value it had.
void connection::set_config(argument_list pairs, reply_writer reply) {
  const auto before = server_.config().matching({"*"});
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const auto changed = server_.config().set(pairs[i], pairs[i + 1]);
    if (changed) continue;
    for (std::size_t back = 0; back < i; back += 2) {
      for (const auto& [name, value] : before) {
        if (!equals_caseless(pairs[back], name)) continue;
        static_cast<void>(server_.config().set(name, value));
      }
    }
    return reply.error("ERR " + changed.error());
  }
  reply.ok();
}

void connection::config(argument_list arguments, reply_writer reply) {
  const std::string_view verb = arguments[1];
  const argument_list rest = arguments.subspan(2);
  if (equals_caseless(verb, "get")) {
    if (rest.empty()) return write_arity_error(reply, "config|get");
    const auto found = server_.config().matching({rest.begin(), rest.end()});
    reply.array_header(found.size() * 2);
    for (const auto& [name, text] : found) {
      reply.bulk(name);
      reply.bulk(text);
    }
  } else if (equals_caseless(verb, "set")) {
    if (rest.size() < 2 || rest.size() % 2 != 0) return write_arity_error(reply, "config|set");
    set_config(rest, reply);
  } else if (equals_caseless(verb, "resetstat")) {
    reply.ok();
  } else if (equals_caseless(verb, "rewrite")) {
    reply.error("ERR The server is running without a config file");
  } else if (equals_caseless(verb, "help")) {
    write_help(reply, {"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                       "GET <pattern> [<pattern> ...]", "SET <directive> <value> [...]"});
  } else {
    write_unknown_subcommand(reply, "config", verb);
  }
}

void connection::command_info(argument_list arguments, reply_writer reply) {
  if (arguments.size() == 1) {
    reply.array_header(all_commands().size());
    for (const command& each : all_commands()) write_command(reply, each);
    return;
  }
  const std::string_view verb = arguments[1];
  const argument_list rest = arguments.subspan(2);
  if (equals_caseless(verb, "count")) {
    reply.integer(static_cast<std::int64_t>(all_commands().size()));
  } else if (equals_caseless(verb, "docs")) {
    write_docs(reply, rest);
  } else if (equals_caseless(verb, "list")) {
    reply.array_header(all_commands().size());
    for (const command& each : all_commands()) reply.bulk(each.name);
  } else if (equals_caseless(verb, "info")) {
    reply.array_header(rest.empty() ? all_commands().size() : rest.size());
    if (rest.empty()) {
      for (const command& each : all_commands()) write_command(reply, each);
    }
    for (const std::string_view name : rest) {
      const command* found = find_command(name);
      if (found == nullptr) {
        reply.null_bulk();
      } else {
        write_command(reply, *found);
      }
    }
  } else if (equals_caseless(verb, "help")) {
    write_help(reply, {"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "COUNT",
                       "DOCS [<command-name> ...]", "INFO [<command-name> ...]", "LIST"});
  } else {
    write_unknown_subcommand(reply, "command", verb);
  }
}

void connection::info(argument_list arguments, reply_writer reply) {
  using section = std::pair<std::string_view, void (connection::*)(std::string&)>;
  static constexpr section sections[] = {
      {"Server", &connection::info_server},     {"Clients", &connection::info_clients},
      {"Memory", &connection::info_memory},     {"Stats", &connection::info_stats},
      {"Replication", &connection::info_roles}, {"Keyspace", &connection::info_keyspace},
  };
  const auto is_wanted = [&](std::string_view title) {
    if (arguments.size() == 1) return true;
    return std::ranges::any_of(arguments.subspan(1), [&](std::string_view word) {
      return equals_caseless(word, title) || equals_caseless(word, "all") ||
             equals_caseless(word, "default") || equals_caseless(word, "everything");
    });
  };
  std::string text;
  for (const auto& [title, write] : sections) {
    if (!is_wanted(title)) continue;
    if (!text.empty()) text += "\r\n";
    text += "# " + std::string(title) + "\r\n";
    (this->*write)(text);
  }
  reply.bulk(text);
}

void connection::info_server(std::string& text) {
  append_line(text, "redis_version", redis_version);
  append_line(text, "redis_mode", "standalone");
  append_line(text, "server_name", "sider");
  append_line(text, "process_id", std::to_string(::getpid()));
  for (const auto& each : server_.config().matching({"port"})) {
    append_line(text, "tcp_port", each.second);
  }
  const std::int64_t up_s = (unix_time_ms() - server_.started_ms()) / 1000;
  append_line(text, "uptime_in_seconds", std::to_string(up_s));
  append_line(text, "shards", std::to_string(server_.shard_count()));
  append_line(text, "schedulers", std::to_string(server_.schedulers()));
}

void connection::info_clients(std::string& text) {
  append_line(text, "connected_clients", std::to_string(server_.clients().size()));
  append_line(text, "maxclients", std::to_string(server_.config().clients_max()));
}

void connection::info_memory(std::string& text) {
  const struct mallinfo2 heap = ::mallinfo2();
  const std::size_t used = heap.uordblks + heap.hblkhd;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  append_line(text, "used_memory", std::to_string(used));
  append_line(text, "used_memory_human", std::to_string(used >> 20) + "M");
  append_line(text, "used_memory_peak", std::to_string(usage.ru_maxrss * 1024));
}

void connection::info_stats(std::string& text) {
  append_line(text, "total_connections_received", std::to_string(server_.clients().accepted()));
  append_line(text, "total_commands_processed", std::to_string(server_.command_count()));
  append_line(text, "pubsub_patterns", std::to_string(server_.hub().pattern_count()));
}

void connection::info_roles(std::string& text) {
  append_line(text, "role", "master");
  append_line(text, "connected_slaves", "0");
}

void connection::info_keyspace(std::string& text) {
  std::size_t keys = 0;
  std::size_t expiring = 0;
  for (std::size_t i = 0; i < server_.shard_count(); ++i) {
    const auto [all, with_deadline] = ask_shard(server_.shard(i), [](const shard& here) {
      return std::pair(here.store.size(), here.store.expiring_size());
    });
    keys += all;
    expiring += with_deadline;
  }
  if (keys == 0) return;
  append_line(
      text, "db0",
      "keys=" + std::to_string(keys) + ",expires=" + std::to_string(expiring) + ",avg_ttl=0");
}

}  // namespace sider
