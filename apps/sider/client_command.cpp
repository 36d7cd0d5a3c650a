// CLIENT and its subcommands.
#include <algorithm>
#include <optional>
#include <string>

#include "connection.hpp"
#include "text.hpp"

namespace sider {

namespace {

// A filter of CLIENT KILL; what is not given fits every client.
struct kill_filter {
  std::optional<std::uint64_t> id;
  std::optional<std::string> peer;
  std::optional<std::string> local;
  std::optional<bool> subscribed;
  bool skip_me = true;
};

bool is_listening(const client& each) {
  using smarm::detail::relaxed;
  // Relaxed: two numbers that stand for themselves.
  return each.channels.load(relaxed) + each.patterns.load(relaxed) > 0;
}

bool fits(const kill_filter& filter, const client& each) {
  return (!filter.id || *filter.id == each.id) &&
         (!filter.peer || *filter.peer == each.stream.peer_name()) &&
         (!filter.local || *filter.local == each.stream.local_name()) &&
         (!filter.subscribed || *filter.subscribed == is_listening(each));
}

// read_filter reads "name value" pairs; false if it has written an error.
bool read_filter(argument_list words, kill_filter& filter, reply_writer reply) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string_view name = words[i];
    const std::string_view text = words[i + 1];
    if (equals_caseless(name, "id")) {
      const auto id = parse_integer(text);
      if (!id || *id < 1) {
        reply.error("ERR client-id should be greater than 0");
        return false;
      }
      filter.id = static_cast<std::uint64_t>(*id);
    } else if (equals_caseless(name, "addr")) {
      filter.peer = text;
    } else if (equals_caseless(name, "laddr")) {
      filter.local = text;
    } else if (equals_caseless(name, "type")) {
      if (!equals_caseless(text, "normal") && !equals_caseless(text, "pubsub")) {
        reply.error("ERR Unknown client type '" + std::string(text) + "'");
        return false;
      }
      filter.subscribed = equals_caseless(text, "pubsub");
    } else if (equals_caseless(name, "skipme") &&
               (equals_caseless(text, "yes") || equals_caseless(text, "no"))) {
      filter.skip_me = equals_caseless(text, "yes");
    } else {
      reply.error(syntax_error);
      return false;
    }
  }
  return true;
}

void write_client_help(reply_writer reply) {
  static constexpr std::string_view lines[] = {
      "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "GETNAME",
      "GETREDIR",
      "ID",
      "INFO",
      ("KILL <ip:port> | [ID <id>] [ADDR <ip:port>] [LADDR <ip:port>] [TYPE (NORMAL|PUBSUB)] "
       "[SKIPME (YES|NO)]"),
      "LIST [TYPE (NORMAL|PUBSUB) | ID <id> ...]",
      "NO-EVICT (ON|OFF)",
      "SETNAME <name>",
  };
  reply.array_header(std::size(lines));
  for (const std::string_view line : lines) reply.simple(line);
}

}  // namespace

void connection::client_command(argument_list arguments, reply_writer reply) {
  const std::string_view verb = arguments[1];
  const std::size_t count = arguments.size();
  const auto is = [&](std::string_view name) { return equals_caseless(verb, name); };
  const auto arity = [&](bool fits) {
    if (!fits) write_arity_error(reply, "client|" + lowercase(verb));
    return fits;
  };
  if (is("id")) {
    if (arity(count == 2)) reply.integer(static_cast<std::int64_t>(client_->id));
  } else if (is("getname")) {
    if (!arity(count == 2)) return;
    const std::string name = server_.clients().name_of(*client_);
    if (name.empty()) return reply.null_bulk();
    reply.bulk(name);
  } else if (is("setname")) {
    if (arity(count == 3) && set_name(arguments[2], reply)) reply.ok();
  } else if (is("list")) {
    list_clients(arguments, reply);
  } else if (is("info")) {
    if (!arity(count == 2)) return;
    reply.bulk(
        server_.clients().describe([&](const client& each) { return &each == client_.get(); }));
  } else if (is("kill")) {
    if (arity(count >= 3)) kill_clients(arguments, reply);
  } else if (is("no-evict")) {
    if (!arity(count == 3)) return;
    const bool known = equals_caseless(arguments[2], "on") || equals_caseless(arguments[2], "off");
    if (!known) return reply.error(syntax_error);
    reply.ok();
  } else if (is("getredir")) {
    if (arity(count == 2)) reply.integer(-1);
  } else if (is("help")) {
    if (arity(count == 2)) write_client_help(reply);
  } else {
    reply.error("ERR unknown subcommand '" + std::string(verb.substr(0, 128)) +
                "'. Try CLIENT HELP.");
  }
}

// set_name names the client; false if it has written an error.
bool connection::set_name(std::string_view name, reply_writer reply) {
  if (std::ranges::any_of(name, [](char letter) { return letter < '!' || letter > '~'; })) {
    reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  server_.clients().set_name(*client_, name);
  return true;
}

void connection::list_clients(argument_list arguments, reply_writer reply) {
  const argument_list words = arguments.subspan(2);
  std::function<bool(const client&)> wanted = [](const client&) { return true; };
  if (words.size() == 2 && equals_caseless(words[0], "type")) {
    const bool listening = equals_caseless(words[1], "pubsub");
    const bool known = listening || equals_caseless(words[1], "normal") ||
                       equals_caseless(words[1], "master") || equals_caseless(words[1], "replica");
    if (!known) return reply.error("ERR Unknown client type '" + std::string(words[1]) + "'");
    const bool possible = listening || equals_caseless(words[1], "normal");
    wanted = [=](const client& each) { return possible && is_listening(each) == listening; };
  } else if (words.size() >= 2 && equals_caseless(words[0], "id")) {
    std::vector<std::uint64_t> ids;
    for (const std::string_view word : words.subspan(1)) {
      const auto id = parse_integer(word);
      if (!id || *id < 1) return reply.error("ERR Invalid client ID");
      ids.push_back(static_cast<std::uint64_t>(*id));
    }
    wanted = [ids](const client& each) { return std::ranges::count(ids, each.id) > 0; };
  } else if (!words.empty()) {
    return reply.error(syntax_error);
  }
  reply.bulk(server_.clients().describe(wanted));
}

// kill_clients knows the old form, CLIENT KILL address, and the one with filters. A client that
// ends itself still gets the reply.
void connection::kill_clients(argument_list arguments, reply_writer reply) {
  const argument_list words = arguments.subspan(2);
  const bool old_form = words.size() == 1;
  kill_filter filter;
  if (old_form) {
    filter.peer = words[0];
    filter.skip_me = false;
  } else if (words.size() % 2 != 0) {
    return reply.error(syntax_error);
  } else if (!read_filter(words, filter, reply)) {
    return;
  }
  const bool self = !filter.skip_me && fits(filter, *client_);
  const std::size_t closed = server_.clients().close_if(
      [&](const client& each) { return &each != client_.get() && fits(filter, each); });
  if (self) closing_ = true;
  if (!old_form) return reply.integer(static_cast<std::int64_t>(closed + (self ? 1 : 0)));
  if (closed == 0 && !self) return reply.error("ERR No such client");
  reply.ok();
}

}  // namespace sider
