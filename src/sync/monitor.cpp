// A monitor is an exit hook that carries everything it needs to deliver its down.
//
// Invariants
//   1. The down is delivered once or never: by on_exit, which the actor's exit calls once, or by
//      monitor itself where there was no such actor. A demonitor that took the hook off the actor
//      is the one case of never.
//   2. What a delivery needs of memory is had when the hook is made.
// Threads: on_exit runs on the scheduler of the actor that ended; the rest anywhere. The exit and
// demonitor agree on who has the hook by its place on the actor's slot (sched/exit_hook.hpp), so
// nothing here is locked.
#include <new>
#include <utility>

#include <smarm/monitor.hpp>

#include "base/assert.hpp"
#include "sched/exit_hook.hpp"
#include "sched/wait_reason.hpp"
#include "sync/channel_core.hpp"
#include "sync/monitor_hook.hpp"

namespace smarm {

namespace detail {

namespace {

class oneshot_hook final : public monitor_hook {
 public:
  oneshot_hook(pid target, oneshot_sender<down> into) noexcept
      : monitor_hook(target), into_(std::move(into)) {}

 private:
  void deliver(down& news) noexcept override {
    // Whoever dropped the handle hears nothing.
    [[maybe_unused]] const auto sent = into_.send(std::move(news));
  }
  void abandon() noexcept override { into_.close(); }

  oneshot_sender<down> into_;
};

class channel_hook final : public monitor_hook {
 public:
  channel_hook(pid target, const sender<down>& into)
      : monitor_hook(target), into_(into), cell_(core().allocate_cell()) {}
  ~channel_hook() override { abandon(); }

 private:
  [[nodiscard]] channel_core& core() const noexcept { return *sender_access::core(into_); }

  void deliver(down& news) noexcept override {
    void* const cell = std::exchange(cell_, nullptr);
    down* const value = ::new (cell) down(std::move(news));
    if (!core().append(cell)) {  // the receiver is gone
      std::destroy_at(value);
      core().free_cell(cell);
    }
    into_.close();
  }
  void abandon() noexcept override {
    if (cell_ != nullptr) core().free_cell(std::exchange(cell_, nullptr));
    into_.close();
  }

  sender<down> into_;
  void* cell_;  // kept for the down
};

}  // namespace

}  // namespace detail

monitor_ref::~monitor_ref() {
  if (hook_ != nullptr) hook_->drop_reference();
}

monitor_ref& monitor_ref::operator=(monitor_ref&& other) noexcept {
  if (this != &other) {
    detail::monitor_hook* const old = std::exchange(hook_, std::exchange(other.hook_, nullptr));
    if (old != nullptr) old->drop_reference();
  }
  return *this;
}

pid monitor_ref::target() const {
  if (hook_ == nullptr) detail::throw_empty_endpoint("the monitor");
  return hook_->target();
}

monitor_id monitor_ref::id() const noexcept { return hook_ == nullptr ? 0 : hook_->id(); }

bool monitor_ref::demonitor() noexcept {
  if (hook_ == nullptr) return false;
  detail::monitor_hook* const hook = std::exchange(hook_, nullptr);
  const bool taken_off = hook->detach();
  hook->drop_reference();
  return taken_off;
}

bool monitor_ref::demonitor_and_flush() noexcept {
  if (hook_ == nullptr) return false;
  detail::monitor_hook* const hook = std::exchange(hook_, nullptr);
  const bool taken_off = hook->detach();
  if (!taken_off) hook->flush();
  hook->drop_reference();
  return taken_off;
}

monitor_handle& monitor_handle::operator=(monitor_handle&& other) noexcept {
  if (this != &other) {
    (void)ref_.demonitor();
    ref_ = std::move(other.ref_);
    rx_ = std::move(other.rx_);
  }
  return *this;
}

down monitor_handle::recv() {
  auto news = recv_until(deadline::never());
  SMARM_ASSERT(news.has_value(), "a monitor without a deadline ends with a down", &rx_);
  return std::move(*news);
}

std::expected<down, recv_error> monitor_handle::recv_until(deadline until) {
  detail::oneshot_core& core = rx_.ref_.require();
  auto news = rx_.take(core, detail::oneshot_receive(core, until, detail::wait_reason::monitor));
  if (news) ref_ = {};
  return news;
}

std::expected<down, recv_error> monitor_handle::try_recv() {
  auto news = rx_.try_recv();
  if (news) ref_ = {};
  return news;
}

monitor_handle monitor(pid who) {
  auto [tx, rx] = oneshot<down>();
  auto* const hook = new detail::oneshot_hook(who, std::move(tx));
  monitor_ref ref(hook);
  hook->attach();
  return monitor_handle(std::move(ref), std::move(rx));
}

monitor_ref monitor(pid who, const sender<down>& into) {
  if (into.capacity() != 0) {
    throw misuse("monitor: the channel is bounded; the end of an actor cannot wait for room");
  }
  auto* const hook = new detail::channel_hook(who, into);
  monitor_ref ref(hook);
  hook->attach();
  return ref;
}

}  // namespace smarm
