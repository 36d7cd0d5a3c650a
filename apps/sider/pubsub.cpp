// The hub and the outboxes; see pubsub.hpp.
#include "pubsub.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/this_actor.hpp>

#include "glob.hpp"
#include "release.hpp"

namespace sider {

using smarm::detail::relaxed;

namespace {

// A subscriber that takes nothing for so long while there is something for it is given up.
constexpr auto push_timeout = std::chrono::seconds(60);

// What a pusher keeps to itself while there is nothing to push.
constexpr std::size_t batch_kept_max = std::size_t{4} << 10;

// update_counts shows the numbers of subscriptions to CLIENT LIST.
void update_counts(subscriber& who) {
  // Relaxed: two numbers for display, each by itself.
  who.whose->channels.store(static_cast<std::uint32_t>(who.channels.size()), relaxed);
  who.whose->patterns.store(static_cast<std::uint32_t>(who.patterns.size()), relaxed);
}

}  // namespace

void outbox::append(std::string_view text, std::size_t bytes_max) {
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  if (pending_.size() + text.size() > bytes_max) {
    broken_ = true;
    release(pending_);
    clients_.close(*owner_);
  } else {
    pending_ += text;
  }
  changed_.notify_one();
}

void outbox::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_one();
}

void outbox::panic() {
  const std::lock_guard lock(mutex_);
  panic_due_ = true;
  changed_.notify_one();
}

void outbox::push() {
  const auto break_off = [](outbox* from) {
    const smarm::stop_shield shield;
    from->break_off();
  };
  const std::unique_ptr<outbox, decltype(break_off)> breaking_off(this, break_off);
  std::string batch;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !pending_.empty() || finished_ || broken_ || panic_due_; });
      if (panic_due_) throw std::runtime_error("DEBUG PANIC");
      if (broken_ || pending_.empty()) return;
      batch = std::exchange(pending_, {});
    }
    if (!owner_->stream.write_all(batch, smarm::deadline(push_timeout))) return;
    clear_within(batch, batch_kept_max);  // for the next message may be long in coming
  }
}

void outbox::break_off() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    release(pending_);
  }
  clients_.close(*owner_);  // wakes the connection, which may wait for a command
}

void pubsub_hub::subscribe(subscriber& who, kind what, std::string_view name,
                           std::size_t bytes_max) {
  const smarm::stop_shield whole;
  const bool is_channel = what == kind::channel;
  const std::lock_guard lock(mutex_);
  const auto [place, added] = (is_channel ? who.channels : who.patterns).emplace(name);
  if (added) (is_channel ? channels_ : patterns_)[*place].push_back(&who);
  update_counts(who);
  who.queue.append(confirmation(is_channel ? "subscribe" : "psubscribe", &*place, who), bytes_max);
}

void pubsub_hub::unsubscribe(subscriber& who, kind what, argument_list names,
                             std::size_t bytes_max) {
  const smarm::stop_shield whole;
  const bool is_channel = what == kind::channel;
  const std::string_view verb = is_channel ? "unsubscribe" : "punsubscribe";
  const std::lock_guard lock(mutex_);
  auto& mine = is_channel ? who.channels : who.patterns;
  std::vector<std::string> leaving(names.begin(), names.end());
  if (names.empty()) leaving.assign(mine.begin(), mine.end());
  if (leaving.empty()) who.queue.append(confirmation(verb, nullptr, who), bytes_max);
  for (const std::string& name : leaving) {
    if (mine.erase(name) > 0) leave(is_channel ? channels_ : patterns_, name, who);
    who.queue.append(confirmation(verb, &name, who), bytes_max);
  }
  update_counts(who);
}

void pubsub_hub::forget(subscriber& who) {
  const std::lock_guard lock(mutex_);
  for (const std::string& name : who.channels) leave(channels_, name, who);
  for (const std::string& name : who.patterns) leave(patterns_, name, who);
  who.channels.clear();
  who.patterns.clear();
  update_counts(who);
}

std::size_t pubsub_hub::publish(std::string_view channel, std::string_view message,
                                std::size_t bytes_max) {
  const smarm::stop_shield whole;
  std::size_t reached = 0;
  const std::lock_guard lock(mutex_);
  if (const auto found = channels_.find(channel); found != channels_.end()) {
    std::string text;
    reply_writer writer(text);
    writer.array_header(3);
    writer.bulk("message");
    writer.bulk(channel);
    writer.bulk(message);
    for (subscriber* each : found->second) each->queue.append(text, bytes_max);
    reached += found->second.size();
  }
  for (const auto& [pattern, listeners] : patterns_) {
    if (!glob_matches(pattern, channel)) continue;
    std::string text;
    reply_writer writer(text);
    writer.array_header(4);
    writer.bulk("pmessage");
    writer.bulk(pattern);
    writer.bulk(channel);
    writer.bulk(message);
    for (subscriber* each : listeners) each->queue.append(text, bytes_max);
    reached += listeners.size();
  }
  return reached;
}

std::vector<std::string> pubsub_hub::channels(std::string_view pattern) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (const auto& [name, listeners] : channels_) {
    if (glob_matches(pattern, name)) found.push_back(name);
  }
  return found;
}

std::size_t pubsub_hub::subscriber_count(std::string_view channel) {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(channel);
  return found == channels_.end() ? 0 : found->second.size();
}

std::size_t pubsub_hub::pattern_count() {
  const std::lock_guard lock(mutex_);
  return patterns_.size();
}

std::map<std::uint64_t, subscriber*> pubsub_hub::by_client() const {
  std::map<std::uint64_t, subscriber*> found;
  for (const directory* each : {&channels_, &patterns_}) {
    for (const auto& [name, listeners] : *each) {
      for (subscriber* who : listeners) found.emplace(who->whose->id, who);
    }
  }
  return found;
}

void pubsub_hub::list_actors(std::vector<tree_actor>& into) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, who] : by_client()) {
    into.push_back({"pusher " + std::to_string(id), who->pusher});
  }
}

bool pubsub_hub::panic(std::uint64_t client_id) {
  const std::lock_guard lock(mutex_);
  const auto all = by_client();
  const auto found = all.find(client_id);
  if (found == all.end()) return false;
  found->second->queue.panic();
  return true;
}

void pubsub_hub::leave(directory& from, std::string_view name, const subscriber& who) {
  const auto found = from.find(name);
  if (found == from.end()) return;
  std::erase(found->second, &who);
  if (found->second.empty()) from.erase(found);
}

std::string pubsub_hub::confirmation(std::string_view verb, const std::string* name,
                                     const subscriber& who) {
  std::string text;
  reply_writer writer(text);
  writer.array_header(3);
  writer.bulk(verb);
  if (name == nullptr) {
    writer.null_bulk();
  } else {
    writer.bulk(*name);
  }
  writer.integer(static_cast<std::int64_t>(who.channels.size() + who.patterns.size()));
  return text;
}

void append_unsubscribed(reply_writer reply, std::string_view verb, argument_list names) {
  for (std::size_t i = 0; i < std::max<std::size_t>(names.size(), 1); ++i) {
    reply.array_header(3);
    reply.bulk(verb);
    if (names.empty()) {
      reply.null_bulk();
    } else {
      reply.bulk(names[i]);
    }
    reply.integer(0);
  }
}

}  // namespace sider
