// Exchanges and their pool; see exchange.hpp.
#include "exchange.hpp"

#include <mutex>
#include <new>
#include <utility>

namespace sider {

void exchange::run(shard& here) {
  try {
    work.run_part(here.index, here.store, here.now_ms, [&](key_ref grown) {
      if (!here.waiters.empty()) here.waiters.serve(here.store, grown, here.now_ms);
    });
  } catch (const std::bad_alloc&) {
    failed_.store(true, smarm::detail::relaxed);  // published by the permit
  }
  done.release();
}

void exchange::abandon(std::size_t index) noexcept {
  work.lose_part(index);
  lost_.store(true, smarm::detail::relaxed);  // published by the permit
  done.release();
}

void exchange::settle() {
  if (!lost_.load(smarm::detail::relaxed)) return;  // the permits order it after the stores
  work.answer_lost();
  lost_.store(false, smarm::detail::relaxed);  // no shard has the batch
}

std::shared_ptr<exchange> exchange_pool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      std::shared_ptr<exchange> reused = std::move(kept_.back());
      kept_.pop_back();
      return reused;
    }
  }
  return std::make_shared<exchange>(shard_count_);
}

void exchange_pool::give(std::shared_ptr<exchange> used) {
  used->input.clear();
  used->output.clear();
  used->work.clear();
  const std::size_t held =
      used->input.capacity() + used->output.capacity() + used->work.held_bytes();
  if (held > bytes_kept_max) return;
  const std::lock_guard lock(mutex_);
  if (kept_.size() < kept_max) kept_.push_back(std::move(used));
}

}  // namespace sider
