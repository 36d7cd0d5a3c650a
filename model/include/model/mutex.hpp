// mutex and condition_variable of the model, with the members of those of the standard library.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <source_location>

#include "model/wait_queue.hpp"

namespace model {

class mutex {
  using here = std::source_location;

 public:
  explicit mutex(here where = detail::call_site()) { detail::constructed(this, {}, where); }
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  ~mutex() { detail::destroyed(this); }

  void lock(here where = here::current()) {
    engine& e = detail::inside();
    engine::system_scope scope{&e};
    access a = base(e, event_kind::update, "lock", where);
    const value mine = owner(e);
    const auto is_free = [](value v) { return v.low == 0; };
    const auto take = [mine](value) { return mine; };
    a.success = order::acquire;
    a.accepts = is_free;
    a.modify = take;
    e.perform(a);
  }

  [[nodiscard]] bool try_lock(here where = here::current()) {
    engine& e = detail::inside();
    engine::system_scope scope{&e};
    access a = base(e, event_kind::cas, "try_lock", where);
    a.success = order::acquire;
    a.operand = owner(e);
    return e.perform(a).succeeded;
  }

  void unlock(here where = here::current()) {
    engine& e = detail::inside();
    engine::system_scope scope{&e};
    access a = base(e, event_kind::store, "unlock", where);
    a.success = order::release;
    e.perform(a);
  }

 private:
  [[nodiscard]] access base(engine& e, event_kind kind, const char* what, const here& where) {
    access a;
    a.kind = kind;
    a.site = detail::site_of(where, what);
    a.location = detail::find(e, this, a.site, 0).location;
    return a;
  }
  [[nodiscard]] static value owner(const engine& e) { return {e.thread() + 1, 0}; }

  [[maybe_unused]] char address_ = 0;  // an object of its own address, wherever it lies
};

class condition_variable {
  using here = std::source_location;

 public:
  explicit condition_variable(here where = detail::call_site()) {
    detail::constructed(this, {}, where);
  }
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  ~condition_variable() { detail::destroyed(this); }

  // wait unlocks, sleeps and locks again; it may return for no reason.
  template <class Lock>
  void wait(Lock& lock, here where = here::current()) {
    static_cast<void>(wait_until(lock, never, where));
  }
  template <class Lock, class Predicate>
    requires std::is_invocable_r_v<bool, Predicate>
  void wait(Lock& lock, Predicate holds, here where = here::current()) {
    while (!holds()) wait(lock, where);
  }

  // wait_until gives up at a point of virtual time.
  template <class Lock>
  wait_result wait_until(Lock& lock, std::int64_t deadline, here where = here::current()) {
    engine& e = detail::inside();
    detail::wait_queue queue = queue_of(e, "wait", where);
    {
      engine::system_scope scope{&e};
      queue.enter();
    }
    lock.unlock();
    wait_result how = wait_result::woken;
    {
      engine::system_scope scope{&e};
      how = queue.sleep(deadline, where);
    }
    lock.lock();
    return how;
  }

  void notify_one(here where = here::current()) { notify("notify_one", 1, where); }
  void notify_all(here where = here::current()) { notify("notify_all", threads_max, where); }

 private:
  [[nodiscard]] detail::wait_queue queue_of(engine& e, const char* what, const here& where) {
    engine::system_scope scope{&e};
    const std::uint32_t site = detail::site_of(where, what);
    return {e, detail::find(e, this, site, 0).location, site};
  }

  void notify(const char* what, std::size_t count, const here& where) {
    engine& e = detail::inside();
    detail::wait_queue queue = queue_of(e, what, where);
    engine::system_scope scope{&e};
    site& s = sites.at(detail::site_of(where, what));
    ++s.hits;
    if (s.change != mutation::drop) queue.wake(count);
  }

  [[maybe_unused]] char address_ = 0;
};

}  // namespace model
