// guarded is a value and the mutex that protects it, so that nobody touches one without the other.
//
//   smarm::guarded<std::map<int, int>> table;
//   table.lock()->emplace(1, 2);
#pragma once

#include <concepts>
#include <mutex>
#include <optional>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/mutex.hpp>

namespace smarm {

template <class T>
class guarded {
 public:
  // access is the value with its lock held; the lock goes with it.
  class access {
   public:
    [[nodiscard]] T& operator*() const noexcept { return *value_; }
    [[nodiscard]] T* operator->() const noexcept { return value_; }
    // guard is the lock itself, for a condition_variable.
    [[nodiscard]] std::unique_lock<mutex>& guard() noexcept { return lock_; }

   private:
    friend class guarded;
    access(T& value, std::unique_lock<mutex> lock) noexcept
        : value_(&value), lock_(std::move(lock)) {}

    T* value_;
    std::unique_lock<mutex> lock_;
  };

  template <class... Args>
    requires std::constructible_from<T, Args...>
  explicit guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  // lock waits for the mutex; see mutex::lock. Parks; a stop point.
  [[nodiscard]] access lock() { return access(value_, std::unique_lock(mutex_)); }

  // try_lock returns nothing where lock would park. Never parks; no stop point.
  [[nodiscard]] std::optional<access> try_lock() {
    return held(std::unique_lock(mutex_, std::try_to_lock));
  }

  // try_lock_until gives up at the deadline; otherwise as lock.
  [[nodiscard]] std::optional<access> try_lock_until(deadline until) {
    if (!mutex_.try_lock_until(until)) return std::nullopt;
    return access(value_, std::unique_lock(mutex_, std::adopt_lock));
  }

 private:
  std::optional<access> held(std::unique_lock<mutex> lock) {
    if (!lock.owns_lock()) return std::nullopt;
    return access(value_, std::move(lock));
  }

  mutex mutex_;
  T value_;
};

}  // namespace smarm
