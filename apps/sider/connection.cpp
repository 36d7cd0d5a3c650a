// The rounds of a connection; see connection.hpp.
#include "connection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <smarm/this_actor.hpp>

#include "release.hpp"
#include "text.hpp"

namespace sider {

using smarm::detail::relaxed;

namespace {

// What an idle connection reads with, on its stack: little, so that with all that may be called
// there while it is parked (the poll of the driver has an array of 3 KiB) the stack stays within
// its first page. One whose last requests came in more gets the larger buffer, into which a
// pipeline fits; more than that is read at once after.
constexpr std::size_t first_read = 256;
constexpr std::size_t first_read_of_pipelines = 1024;
// What is read at a time otherwise, unless a bulk string announced more.
constexpr std::size_t read_min = std::size_t{16} << 10;
constexpr std::size_t read_max = std::size_t{1} << 20;

// Replies are written once so much has come together, or at the end of the round.
constexpr std::size_t write_bytes = std::size_t{256} << 10;

// A buffer larger than this is given back as soon as it is empty, or nearly.
constexpr std::size_t buffer_kept_max = std::size_t{64} << 10;

// A client that takes nothing for so long while replies wait for it is given up.
constexpr auto write_timeout = std::chrono::seconds(60);

std::span<std::byte> as_writable(char* begin, std::size_t size) {
  return std::as_writable_bytes(std::span(begin, size));
}

}  // namespace

// own_command is a command that the connection runs itself.
struct connection::own_command {
  std::string_view name;
  bool barrier;  // the batch before it is finished first
  void (connection::*run)(argument_list, reply_writer);
};

const connection::own_command connection::own_commands[] = {
    {"ping", false, &connection::ping},
    {"echo", false, &connection::echo},
    {"publish", true, &connection::publish},
    {"select", false, &connection::select},
    {"client", false, &connection::client_command},
    {"config", false, &connection::config},
    {"command", false, &connection::command_info},
    {"hello", false, &connection::hello},
    {"time", false, &connection::time},
    {"info", true, &connection::info},
    {"quit", true, &connection::quit},
    {"reset", true, &connection::reset},
    {"debug", true, &connection::debug},
    {"shutdown", true, &connection::shutdown},
    {"rename", true, &connection::rename},
    {"renamenx", true, &connection::rename},
    {"blpop", true, &connection::pop_blocking},
    {"brpop", true, &connection::pop_blocking},
    {"subscribe", true, &connection::subscribe},
    {"psubscribe", true, &connection::subscribe},
    {"unsubscribe", true, &connection::unsubscribe},
    {"punsubscribe", true, &connection::unsubscribe},
    {"pubsub", true, &connection::pubsub},
};

void serve_client(smarm::starting& me, server& host, std::uint64_t id) {
  const std::shared_ptr<client> whose = host.clients().find(id);
  if (whose == nullptr) return me.ignore();  // who accepted it has been told of a failure
  // However this ends; under a shield, for a stop must not throw out of a destructor.
  const auto unregister = [&host](client* gone) {
    const smarm::stop_shield shield;
    host.clients().remove(*gone);
  };
  const std::unique_ptr<client, decltype(unregister)> registered(whose.get(), unregister);
  host.clients().set_actor(*whose, smarm::self());
  me.ready();
  try {
    connection(host, whose).run();
  } catch (const std::bad_alloc&) {
    // A client whose requests memory cannot be had for is closed, for its stream goes with its
    // registration; the others go on.
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::not_enough_memory) throw;  // the same, where it is an actor's
  }
}

connection::connection(server& host, std::shared_ptr<client> whose)
    : server_(host),
      client_(std::move(whose)),
      random_(static_cast<std::minstd_rand::result_type>(client_->id)),
      idle_deadline_(idle_deadline()) {}

void connection::run() {
  while (!closing_ && fill()) {
    serve_input();
    write_out();
    release_buffers();
  }
}

connection::~connection() {
  if (subscriber_ == nullptr) return;
  const smarm::stop_shield shield;  // a stop must not throw out of a destructor
  // Of a connection that crashes or is killed nothing more is written: its client may be one that
  // takes nothing, and the pusher would wait for it for a minute.
  if (std::uncaught_exceptions() > 0) server_.clients().close(*client_);
  server_.hub().forget(*subscriber_);
  subscriber_->queue.finish();
  if (pusher_) static_cast<void>(pusher_.recv());
}

smarm::deadline connection::idle_deadline() const {
  const std::uint64_t timeout_s = server_.config().timeout_s();
  if (timeout_s == 0) return smarm::deadline::never();
  return std::chrono::seconds(timeout_s);
}

// fill_idle waits without a buffer of its own and takes one when something has come. Not inlined:
// the frame of the caller must not hold either array.
template <std::size_t Size>
[[gnu::noinline]] bool connection::fill_idle() {
  std::array<char, Size> first;
  const auto got =
      client_->stream.read_some(as_writable(first.data(), first.size()),
                                is_subscribed() ? smarm::deadline::never() : idle_deadline_);
  if (got.value_or(0) == 0) return false;
  pipelines_ = *got >= first_read;
  exchange_ = server_.exchanges().take();
  std::string& input = exchange_->input;
  input.assign(first.data(), *got);
  if (*got < Size) return true;
  // There is probably more. The end, if that is what comes, will be seen by the next read.
  input.resize_and_overwrite(Size + read_min, [&](char* begin, std::size_t) {
    const auto more =
        client_->stream.read_some(as_writable(begin + Size, read_min), smarm::deadline::from_ns(0));
    return Size + more.value_or(0);
  });
  return true;
}

// fill waits for more input and reads it; false at the end of the connection.
bool connection::fill() {
  if (!is_subscribed() && idle_deadline_.is_never() != (server_.config().timeout_s() == 0)) {
    idle_deadline_ = idle_deadline();  // CONFIG SET timeout has switched it on or off
  }
  if (exchange_ == nullptr) {
    return pipelines_ ? fill_idle<first_read_of_pipelines>() : fill_idle<first_read>();
  }
  std::string& input = exchange_->input;
  const std::size_t had = input.size();
  const std::size_t missing = parser_.missing(had);
  // Memory follows what has come: the buffer doubles, however much was announced.
  const std::size_t wanted =
      std::clamp(missing, read_min, std::max(read_min, std::min(had, read_max)));
  if (input.capacity() < had + wanted) {
    input.reserve(missing > wanted ? std::min(had * 2, had + missing) : had + wanted);
  }
  smarm::io_result<std::size_t> got = 0;
  input.resize_and_overwrite(had + wanted, [&](char* begin, std::size_t) {
    got = client_->stream.read_some(as_writable(begin + had, wanted),
                                    is_subscribed() ? smarm::deadline::never() : idle_deadline_);
    return had + got.value_or(0);
  });
  return got.value_or(0) > 0;
}

void connection::serve_input() {
  const settings& config = server_.config();
  parser_.set_limits({.bulk_length_max = config.bulk_length_max(),
                      .request_length_max = config.request_length_max()});
  std::string& input = exchange_->input;
  batch& work = exchange_->work;
  std::size_t position = 0;
  std::size_t commands = 0;
  while (!closing_) {
    const std::size_t before = work.arguments().size();
    const auto [state, consumed] =
        parser_.parse(std::span(input).subspan(position), work.arguments());
    position += consumed;
    if (state == request_parser::status::incomplete) break;
    if (state == request_parser::status::error) {
      work.add_local().error("ERR " + parser_.error());
      closing_ = true;
      break;
    }
    ++commands;
    dispatch(work.arguments().size() - before);
  }
  finish_batch();
  input.erase(0, position);
  if (input.capacity() > buffer_kept_max && input.size() < input.capacity() / 4) {
    input.shrink_to_fit();
  }
  if (commands == 0) return;
  server_.count_commands(commands);
  client_->active_ms.store(unix_time_ms(), relaxed);  // for display only
  if (!idle_deadline_.is_never()) idle_deadline_ = idle_deadline();
}

// dispatch runs or plans the command whose arguments are the last `count` of the batch.
void connection::dispatch(std::size_t count) {
  batch& work = exchange_->work;
  const argument_list arguments = argument_list(work.arguments()).last(count);
  const command* what = find_command(arguments[0]);
  if (what == nullptr) {
    // What a browser was tricked into sending is no client's: a page must not run commands.
    closing_ = equals_caseless(arguments[0], "post") || equals_caseless(arguments[0], "host:");
    if (!closing_) write_unknown_command(work.add_local(), arguments);
    return;
  }
  client_->last_command.store(what, relaxed);  // for display only
  if (is_subscribed() && !is_allowed(*what)) {
    work.add_local().error("ERR Can't execute '" + std::string(what->name) +
                           "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                           "allowed in this context");
    return;
  }
  if (!work.add(*what, count)) run_own(*what, count);
}

void connection::run_own(const command& what, std::size_t count) {
  const auto* own = std::ranges::find(own_commands, what.name, &own_command::name);
  batch& work = exchange_->work;
  if (!own->barrier) {
    // The list of arguments may move while the reply is written, the arguments may not.
    const argument_list arguments = argument_list(work.arguments()).last(count);
    return (this->*own->run)(arguments, work.add_local());
  }
  const std::vector<std::string_view> arguments(
      work.arguments().end() - static_cast<std::ptrdiff_t>(count), work.arguments().end());
  finish_batch();
  reply_writer reply(exchange_->output);
  try {
    (this->*own->run)(arguments, reply);
  } catch (const shard_lost&) {
    reply.error(shard_lost_error);  // they ask the shards before they write
  }
}

// finish_batch has the shards run what was planned, and puts the replies into the output.
void connection::finish_batch() {
  batch& work = exchange_->work;
  if (work.empty()) {
    work.clear();
    return;
  }
  for (;;) {
    std::size_t asked = 0;
    for (std::size_t i = 0; i < server_.shard_count(); ++i) {
      if (!work.needs_shard(i)) continue;
      server_.shard(i).send(exchange_);
      ++asked;
    }
    for (; asked > 0; --asked) exchange_->done.acquire();
    if (exchange_->failed()) throw std::bad_alloc();
    exchange_->settle();
    const double chance =
        static_cast<double>(random_()) / (static_cast<double>(std::minstd_rand::max()) + 1);
    const bool all = work.merge(exchange_->output, chance);
    if (exchange_->output.size() >= write_bytes) write_out();
    if (all) break;
  }
  work.clear();
}

// write_out writes the output and empties it, or gives it to the pusher.
void connection::write_out() {
  std::string& output = exchange_->output;
  if (output.empty()) return;
  if (subscriber_ != nullptr) {
    subscriber_->queue.append(output, server_.config().outbox_bytes_max());
  } else if (!client_->stream.write_all(output, smarm::deadline(write_timeout))) {
    closing_ = true;
  }
  // What one large reply needed is not kept while the client takes its time with the next command.
  clear_within(output, buffer_kept_max);
}

// release_buffers gives the exchange back if the client is in no request.
void connection::release_buffers() {
  if (!exchange_->input.empty()) return;
  server_.exchanges().give(std::exchange(exchange_, nullptr));
}

// is_allowed tells whether a client that is subscribed may give the command.
bool connection::is_allowed(const command& what) {
  static constexpr std::string_view names[] = {
      "subscribe", "psubscribe", "unsubscribe", "punsubscribe", "ping", "quit", "reset"};
  return std::ranges::find(names, what.name) != std::end(names);
}

bool connection::is_subscribed() const {
  // Relaxed: written by this actor, under the hub's lock, for CLIENT LIST to read.
  return client_->channels.load(relaxed) + client_->patterns.load(relaxed) > 0;
}

}  // namespace sider
