// Inboxes and their leases; see shard_inbox.hpp. Locks are taken under a shield, since most of this
// runs at the end of an actor, where a stop must not cut it short.
#include "shard_inbox.hpp"

#include <mutex>
#include <stdexcept>
#include <string>

#include <smarm/semaphore.hpp>
#include <smarm/this_actor.hpp>

namespace sider {

namespace {

// A wake_task has the shard take a letter, and tells when one that took it, or was to, is through.
class wake_task final : public shard_task {
 public:
  void run(shard&) override { done_.release(); }
  void abandon(std::size_t) noexcept override { done_.release(); }
  void wait() { done_.acquire(); }

 private:
  smarm::semaphore done_{0};
};

}  // namespace

shard_inbox::shard_inbox(std::size_t index) : index_(index) {
  auto [tx, rx] = smarm::channel<shard_letter>();
  sender_ = std::move(tx);
  letters_ = std::move(rx);
}

void shard_inbox::close() noexcept {
  smarm::receiver<shard_letter> queued;  // destroyed behind the lock
  const smarm::stop_shield shield;
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  queued = std::move(letters_);
}

void shard_inbox::panic_next() noexcept {
  // Relaxed: a letter that is sent afterwards has whoever takes it see the count.
  panics_due_.fetch_add(1, smarm::detail::relaxed);
}

void shard_inbox::panic() {
  const smarm::stop_shield shield;
  const auto wake = std::make_shared<wake_task>();
  panic_next();
  send(wake);
  wake->wait();
}

bool shard_inbox::take_panic() noexcept {
  // Relaxed: who serves is alone in taking; others only add, before the letter that is for it.
  if (panics_due_.load(smarm::detail::relaxed) == 0) return false;
  panics_due_.fetch_sub(1, smarm::detail::relaxed);
  return true;
}

shard_inbox::lease::lease(shard_inbox& from) : from_(from) {
  const smarm::stop_shield shield;
  const std::lock_guard lock(from.mutex_);
  if (!from.letters_) {
    throw std::logic_error("shard " + std::to_string(from.index_) +
                           (from.is_closed_ ? " is closed" : " is served by another actor"));
  }
  letters_ = std::move(from.letters_);
}

shard_inbox::lease::~lease() {
  smarm::receiver<shard_letter> queued;  // of a closed inbox; destroyed behind the lock
  const smarm::stop_shield shield;
  const std::lock_guard lock(from_.mutex_);
  (from_.is_closed_ ? queued : from_.letters_) = std::move(letters_);
}

}  // namespace sider
