// stack hands out the memory that fibers run on: guarded stacks, cut from slabs, reused while warm
// and given back to the system some time after a burst.
//
// Invariants
//   1. A stack is handed out to one owner at a time; double release is asserted.
//   2. Below each stack that is handed out lies a guard: the first byte under `low` faults.
//   3. The pool never holds its lock over a system call, and allocates nothing under it.
//   4. What is mapped beyond need shrinks: the pool keeps as many stacks as the recent peak of use,
//      and that target halves each second (decay, which the cold paths call themselves).
// Threads: stack_pool any; stack_cache its owner alone.
// Why slabs: one mapping serves 64 stacks, adjacent slabs join into one, and guards made by
// MADV_GUARD_INSTALL do not split it, so a million stacks fit under the limit of 65,530 mappings.
// Why nothing lies at a stack's low end: a parked actor should cost one page, the top one.
// Why tops are coloured: at a stride of 64 KiB all tops fall into one set of the first-level cache,
// and a ring of 32 switches costs nearly twice as much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/raw_mutex.hpp"

namespace smarm::detail {

// stack_span is the usable memory of one stack. It grows from top() down to low.
struct stack_span {
  std::byte* low = nullptr;
  std::size_t size = 0;

  [[nodiscard]] std::byte* top() const noexcept { return low + size; }
  [[nodiscard]] bool empty() const noexcept { return size == 0; }
};

enum class guard_kind : std::uint8_t {
  guard_marker,  // MADV_GUARD_INSTALL: a mark in the page table, no mapping of its own
  no_access,     // mprotect(PROT_NONE): two more mappings per stack, on any kernel
};

// probe_guard_kind tries a guard marker on a page of its own and says what this kernel has.
[[nodiscard]] guard_kind probe_guard_kind() noexcept;

// nominal_stack_size returns the size that the stack was made with, its guard included.
[[nodiscard]] std::size_t nominal_stack_size(stack_span stack) noexcept;

// guard_size_below returns how many bytes under stack.low are guard.
[[nodiscard]] std::size_t guard_size_below(stack_span stack) noexcept;

inline constexpr std::size_t stack_size_default = std::size_t{64} << 10;
inline constexpr std::size_t stack_size_min = std::size_t{16} << 10;
inline constexpr std::size_t stack_size_max = std::size_t{1} << 30;

// give_back_unused gives the system what memory lies on `running`, on which the caller stands,
// beyond the caller's frame: whole pages, which hold nothing and come back as zeros when they are
// touched. Keeps errno.
void give_back_unused(stack_span running) noexcept;

// stack_pool owns every stack of one runtime.
class stack_pool {
 public:
  // LIMIT: how many stacks one batch call moves.
  static constexpr std::size_t batch_max = 64;

  struct counters {
    std::size_t in_use = 0;        // handed out, those in stack_caches included
    std::size_t cached = 0;        // in the pool, their memory still resident
    std::size_t mapped_bytes = 0;  // address space of all slabs
    std::size_t slabs = 0;
  };

  explicit stack_pool(std::optional<guard_kind> forced_guards = std::nullopt);
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();  // Precondition: every stack was released.

  // acquire returns a stack of `size` bytes, guard included, rounded up to a power of two. Error:
  // invalid_argument beyond stack_size_max, else what the system said when memory ran out.
  [[nodiscard]] std::expected<stack_span, std::error_code> acquire(std::size_t size) noexcept;

  // acquire_batch fills the front of `stacks` and returns how many it got, at least one.
  [[nodiscard]] std::expected<std::size_t, std::error_code> acquire_batch(
      std::size_t size, std::span<stack_span> stacks) noexcept;

  // release takes a stack back. Nobody may stand on it.
  void release(stack_span stack) noexcept;
  void release_batch(std::span<const stack_span> stacks) noexcept;

  // decay gives surplus memory back if the time has come, a bounded amount per call, and returns
  // when it wants to be called next: never_ns while there is no surplus.
  std::int64_t decay(std::int64_t now_ns) noexcept;

  // trim gives back all memory that is not in use, at once.
  void trim() noexcept;

  [[nodiscard]] counters count() const noexcept;
  [[nodiscard]] guard_kind guards() const noexcept { return guards_; }

 private:
  struct slab;
  struct size_class;
  struct reclaimed;

  [[nodiscard]] size_class* class_for(std::size_t size) const noexcept;
  [[nodiscard]] std::size_t take_free(size_class& sizes, std::span<stack_span> stacks,
                                      std::uint64_t& unguarded) noexcept;
  [[nodiscard]] std::error_code add_slab(size_class& sizes) noexcept;
  [[nodiscard]] bool install_guard(stack_span stack) const noexcept;
  [[nodiscard]] slab* find_slab(stack_span stack, const size_class& sizes) const noexcept;
  void put_back(stack_span stack, bool was_used, bool is_guarded) noexcept;
  void collect(size_class& sizes, std::size_t keep_stacks, std::size_t slabs_max,
               reclaimed& out) noexcept;
  void give_back(reclaimed& surplus) noexcept;
  void give_back_slab(slab& gone) noexcept;
  void insert(slab& fresh) noexcept;
  void forget(slab& gone) noexcept;

  static constexpr std::size_t bucket_count = 1024;

  const guard_kind guards_;
  mutable raw_mutex mutex_;
  // All below is protected by mutex_.
  std::unique_ptr<size_class[]> classes_;
  std::unique_ptr<slab*[]> buckets_;  // slabs by address, chained
  // Written under mutex_, read without: a late look only puts the next decay off.
  atomic<std::int64_t> epoch_end_ns_{0};
};

// stack_cache keeps a scheduler's own stacks of the default size at hand: the one released last is
// the one acquired next, still in the processor's cache. It trades with the pool by half its size,
// so that a scheduler that only spawns and another that only ends actors meet in the pool's lock
// once in a while and not each time.
class stack_cache {
 public:
  static constexpr std::size_t capacity = 32;

  explicit stack_cache(stack_pool& pool) noexcept : pool_(pool) {}
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;
  ~stack_cache() { flush(); }

  // acquire returns a stack of the default size; the pool's error if there is none to be had.
  [[nodiscard]] std::expected<stack_span, std::error_code> acquire() noexcept {
    if (count_ == 0) [[unlikely]] {
      if (const std::error_code error = refill()) {
        return std::unexpected(error);
      }
    }
    return stacks_[--count_];
  }

  // take is acquire of what is at hand; false: nothing is.
  [[nodiscard]] bool take(stack_span& out) noexcept {
    if (count_ == 0) return false;
    out = stacks_[--count_];
    return true;
  }

  // release takes back a stack of the default size.
  void release(stack_span stack) noexcept {
    if (count_ == capacity) [[unlikely]] {
      spill();
    }
    stacks_[count_++] = stack;
  }

  // flush hands everything to the pool.
  void flush() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  [[nodiscard]] std::error_code refill() noexcept;
  void spill() noexcept;

  stack_pool& pool_;
  std::size_t count_ = 0;
  stack_span stacks_[capacity];
};

}  // namespace smarm::detail
