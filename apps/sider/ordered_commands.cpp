// Commands that take several steps: RENAME over two shards, pops that wait, publish and subscribe.
//
// RENAME over two shards is two steps, taking the key from one shard and putting it into the other.
// In between an observer sees neither name, never both. RENAMENX first looks whether the new
// name is taken; if it is taken by the time the key arrives, the key goes back, unless the old
// name has been given a new value meanwhile, which then stands as if it had been set afterwards. It
// goes back as well where the other shard crashes before it has taken it.
#include <poll.h>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <smarm/fd.hpp>
#include <smarm/spawn.hpp>
#include <smarm/supervisor.hpp>
#include <smarm/this_actor.hpp>

#include "connection.hpp"
#include "text.hpp"

namespace sider {

namespace {

using namespace std::chrono_literals;

// put_key gives `moved` its place under `name`; it stays with the caller if the name is taken and
// may not be overwritten.
bool put_key(const shard_inbox& to, key_ref name, std::unique_ptr<entry>& moved, bool only_new) {
  return ask_shard(to, [&, only_new](shard& here) {
    if (only_new && here.store.find(name, here.now_ms) != nullptr) return false;
    moved->key = name.text;
    moved->hash = name.hash;
    here.store.attach(std::move(moved), here.now_ms);
    here.waiters.serve(here.store, name, here.now_ms);
    return true;
  });
}

// read_timeout turns the last argument of BLPOP into a deadline; nothing if it wrote an error.
std::optional<smarm::deadline> read_timeout(std::string_view text, reply_writer reply) {
  const auto seconds = parse_long_double(text);
  if (!seconds) {
    reply.error("ERR timeout is not a float or out of range");
    return std::nullopt;
  }
  if (*seconds < 0) {
    reply.error("ERR timeout is negative");
    return std::nullopt;
  }
  // Redis counts in milliseconds and refuses what does not fit.
  if (*seconds * 1000 >= 9.2233720368547758e18L) {
    reply.error("ERR timeout is out of range");
    return std::nullopt;
  }
  if (*seconds == 0) return smarm::deadline::never();
  return smarm::deadline(std::chrono::duration<long double>(*seconds));
}

// watch_hangup cancels the wait if the client goes away meanwhile. Data that arrives is left alone:
// it is the next command. With data queued the kernel reports no end by readability, so from
// then on the watch looks twice a second. It ends by being stopped.
void watch_hangup(int fd, blocked_pop& target) {
  for (;;) {
    if (!smarm::wait_readable(fd)) break;
    pollfd state{fd, POLLRDHUP, 0};
    ::poll(&state, 1, 0);  // a look, not a wait
    if ((state.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) break;
    smarm::sleep_for(500ms);
  }
  target.cancel();
}

// receive_outcome takes the outcome of a pop whose target was claimed.
pop_outcome receive_outcome(smarm::receiver<pop_outcome>& outcomes) {
  auto got = outcomes.recv();
  return got ? std::move(*got) : pop_outcome{.lost = true};
}

}  // namespace

void connection::rename(argument_list arguments, reply_writer reply) {
  const bool only_new = equals_caseless(arguments[0], "renamenx");
  const key_ref source(arguments[1]);
  const key_ref target(arguments[2]);
  const shard_inbox& from = server_.shard_of(source);
  const shard_inbox& to = server_.shard_of(target);
  const auto exists = [](key_ref name) {
    return [name](shard& here) { return here.store.find(name, here.now_ms) != nullptr; };
  };
  if (only_new) {
    if (!ask_shard(from, exists(source))) return reply.error(no_such_key_error);
    if (ask_shard(to, exists(target))) return reply.integer(0);
  }
  std::unique_ptr<entry> moved = ask_shard(from, [source](shard& here) {
    entry* found = here.store.find(source, here.now_ms);
    return found == nullptr ? nullptr : here.store.detach(*found);
  });
  if (moved == nullptr) return reply.error(no_such_key_error);
  bool is_put = false;
  try {
    is_put = put_key(to, target, moved, only_new);
  } catch (const shard_lost&) {
    if (moved != nullptr) static_cast<void>(put_key(from, source, moved, true));
    throw;
  }
  if (!is_put) {
    static_cast<void>(put_key(from, source, moved, true));
    return reply.integer(0);
  }
  if (only_new) return reply.integer(1);
  reply.ok();
}

void connection::pop_blocking(argument_list arguments, reply_writer reply) {
  const auto until = read_timeout(arguments.back(), reply);
  if (!until) return;
  const pop_end end = equals_caseless(arguments[0], "blpop") ? pop_end::left : pop_end::right;
  const pop_outcome got = take_pop(arguments.subspan(1, arguments.size() - 2), end, *until);
  if (got.served) {
    reply.array_header(2);
    reply.bulk(got.found.key);
    reply.bulk(got.found.element);
  } else if (got.lost) {
    reply.error(shard_lost_error);
  } else if (got.wrong_type) {
    reply.error(wrong_type_error);
  } else {
    reply.null_array();
  }
}

// forget_pop has the shards forget a target that has been closed.
void connection::forget_pop(const std::vector<key_ref>& waiting, const blocked_pop* gone) noexcept {
  for (const key_ref key : waiting) {
    try {
      ask_shard(server_.shard_of(key), [&](shard& here) {
        here.waiters.forget(key.text, gone);
        return true;
      });
    } catch (const std::exception&) {
      // The shard is lost, and with it what it would have forgotten; or memory has run out, and it
      // forgets the target when the list has an element, which the target refuses.
    }
  }
}

// take_pop shows one target to the shard of each name, waits if it must, and has all forget it.
pop_outcome connection::take_pop(argument_list names, pop_end end, smarm::deadline until) {
  auto [tx, rx] = smarm::channel<pop_outcome>(1);
  const auto target = std::make_shared<blocked_pop>(std::move(tx));
  // However this ends, for lack of memory too: the target is closed, for a shard must not offer to
  // one that has gone, and after that the shards forget it.
  std::vector<key_ref> waiting;
  waiting.reserve(names.size());
  const auto forget = [&](const blocked_pop* gone) { forget_pop(waiting, gone); };
  const std::unique_ptr<blocked_pop, decltype(forget)> forgetting(target.get(), forget);
  const auto refuse = [](blocked_pop* gone) { static_cast<void>(gone->close()); };
  const std::unique_ptr<blocked_pop, decltype(refuse)> refusing(target.get(), refuse);
  using outcome = waiter_registry::outcome;
  outcome last = outcome::waiting;
  bool lost = false;
  for (const std::string_view name : names) {
    const key_ref key(name);
    try {
      last = ask_shard(server_.shard_of(key), [&](shard& here) {
        return here.waiters.pop_or_wait(here.store, key, here.now_ms, end, target);
      });
    } catch (const shard_lost&) {
      lost = true;
    }
    if (lost || last != outcome::waiting) break;
    waiting.push_back(key);
  }
  pop_outcome got;
  if (!lost && last == outcome::waiting) {
    got = wait_for_pop(rx, target, until);
  } else if (!target->close()) {
    got = receive_outcome(rx);  // served at once, or meanwhile by a shard asked before
  } else {
    got.lost = lost;
    got.wrong_type = last == outcome::wrong_type;
  }
  return got;
}

// wait_for_pop waits for an element, the deadline, or the client's end.
pop_outcome connection::wait_for_pop(smarm::receiver<pop_outcome>& outcomes,
                                     const std::shared_ptr<blocked_pop>& target,
                                     smarm::deadline until) {
  write_out();  // the replies to what came before must not wait
  server_.clients().set_blocked(*client_, target);
  auto watcher = smarm::spawn({.name = "hangup watch"}, [fd = client_->stream.native_handle(),
                                                         target] { watch_hangup(fd, *target); });
  // However the wait ends: the watcher looks at a descriptor that may soon be another's.
  const auto settle = [this, &watcher](client* whose) {
    const smarm::stop_shield shield;
    watcher.request_stop();
    static_cast<void>(watcher.join());
    server_.clients().set_blocked(*whose, nullptr);
  };
  const std::unique_ptr<client, decltype(settle)> settling(client_.get(), settle);
  auto got = outcomes.recv_until(until);
  if (got) return std::move(*got);
  if (got.error() == smarm::recv_error::closed) return {.lost = true};
  // Out of time. If a shard was faster, its element is here in a moment, and must be taken.
  return target->close() ? pop_outcome{} : receive_outcome(outcomes);
}

// start_pusher hands the writing side of the stream to an actor of its own, for good.
void connection::start_pusher() {
  if (subscriber_ != nullptr) return;
  write_out();
  auto added = std::make_shared<subscriber>(client_, server_.clients());
  // Until it is this connection's, which then sees to it at its end: where the start is cut short,
  // or goes wrong, a pusher that may be there all the same must not wait for ever.
  const auto finish = [](subscriber* nobodys) {
    const smarm::stop_shield shield;
    nobodys->queue.finish();
  };
  std::unique_ptr<subscriber, decltype(finish)> finishing(added.get(), finish);
  const auto push = [added](smarm::starting& me) {
    me.ready();
    added->queue.push();
  };
  const auto started = smarm::supervisor_ref(tree::pubsub)
                           .start_dynamic([push, name = "pusher " + std::to_string(client_->id)] {
                             return smarm::start_link({.name = name}, push);
                           });
  if (!started) throw std::runtime_error("no pusher: " + smarm::to_string(started.error()));
  added->pusher = *started;
  pusher_ = smarm::monitor(*started);
  subscriber_ = std::move(added);
  static_cast<void>(finishing.release());
}

void connection::subscribe(argument_list arguments, reply_writer) {
  start_pusher();
  write_out();
  const bool channel = equals_caseless(arguments[0], "subscribe");
  for (const std::string_view name : arguments.subspan(1)) {
    server_.hub().subscribe(*subscriber_,
                            channel ? pubsub_hub::kind::channel : pubsub_hub::kind::pattern, name,
                            server_.config().outbox_bytes_max());
  }
}

void connection::unsubscribe(argument_list arguments, reply_writer reply) {
  const bool channel = equals_caseless(arguments[0], "unsubscribe");
  if (subscriber_ == nullptr) {
    return append_unsubscribed(reply, channel ? "unsubscribe" : "punsubscribe",
                               arguments.subspan(1));
  }
  write_out();
  server_.hub().unsubscribe(*subscriber_,
                            channel ? pubsub_hub::kind::channel : pubsub_hub::kind::pattern,
                            arguments.subspan(1), server_.config().outbox_bytes_max());
}

void connection::publish(argument_list arguments, reply_writer reply) {
  const std::size_t reached =
      server_.hub().publish(arguments[1], arguments[2], server_.config().outbox_bytes_max());
  reply.integer(static_cast<std::int64_t>(reached));
}

void connection::pubsub(argument_list arguments, reply_writer reply) {
  const std::string_view verb = arguments[1];
  const argument_list rest = arguments.subspan(2);
  if (equals_caseless(verb, "channels") && rest.size() <= 1) {
    const auto names = server_.hub().channels(rest.empty() ? "*" : rest[0]);
    reply.array_header(names.size());
    for (const std::string& name : names) reply.bulk(name);
  } else if (equals_caseless(verb, "numsub")) {
    reply.array_header(rest.size() * 2);
    for (const std::string_view name : rest) {
      reply.bulk(name);
      reply.integer(static_cast<std::int64_t>(server_.hub().subscriber_count(name)));
    }
  } else if (equals_caseless(verb, "numpat") && rest.empty()) {
    reply.integer(static_cast<std::int64_t>(server_.hub().pattern_count()));
  } else if (equals_caseless(verb, "help") && rest.empty()) {
    reply.array_header(4);
    reply.simple("PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    reply.simple("CHANNELS [<pattern>]");
    reply.simple("NUMPAT");
    reply.simple("NUMSUB [<channel> ...]");
  } else {
    reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                std::string(verb.substr(0, 128)) + "'. Try PUBSUB HELP.");
  }
}

}  // namespace sider
