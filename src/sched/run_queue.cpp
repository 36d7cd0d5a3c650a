// The run queues of run_queue.hpp and the choice among them.
#include "sched/run_queue.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "base/assert.hpp"
#include "base/perturb.hpp"
#include "sched/slot.hpp"

namespace smarm::detail {

void locked_ring::push(slot& runnable) noexcept {
  slot* const one = &runnable;
  push_all(&one, 1);
}

void locked_ring::push_all(slot* const* runnable, std::size_t count) noexcept {
  perturb(perturb_point::queue_push);
  const raw_guard guard(lock_);
  const std::size_t size = size_.load(relaxed);  // relaxed: written under lock_
  SMARM_ASSERT(size + count <= mask_ + 1 && entries_ != nullptr,
               "a run queue has room for every actor", size, count, mask_);
  for (std::size_t i = 0; i < count; ++i) entries_[(head_ + size + i) & mask_] = runnable[i];
  size_.store(size + count, relaxed);  // relaxed: see looks_empty
}

slot* locked_ring::pop() noexcept {
  slot* first = nullptr;
  (void)pop_some(&first, 1);
  return first;
}

std::size_t locked_ring::pop_some(slot** out, std::size_t max) noexcept {
  if (looks_empty()) return 0;
  perturb(perturb_point::queue_pop);
  const raw_guard guard(lock_);
  const std::size_t size = size_.load(relaxed);  // relaxed: written under lock_
  const std::size_t count = std::min(size, max);
  for (std::size_t i = 0; i < count; ++i) out[i] = entries_[(head_ + i) & mask_];
  head_ = (head_ + count) & mask_;
  size_.store(size - count, relaxed);  // relaxed: see looks_empty
  return count;
}

void locked_ring::reserve(std::size_t capacity) {
  // Only one thread reserves at a time, so mask_ may be read without the lock; the allocation must
  // be outside it.
  if (entries_ != nullptr && capacity <= mask_ + 1) return;
  auto larger = std::make_unique_for_overwrite<slot*[]>(capacity);
  {
    const raw_guard guard(lock_);
    const std::size_t size = size_.load(relaxed);  // relaxed: written under lock_
    for (std::size_t i = 0; i < size; ++i) larger[i] = entries_[(head_ + i) & mask_];
    entries_.swap(larger);
    mask_ = capacity - 1;
    head_ = 0;
  }
}

void mpmc_ring::unmap::operator()(cell* cells) const noexcept { munmap(cells, bytes_); }

void mpmc_ring::init(std::size_t capacity) {
  // Mapped and not allocated: zero pages are the cells' first state, and only what is used is
  // touched.
  const std::size_t bytes = capacity * sizeof(cell);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // SAFETY: a cell is an atomic integer and a pointer; all-zero bytes are their initial values.
  cells_ = std::unique_ptr<cell[], unmap>(static_cast<cell*>(memory), unmap(bytes));
  mask_ = capacity - 1;
  shift_ = static_cast<unsigned>(std::countr_zero(capacity));
}

void mpmc_ring::push(slot& runnable) noexcept {
  std::uint64_t position = tail_.load(relaxed);  // relaxed: the exchange validates it
  for (;;) {
    cell& at = cells_[position & mask_];
    // acquire: pairs with pop's release: the entry there has been read before we overwrite it.
    const std::uint64_t turn = at.turn.load(acquire);
    const std::uint64_t wanted = lap_of(position) * 2;
    if (turn == wanted) {
      // relaxed: the position is a ticket; the cell's turn publishes.
      if (tail_.compare_exchange_weak(position, position + 1, relaxed, relaxed)) {
        perturb(perturb_point::queue_push);
        at.entry = &runnable;
        at.turn.store(wanted + 1, release);  // pairs with pop's acquire: publishes the entry
        return;
      }
    } else {
      // Behind by a lap: a popper has taken the position and not yet freed the cell; with a cell
      // for every actor that is the only way to find it full. Ahead: our tail was old.
      if (turn < wanted) pause();
      position = tail_.load(relaxed);  // relaxed: as above
    }
  }
}

slot* mpmc_ring::pop() noexcept {
  std::uint64_t position = head_.load(relaxed);  // relaxed: the exchange validates it
  for (;;) {
    cell& at = cells_[position & mask_];
    // acquire: pairs with push's release: the entry is visible.
    const std::uint64_t turn = at.turn.load(acquire);
    const std::uint64_t wanted = lap_of(position) * 2 + 1;
    if (turn == wanted) {
      // relaxed: the position is a ticket; the cell's turn publishes.
      if (head_.compare_exchange_weak(position, position + 1, relaxed, relaxed)) {
        perturb(perturb_point::queue_pop);
        slot* const entry = at.entry;
        at.turn.store(wanted + 1, release);  // pairs with push's acquire: the cell is free
        return entry;
      }
    } else if (turn < wanted) {
      // Empty, or its pusher is between ticket and publication: that pusher's enqueue tail comes
      // after, so nothing is lost by calling it empty.
      return nullptr;
    } else {
      position = head_.load(relaxed);  // relaxed: as above
    }
  }
}

bool mpmc_ring::looks_empty() const noexcept {
  // relaxed: behind the fence of whoever must not miss anything (coordinator).
  const std::uint64_t position = head_.load(relaxed);
  return cells_[position & mask_].turn.load(relaxed) < lap_of(position) * 2 + 1;  // relaxed: same
}

namespace {

// The CPUs that this process may use get the numbers 0, 1, 2 ..., the others go on from there.
std::unique_ptr<std::uint16_t[]> rank_cpus() {
  auto ranks = std::make_unique<std::uint16_t[]>(CPU_SETSIZE);
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // Refused only where there are more CPUs than the set holds; then all are alike.
  (void)sched_getaffinity(0, sizeof usable, &usable);
  std::uint16_t next = 0;
  for (const bool in_turn : {true, false}) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if ((CPU_ISSET(cpu, &usable) != 0) == in_turn) ranks[cpu] = next++;
    }
  }
  return ranks;
}

}  // namespace

run_queue::run_queue(run_queue_kind kind, unsigned schedulers, unsigned parallel,
                     std::size_t max_actors)
    : kind_(kind),
      stripe_count_(kind == run_queue_kind::striped ? std::bit_ceil(parallel) : 1),
      local_count_(kind == run_queue_kind::local ? schedulers : 0),
      stripes_(std::make_unique<padded_ring[]>(stripe_count_)),
      locals_(std::make_unique<own_ring[]>(local_count_)) {
  if (stripe_count_ > 1) cpu_ranks_ = rank_cpus();
  if (kind == run_queue_kind::mpmc) {
    ring_.init(std::bit_ceil(max_actors));
    reserved_.store(max_actors, relaxed);  // relaxed: nobody else sees the queue yet
  }
}

void run_queue::grow(std::size_t actors) {
  const std::scoped_lock guard(grow_lock_);
  if (actors <= reserved_.load(relaxed)) return;  // relaxed: written under this lock
  const std::size_t capacity = std::max<std::size_t>(256, std::bit_ceil(actors));
  for (unsigned i = 0; i < stripe_count_; ++i) stripes_[i].ring.reserve(capacity);
  if (kind_ == run_queue_kind::local) overflow_.reserve(capacity);
  reserved_.store(capacity, release);  // pairs with reserve's acquire
}

unsigned run_queue::home_of(unsigned scheduler) const noexcept {
  if (kind_ == run_queue_kind::local) return scheduler;
  if (stripe_count_ == 1) return 0;
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : cpu_ranks_[cpu % CPU_SETSIZE] & (stripe_count_ - 1);
}

void run_queue::push_from_outside(slot& runnable) noexcept {
  push_shared(runnable.index, runnable);
}

void run_queue::push_shared(unsigned stripe, slot& runnable) noexcept {
  if (kind_ == run_queue_kind::mpmc) return ring_.push(runnable);
  stripes_[stripe & (stripe_count_ - 1)].ring.push(runnable);
}

slot* run_queue::pop_shared(unsigned stripe, std::uint32_t tick) noexcept {
  if (kind_ == run_queue_kind::mpmc) return ring_.pop();
  return pop_striped(stripe, tick);
}

// Makes room in a full ring: its older half goes, and the new one behind it, to the injector or to
// the overflow. Why apart: who prefers the newest looks at the injector every now and then; it
// would begin a subtree each time if it found there what has not run.
void run_queue::spill(unsigned home, slot& runnable) noexcept {
  std::array<slot*, local_capacity / 2 + 1> older;
  const std::uint32_t count =
      locals_[home].take_half([&older](std::uint32_t i, slot* found) { older[i] = found; });
  older[count] = &runnable;
  std::array<slot*, local_capacity / 2 + 1> fresh;
  std::size_t started_count = 0;
  std::size_t fresh_count = 0;
  for (std::uint32_t i = 0; i <= count; ++i) {
    if (older[i]->has_started) {
      older[started_count++] = older[i];
    } else {
      fresh[fresh_count++] = older[i];
    }
  }
  if (started_count != 0) stripes_[0].ring.push_all(older.data(), started_count);
  if (fresh_count != 0) overflow_.push_all(fresh.data(), fresh_count);
}

// Takes a batch of a shared ring: one to run, the others into the own ring.
run_queue::popped run_queue::pop_batch(unsigned home, locked_ring& from) noexcept {
  std::array<slot*, batch> found;
  const std::size_t count = from.pop_some(found.data(), batch);
  if (count == 0) return {};
  for (std::size_t i = 1; i < count; ++i) push_local(home, *found[i]);
  return {found[0], count > 1};
}

// The look at where the others are, whatever the own ring has: mostly at the shared rings, now and
// then at the ring of another.
run_queue::popped run_queue::pop_fairly(unsigned home, std::uint32_t turn) noexcept {
  if (turn % 4 == 0) {
    if (slot* const found = locals_[turn / 4 % local_count_].pop()) return {found};
  }
  locked_ring& first = turn % 2 == 0 ? overflow_ : stripes_[0].ring;
  locked_ring& second = turn % 2 == 0 ? stripes_[0].ring : overflow_;
  const popped found = pop_batch(home, first);
  return found.first != nullptr ? found : pop_batch(home, second);
}

slot* run_queue::pop_in_turn(unsigned home, std::uint32_t turn) noexcept {
  slot* found = nullptr;
  if (turn % 3 == 0) found = overflow_.pop();
  if (turn % 3 == 1) found = locals_[turn / 3 % local_count_].pop();
  return found != nullptr ? found : pop_oldest(home);
}

// What a scheduler finds whose own ring is empty.
run_queue::popped run_queue::pop_elsewhere(unsigned home) noexcept {
  for (locked_ring* const shared : {&stripes_[0].ring, &overflow_}) {
    if (const popped found = pop_batch(home, *shared); found.first != nullptr) return found;
  }
  for (unsigned i = 1; i < local_count_; ++i) {
    const unsigned victim = home + i < local_count_ ? home + i : home + i - local_count_;
    std::uint32_t taken = 0;
    if (slot* const found = locals_[home].steal_from(locals_[victim], taken)) {
      return {found, taken > 1};
    }
  }
  return {};
}

slot* run_queue::pop_striped(unsigned stripe, std::uint32_t tick) noexcept {
  // An actor in the stripe of a scheduler that computes on must not wait for it while the others
  // are kept busy by their own stripes.
  const unsigned first = tick % fairness_tick == 0 ? tick / fairness_tick : stripe;
  for (unsigned i = 0; i < stripe_count_; ++i) {
    if (slot* const found = stripes_[(first + i) & (stripe_count_ - 1)].ring.pop()) return found;
  }
  return nullptr;
}

bool run_queue::looks_empty() const noexcept {
  if (kind_ == run_queue_kind::mpmc) return ring_.looks_empty();
  for (unsigned i = 0; i < stripe_count_; ++i) {
    if (!stripes_[i].ring.looks_empty()) return false;
  }
  for (unsigned i = 0; i < local_count_; ++i) {
    if (!locals_[i].looks_empty()) return false;
  }
  return overflow_.looks_empty();
}

}  // namespace smarm::detail
