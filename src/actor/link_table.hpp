// link_table is the set of actors to which one actor is linked: a chained hash table of nodes that
// others allocate, so that an insert under a lock can neither fail nor wait.
//
// A half_link lies in the place of the exit_signal that it may become: its envelope is had when the
// link is made, so that the signal arrives whatever the state of memory.
// Threads: none of its own; the lock of the slot guards it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <smarm/detail/envelope.hpp>
#include <smarm/link.hpp>
#include <smarm/pid.hpp>

namespace smarm::detail {

struct half_link {
  pid peer;
  half_link* next = nullptr;
  envelope* home = nullptr;  // the envelope in whose place it lies

  // make throws std::bad_alloc.
  [[nodiscard]] static half_link* make(pid peer) {
    envelope* const sealed = envelope_allocate(message_type_of<exit_signal>);
    return ::new (payload_of(*sealed)) half_link{peer, nullptr, sealed};
  }
  // into_signal gives the envelope with the signal in it; the half is gone.
  [[nodiscard]] static envelope& into_signal(half_link& half, const exit_reason& why) noexcept {
    envelope& sealed = *half.home;
    const pid from = half.peer;
    ::new (payload_of(sealed)) exit_signal{from, why};
    return sealed;
  }
  static void free(half_link* half) noexcept {
    if (half != nullptr) envelope_free(*half->home);
  }
};
static_assert(sizeof(half_link) <= sizeof(exit_signal) &&
              std::is_trivially_destructible_v<half_link>);

struct half_link_freer {
  void operator()(half_link* half) const noexcept { half_link::free(half); }
};
using owned_half_link = std::unique_ptr<half_link, half_link_freer>;

class link_table {
 public:
  using buckets = std::unique_ptr<half_link*[]>;

  link_table() = default;
  link_table(const link_table&) = delete;
  link_table& operator=(const link_table&) = delete;
  ~link_table() {
    while (half_link* const half = pop()) half_link::free(half);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] half_link* find(pid peer) const noexcept {
    half_link* at = *bucket_of(peer);
    while (at != nullptr && at->peer != peer) at = at->next;
    return at;
  }
  // insert takes the half over. Precondition: no such peer is there.
  void insert(half_link& half) noexcept {
    half_link** const bucket = bucket_of(half.peer);
    half.next = *bucket;
    *bucket = &half;
    ++size_;
  }
  // erase takes the half of that peer out and gives it to the caller, or null.
  [[nodiscard]] half_link* erase(pid peer) noexcept {
    half_link** at = bucket_of(peer);
    while (*at != nullptr && (*at)->peer != peer) at = &(*at)->next;
    half_link* const found = *at;
    if (found != nullptr) {
      *at = found->next;
      --size_;
    }
    return found;
  }
  // pop takes any one out; null: none is left.
  [[nodiscard]] half_link* pop() noexcept {
    for (; size_ > 0; ++first_used_) {
      half_link*& bucket = data()[first_used_];
      if (bucket == nullptr) continue;
      --size_;
      return std::exchange(bucket, bucket->next);
    }
    return nullptr;
  }

  // wanted_buckets is how many it should have by now; 0: it has enough. grow takes a zeroed array
  // of that many, unless somebody else was faster, and gives back what is to be freed outside the
  // lock.
  [[nodiscard]] std::size_t wanted_buckets() const noexcept {
    return size_ > 2 * count_ ? 4 * count_ : 0;
  }
  [[nodiscard]] buckets grow(buckets fresh, std::size_t count) noexcept {
    if (count <= count_) return fresh;
    half_link** const old = data();
    for (std::size_t i = 0; i < count_; ++i) {
      while (half_link* const half = old[i]) {
        old[i] = half->next;
        half_link*& to = fresh[place_of(half->peer, count)];
        half->next = to;
        to = half;
      }
    }
    count_ = count;
    return std::exchange(more_, std::move(fresh));
  }

  void swap(link_table& other) noexcept {
    std::swap(few_, other.few_);
    std::swap(more_, other.more_);
    std::swap(count_, other.count_);
    std::swap(size_, other.size_);
    std::swap(first_used_, other.first_used_);
  }

 private:
  static constexpr std::size_t few = 4;

  // Slot indices count up, so they spread by themselves; count is a power of two.
  [[nodiscard]] static std::size_t place_of(pid peer, std::size_t count) noexcept {
    return peer.index & (count - 1);
  }
  [[nodiscard]] half_link** data() noexcept { return more_ != nullptr ? more_.get() : few_.data(); }
  [[nodiscard]] half_link* const* data() const noexcept {
    return more_ != nullptr ? more_.get() : few_.data();
  }
  [[nodiscard]] half_link** bucket_of(pid peer) noexcept { return data() + place_of(peer, count_); }
  [[nodiscard]] half_link* const* bucket_of(pid peer) const noexcept {
    return data() + place_of(peer, count_);
  }

  std::array<half_link*, few> few_{};
  buckets more_;
  std::size_t count_ = few;
  std::size_t size_ = 0;
  std::size_t first_used_ = 0;  // of pop, which is called when nothing is inserted any more
};

}  // namespace smarm::detail
