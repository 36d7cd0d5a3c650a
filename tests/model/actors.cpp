// The waits of sched/wait.hpp for actors that are model threads; see actors.hpp. Each function does
// what its namesake in park.cpp does, in the same order, but for the switch.
#include "tests/model/actors.hpp"

#include <array>
#include <exception>

#include <smarm/config.hpp>
#include <smarm/this_actor.hpp>

#include "base/assert.hpp"
#include "sched/actor_extension.hpp"
#include "sched/driver.hpp"
#include "sched/exit_hook_list.hpp"
#include "sched/lookup.hpp"

namespace smarm::under_model {

namespace {

// What the running model knows of its threads. A model's stage sets it up anew in each execution.
struct cast {
  std::array<actor*, model::threads_max> running{};
  std::array<actor*, 4> known{};
  void (*deliver)(actor& runnable) = nullptr;
  detail::timers* wheel = nullptr;
  detail::atomic<std::uint32_t>* armed = nullptr;  // 1: a timer is armed; 2: none will be
};
cast the_cast;

// Made before any run, so that it is no run's.
// One scheduler: then nobody spins for a lock, which shows nothing that the first look does not.
const config settings{.schedulers = 1, .blocking_threads_max = 1};

std::size_t this_thread() noexcept { return model::engine::current()->thread(); }

}  // namespace

actor::actor() {
  index = 0;
  generation = 1;
  state.publish_queued();
}

void actor::enqueue() noexcept {
  if (the_cast.deliver != nullptr) return the_cast.deliver(*this);
  tokens.fetch_add(1, detail::release);
}

void actor::resume() noexcept {
  const std::uint32_t before = taken++;
  tokens.await([before](std::uint32_t now) { return now > before; }, detail::acquire);
  state.try_claim();
}

actor* current() noexcept { return the_cast.running[this_thread()]; }
void run_as(actor* who) noexcept { the_cast.running[this_thread()] = who; }

bool stop(actor& who, std::uint32_t generation) noexcept {
  const auto result = who.state.request_stop(generation);
  if (result == detail::slot_state::stop_result::must_enqueue) who.enqueue();
  return result != detail::slot_state::stop_result::no_such_actor;
}

stage::stage(bool timed) {
  the_cast = {};
  if (!timed) return;
  wheel_ = std::make_unique<detail::timers>();
  the_cast.wheel = wheel_.get();
  the_cast.armed = new detail::atomic<std::uint32_t>(0);
}

stage::~stage() {
  delete the_cast.armed;
  the_cast = {};
}

void stage::deliver_by(void (*how)(actor& runnable)) noexcept { the_cast.deliver = how; }

void stage::introduce(actor& who, std::uint32_t number) noexcept {
  who.index = number;
  the_cast.known[number] = &who;
}

void stage::begin(actor& self) noexcept {
  self.state.try_claim();
  the_cast.running[this_thread()] = &self;
}

void stage::end(actor& self) noexcept {
  the_cast.running[this_thread()] = nullptr;
  self.state.set_done();
  if (the_cast.armed != nullptr) the_cast.armed->store(2, detail::relaxed);
}

void stage::settle() noexcept { the_cast.armed->store(2, detail::relaxed); }

void stage::fire_due(std::int64_t at_ns) noexcept {
  const std::uint32_t seen =
      the_cast.armed->await([](std::uint32_t armed) { return armed != 0; }, detail::relaxed);
  if (seen == 2) return;
  model::sleep_until(at_ns);
  wheel_->fire_due(at_ns);
}

}  // namespace smarm::under_model

namespace smarm::detail {

using under_model::actor;

struct wait_access {
  [[nodiscard]] static actor& actor_of(const waker& wait) noexcept {
    return static_cast<actor&>(*reinterpret_cast<slot*>(wait.target_));
  }
  [[nodiscard]] static std::uint64_t ticket_of(const waker& wait) noexcept { return wait.ticket_; }
};

namespace {

bool is_unwinding() noexcept { return std::uncaught_exceptions() != 0; }

void throw_stop() {
  if (!is_unwinding()) throw forced_stop{};
}

// As scheduler::park_running, with finish_previous: the actor's own thread does both.
void park_running(actor& self) noexcept {
  if (!self.state.consume_notification()) {
    if (self.state.park_return() == slot_state::park_end::must_enqueue) {
      self.state.try_claim();
    } else {
      self.resume();
    }
  }
  self.wait_opened = false;
  self.reason = wait_reason::none;
}

wait_outcome park_actor(actor& self, const waker& wait, deadline until) {
  if (until.is_never()) {
    park_running(self);
    return wait_outcome::woken;
  }
  if (until.has_passed()) return wait_outcome::timed_out;
  timers& wheel = *under_model::the_cast.wheel;
  timer alarm(until.ns(), wait);
  wheel.insert(alarm);
  under_model::the_cast.armed->store(1, relaxed);
  park_running(self);
  return wheel.cancel(alarm) ? wait_outcome::woken : wait_outcome::timed_out;
}

}  // namespace

void waker::wake() const noexcept {
  if (!*this) return;
  actor& target = wait_access::actor_of(*this);
  const std::uint64_t ticket = wait_access::ticket_of(*this);
  if (!target.state.is_open(ticket)) return;
  if (target.state.unpark(ticket) != slot_state::unparked::must_enqueue) return;
  target.enqueue();
}

void waker::wake_last() const noexcept { wake(); }

waker begin_wait() noexcept {
  actor* const self = under_model::current();
  SMARM_ASSERT(self != nullptr, "in a model only actors wait", self);
  const std::uint64_t ticket = self->state.begin_wait(self->wait_opened);
  self->wait_opened = true;
  return {reinterpret_cast<std::uintptr_t>(static_cast<slot*>(self)), ticket};
}

wait_outcome park(const waker& wait, wait_reason reason, deadline until) {
  actor& self = wait_access::actor_of(wait);
  SMARM_ASSERT(under_model::current() == &self, "an actor parks on its own wait", self.index);
  self.reason = reason;
  if (is_unwinding()) {
    self.add_shield();
    const wait_outcome outcome = park_actor(self, wait, until);
    self.drop_shield();
    return outcome;
  }
  if (self.state.stop_is_pending()) throw_stop();
  const wait_outcome outcome = park_actor(self, wait, until);
  if (self.state.stop_is_pending()) throw_stop();
  return outcome;
}

wait_outcome park_through_stop(const waker& wait, wait_reason reason, deadline until) noexcept {
  actor& self = wait_access::actor_of(wait);
  self.reason = reason;
  self.add_shield();
  const wait_outcome outcome = park_actor(self, wait, until);
  self.drop_shield();
  return outcome;
}

slot* slot_of_self() noexcept { return under_model::current(); }

actor_extension* extension_of_self() noexcept {
  return under_model::current()->extension.load(acquire);
}

// An actor that ends is a thread of its own: nobody waits for it to give way.
void give_way_at_end() noexcept {}

void stop_point() {
  if (actor* const self = under_model::current()) {
    if (self->state.stop_is_pending()) throw_stop();
  }
}

// An actor of a model is found by its number; see stage::introduce.
slot* find_slot(pid who) noexcept {
  actor* const found = under_model::the_cast.known[who.index];
  return found != nullptr && found->state.is_live(who.generation) ? found : nullptr;
}

bool stop_slot(slot& target, std::uint32_t generation) noexcept {
  return under_model::stop(static_cast<actor&>(target), generation);
}

// Actors have one runtime, of which only the settings are there.
runtime_core* current_runtime() noexcept {
  static char the_runtime = 0;
  return under_model::current() == nullptr ? nullptr
                                           : reinterpret_cast<runtime_core*>(&the_runtime);
}
const config& runtime_config(const runtime_core&) noexcept { return under_model::settings; }

}  // namespace smarm::detail

namespace smarm {

bool is_actor() noexcept { return under_model::current() != nullptr; }

pid self() { return under_model::current()->who(); }

std::expected<void, no_such_actor> request_stop(pid who) noexcept {
  detail::slot* const found = detail::find_slot(who);
  if (found != nullptr && detail::stop_slot(*found, who.generation)) return {};
  return std::unexpected(no_such_actor{who});
}

void yield() { detail::stop_point(); }

}  // namespace smarm
