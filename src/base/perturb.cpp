// The decisions of perturb.hpp, and the threads that carry them out.
#include "base/perturb.hpp"

#include <cstddef>
#include <iterator>

#ifdef SMARM_STRESS
#include <pthread.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
#endif

namespace smarm::detail {

std::string_view name_of(perturb_point point) noexcept {
  static constexpr std::string_view names[] = {
      "publish", "claim",       "yield",       "park",   "begin_wait", "notified",
      "unpark",  "stop",        "shield",      "end",    "switched",   "schedule",
      "steal",   "queue_push",  "queue_pop",   "census", "wake",       "keeper",
      "watcher", "permit_park", "permit_wake", "verdict"};
  static_assert(std::size(names) == static_cast<std::size_t>(perturb_point::verdict) + 1);
  return names[static_cast<std::size_t>(point)];
}

disturbances::disturbances(std::uint64_t seed, std::string_view thread, std::uint32_t nth) noexcept
    : state_(seed) {
  for (const char letter : thread) {
    state_ = (state_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3;  // FNV-1a
  }
  state_ += std::uint64_t{nth} << 32;
}

// splitmix64: every state is good, and neighbouring ones have nothing in common.
std::uint64_t disturbances::draw() noexcept {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

disturbance disturbances::next() noexcept {
  constexpr std::uint32_t shares[] = {0, 1, 8, 8, 128};  // of 256; the last one for a short while
  if (left_ == 0) {
    const std::uint64_t drawn = draw();
    const std::size_t which = (drawn >> 32) % std::size(shares);
    share_ = shares[which];
    left_ = 1 + static_cast<std::uint32_t>(drawn % (which + 1 == std::size(shares) ? 64 : 512));
  }
  --left_;
  const std::uint64_t drawn = draw();
  if ((drawn & 255) >= share_) return {};
  const auto amount = static_cast<std::uint32_t>(drawn >> 32);
  const auto kind = (drawn >> 8) & 15;
  // Few yields and sleeps: where others compute, each is a preemption of some milliseconds.
  if (kind < 13) return {disturbance::kind::spin, 1 + amount % 1024};
  if (kind < 15) return {disturbance::kind::yield, 0};
  return {disturbance::kind::sleep, 1 + amount % 50};
}

#ifdef SMARM_STRESS

namespace {

std::uint64_t chosen_seed() noexcept {
  if (const char* given = std::getenv("SMARM_STRESS_SEED")) return std::strtoull(given, nullptr, 0);
  return (static_cast<std::uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15) >> 16;
}

constexpr std::size_t threads_max = 1024;  // LIMIT: at a time; those beyond are not disturbed

struct thread_entry {
  atomic<bool> taken{false};  // written by the thread that takes it, and by the same at its end
  disturbances sequence;
  std::uint64_t number = 0;  // decisions so far
  char name[20] = {};
};

class stress {
 public:
  stress() noexcept : seed_(chosen_seed()), traced_(std::getenv("SMARM_STRESS_TRACE") != nullptr) {
    std::fprintf(stderr, "perturb: SMARM_STRESS_SEED=%llu\n",
                 static_cast<unsigned long long>(seed_));
    // Not a thread_local: what the compiler cannot see through it cannot keep across a switch.
    usable_ = pthread_key_create(&key_, &give_back) == 0;
  }

  thread_entry* of_this_thread() noexcept {
    if (!usable_) return nullptr;
    if (void* const known = pthread_getspecific(key_)) return static_cast<thread_entry*>(known);
    return join();
  }

  [[nodiscard]] bool is_traced() const noexcept { return traced_; }

 private:
  static void give_back(void* entry) noexcept {
    // release pairs with join's acquire: the next thread has the entry to itself.
    static_cast<thread_entry*>(entry)->taken.store(false, release);
  }

  [[gnu::noinline]] thread_entry* join() noexcept {
    const int saved_errno = errno;
    thread_entry* const joined = take_entry();
    errno = saved_errno;
    return joined;
  }

  thread_entry* take_entry() noexcept {
    for (thread_entry& entry : entries_) {
      bool free = false;
      // acquire pairs with give_back.
      if (!entry.taken.compare_exchange_strong(free, true, acquire, relaxed)) continue;
      pthread_getname_np(pthread_self(), entry.name, sizeof entry.name);
      std::size_t hash = 0;
      for (const char* letter = entry.name; *letter != '\0'; ++letter) hash = hash * 31 + *letter;
      // relaxed: a number by itself.
      const std::uint32_t nth = counts_[hash % counts_.size()].fetch_add(1, relaxed);
      entry.sequence = disturbances(seed_, entry.name, nth);
      entry.number = 0;
      if (pthread_setspecific(key_, &entry) == 0) return &entry;
      give_back(&entry);
      return nullptr;
    }
    return nullptr;
  }

  std::uint64_t seed_;
  bool traced_;
  bool usable_ = false;
  pthread_key_t key_{};
  std::array<thread_entry, threads_max> entries_;
  // How many threads of a name there were, by its hash: names that share a place share the count.
  std::array<atomic<std::uint32_t>, 256> counts_{};
};

stress& the_stress() noexcept {
  // Never destroyed: threads that outlive main call it.
  alignas(stress) static std::byte memory[sizeof(stress)];
  static stress* const instance = ::new (static_cast<void*>(memory)) stress;
  return *instance;
}

void carry_out(const disturbance& decided) noexcept {
  switch (decided.what) {
    case disturbance::kind::none:
      return;
    case disturbance::kind::spin:
      for (std::uint32_t i = 0; i < decided.amount; ++i) pause();
      return;
    case disturbance::kind::yield:
      std::this_thread::yield();
      return;
    case disturbance::kind::sleep: {
      atomic<std::uint32_t> nobody_wakes{0};
      (void)futex_wait(nobody_wakes, 0, monotonic_ns() + std::int64_t{decided.amount} * 1000);
      return;
    }
  }
}

}  // namespace

void perturb(perturb_point point) noexcept {
  stress& all = the_stress();
  thread_entry* const self = all.of_this_thread();
  if (self == nullptr) return;
  const disturbance decided = self->sequence.next();
  ++self->number;
  if (all.is_traced() && decided.what != disturbance::kind::none) [[unlikely]] {
    static constexpr const char* names[] = {"none", "spin", "yield", "sleep"};
    std::fprintf(stderr, "perturb: %s, decision %llu, %s: %s %u\n", self->name,
                 static_cast<unsigned long long>(self->number), name_of(point).data(),
                 names[static_cast<std::size_t>(decided.what)], decided.amount);
  }
  carry_out(decided);
}

bool perturb_chooses(perturb_point) noexcept {
  thread_entry* const self = the_stress().of_this_thread();
  if (self == nullptr) return false;
  ++self->number;
  return self->sequence.next().what != disturbance::kind::none;
}

#endif

}  // namespace smarm::detail
