// Clients and their registry; see client.hpp.
#include "client.hpp"

#include <sys/socket.h>

#include <mutex>
#include <utility>

#include "base/assert.hpp"
#include "shard.hpp"

namespace sider {

using smarm::detail::relaxed;

namespace {

std::string name_of(const smarm::io_result<smarm::tcp_address>& address) {
  return address ? smarm::to_string(*address) : "?:0";
}

}  // namespace

client_stream::client_stream(smarm::tcp_stream connected)
    : peer_name_(name_of(connected.peer_address())),
      local_name_(name_of(connected.local_address())),
      stream_(std::move(connected)) {}

client_stream::client_stream(smarm::unix_stream connected)
    : peer_name_("unix:0"), local_name_("unix:0"), stream_(std::move(connected)) {}

void client_stream::shut_reading() noexcept {
  // Does not block. The caller holds the registry's lock, under which alone a stream is closed
  // while its client is registered, so the number is still this stream's.
  if (stream_.is_open()) ::shutdown(native_handle(), SHUT_RD);
}

bool blocked_pop::offer(popped& found) {
  if (!close()) return false;
  const bool sent =
      into_.try_send(pop_outcome{.served = true, .found = std::move(found)}).has_value();
  SMARM_ASSERT(sent, "a target is closed before its channel is");
  return true;
}

client::client(client_stream connected, std::uint64_t number)
    : id(number),
      stream(std::move(connected)),
      connected_ms(unix_time_ms()),
      active_ms(connected_ms) {}

std::shared_ptr<client> client_registry::add(client_stream& stream, std::size_t clients_max) {
  const std::lock_guard lock(mutex_);
  if (draining_ || clients_.size() >= clients_max) return nullptr;
  auto added = std::make_shared<client>(std::move(stream), next_id_++);
  clients_.emplace(added->id, added);
  return added;
}

std::shared_ptr<client> client_registry::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second;
}

void client_registry::remove(const client& gone) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(gone.id);
  if (found == clients_.end()) return;
  found->second->stream.close();  // whoever still holds the client does not keep its descriptor
  clients_.erase(found);
  if (draining_ && clients_.empty()) drained_();
}

std::size_t client_registry::size() {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

std::uint64_t client_registry::accepted() {
  const std::lock_guard lock(mutex_);
  return next_id_ - 1;
}

std::string client_registry::name_of(const client& whose) {
  const std::lock_guard lock(mutex_);
  return whose.name;
}

void client_registry::set_name(client& whose, std::string_view name) {
  const std::lock_guard lock(mutex_);
  whose.name = name;
}

void client_registry::set_actor(client& whose, smarm::pid actor) {
  const std::lock_guard lock(mutex_);
  whose.actor = actor;
}

void client_registry::list_actors(std::vector<tree_actor>& into) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, each] : clients_) {
    if (each->actor.is_valid()) into.push_back({"client " + std::to_string(id), each->actor});
  }
}

void client_registry::set_blocked(client& whose, std::shared_ptr<blocked_pop> target) {
  const std::lock_guard lock(mutex_);
  if (draining_ && target != nullptr) target->cancel();
  whose.blocked = std::move(target);
}

std::string client_registry::describe(const std::function<bool(const client&)>& wanted) {
  const std::int64_t now_ms = unix_time_ms();
  const std::lock_guard lock(mutex_);
  std::string lines;
  for (const auto& [id, each] : clients_) {
    if (!wanted(*each)) continue;
    const auto channels = each->channels.load(relaxed);      // each number stands for itself
    const auto patterns = each->patterns.load(relaxed);      // likewise
    const command* last = each->last_command.load(relaxed);  // points into a constant table
    const std::int64_t idle_ms = now_ms - each->active_ms.load(relaxed);  // a number by itself
    const bool subscribed = channels + patterns > 0;
    lines += "id=" + std::to_string(id) + " addr=" + each->stream.peer_name() +
             " laddr=" + each->stream.local_name() +
             " fd=" + std::to_string(each->stream.native_handle()) + " name=" + each->name +
             " age=" + std::to_string((now_ms - each->connected_ms) / 1000) +
             " idle=" + std::to_string(idle_ms / 1000) + " flags=" +
             (each->blocked ? "b"
              : subscribed  ? "P"
                            : "N") +
             " db=0 sub=" + std::to_string(channels) + " psub=" + std::to_string(patterns) +
             " ssub=0 multi=-1 cmd=" + std::string(last == nullptr ? "NULL" : last->name) +
             " user=default redir=-1 resp=2\n";
  }
  return lines;
}

void client_registry::close(client& whose) {
  const std::lock_guard lock(mutex_);
  whose.stream.close();
}

std::size_t client_registry::close_if(const std::function<bool(const client&)>& wanted) {
  const std::lock_guard lock(mutex_);
  std::size_t closed = 0;
  for (const auto& [id, each] : clients_) {
    if (!wanted(*each)) continue;
    each->stream.close();
    if (each->blocked != nullptr) each->blocked->cancel();
    ++closed;
  }
  return closed;
}

void client_registry::begin_drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (const auto& [id, each] : clients_) {
    each->stream.shut_reading();
    if (each->blocked != nullptr) each->blocked->cancel();
  }
  if (clients_.empty()) drained_();
}

}  // namespace sider
