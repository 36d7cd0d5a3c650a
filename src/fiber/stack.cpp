// stack: slabs, size classes and the pool's books.
//
// Invariants
//   1. A slab is aligned to its own size, so a stack's address leads to its slab; buckets_ finds
//   it.
//   2. A slab stands in `partial` if some slots are free and some not, in `unused` if all are free,
//      in no list if none is. Its masks say which slots are free, resident, and guarded.
//   3. Whoever works on a slot outside the lock owns it: it counts as in use meanwhile.
// Why masks and not a list of free stacks: a slab that is wholly free shows at once, and nothing is
// written into a free stack. The order of reuse inside a slab does not matter; stack_cache keeps
// the hottest ones.
#include "fiber/stack.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>

#include "base/assert.hpp"
#include "base/intrusive_list.hpp"
#include "fiber/sanitizer.hpp"

namespace smarm::detail {

namespace {

// The C library's header may be older than the kernel (6.13).
constexpr int advice_guard_install = 102;

constexpr std::size_t slab_bytes_wanted = std::size_t{4} << 20;
constexpr std::size_t slots_max = 64;  // one bit each in a slab's masks
constexpr std::size_t colours = 8;
constexpr std::size_t colour_step = 192;  // three cache lines; with eight colours less than a page
constexpr std::size_t guard_size_max = std::size_t{64} << 10;
constexpr int smallest_class = std::countr_zero(stack_size_min);
constexpr int largest_class = std::countr_zero(stack_size_max);
constexpr std::size_t class_count = largest_class - smallest_class + 1;

constexpr std::int64_t epoch_ns = ns_per_second;
// LIMIT: slabs that one decay gives back per size class; the rest waits for the next call.
constexpr std::size_t decay_slabs_max = 8;

std::size_t page_size() noexcept {
  static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// A sixteenth of the stack, at least a page: large stacks carry large frames, which are the ones
// that step over a narrow guard.
std::size_t guard_size_of(std::size_t stride) noexcept {
  return std::clamp(stride / 16, page_size(), std::max(guard_size_max, page_size()));
}

// errno_keeper puts errno back at the end of a scope: the pool's cold paths run in the midst of an
// actor, which may be about to look at its own.
class errno_keeper {
 public:
  errno_keeper() noexcept : saved_(errno) {}
  errno_keeper(const errno_keeper&) = delete;
  errno_keeper& operator=(const errno_keeper&) = delete;
  ~errno_keeper() { errno = saved_; }

 private:
  int saved_;
};

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

constexpr int map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// map_aligned maps `size` bytes at a multiple of `size`, or returns null with errno set. It takes
// the highest place that fits: the kernel fills address space from the top, so the next slab comes
// to lie right below and the two become one mapping.
std::byte* map_aligned(std::size_t size) noexcept {
  // One at a time: where several map and cut off what is not aligned, the places come to lie apart,
  // or between two that have pages already, which the kernel does not join any more. Cold, held by
  // no one who holds another lock.
  static constinit std::mutex one_at_a_time;
  const std::scoped_lock guard(one_at_a_time);
  const auto map = [](std::size_t bytes) {
    void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, map_flags, -1, 0);
    return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
  };
  std::byte* place = map(size);
  if (place == nullptr) {
    return nullptr;
  }
  if (reinterpret_cast<std::uintptr_t>(place) % size != 0) {
    munmap(place, size);
    std::byte* const begin = map(2 * size);
    if (begin == nullptr) {
      return nullptr;
    }
    std::byte* const end = begin + 2 * size;
    const std::size_t tail = reinterpret_cast<std::uintptr_t>(end) % size;
    place = end - tail - size;
    if (tail != 0) {
      munmap(end - tail, tail);
    }
    munmap(begin, static_cast<std::size_t>(place - begin));
  }
  // Huge pages would make 2 MiB of untouched stacks resident. Refused only where there are none.
  static_cast<void>(madvise(place, size, MADV_NOHUGEPAGE));
  return place;
}

}  // namespace

struct stack_pool::slab : list_link {
  std::byte* base = nullptr;
  size_class* sizes = nullptr;
  slab* next_in_bucket = nullptr;
  std::uint64_t free = 0;     // slots that nobody has
  std::uint64_t warm = 0;     // slots whose memory is resident, as far as we know
  std::uint64_t guarded = 0;  // slots whose guard is in place
  std::unique_ptr<unsigned[]> valgrind_ids;
};

struct stack_pool::size_class {
  std::size_t stride = 0;
  std::size_t guard_size = 0;
  std::size_t slots = 0;         // in a slab
  intrusive_list<slab> partial;  // some slots free, some not; the latest used in front
  intrusive_list<slab> unused;   // all slots free; the latest used in front
  std::size_t slabs = 0;
  std::size_t in_use = 0;
  std::size_t warm_free = 0;
  std::size_t peak = 0;    // of in_use in this epoch
  std::size_t target = 0;  // stacks worth keeping: falls by half each epoch, not below the peak

  [[nodiscard]] std::size_t slab_bytes() const noexcept { return stride * slots; }
  [[nodiscard]] std::uint64_t all_slots() const noexcept {
    return slots == slots_max ? ~std::uint64_t{0} : (std::uint64_t{1} << slots) - 1;
  }
  [[nodiscard]] stack_span stack_at(const slab& of, std::size_t slot) const noexcept {
    std::byte* const begin = of.base + slot * stride;
    const std::size_t colour =
        reinterpret_cast<std::uintptr_t>(begin) / stride % colours * colour_step;
    return {begin + guard_size, stride - guard_size - colour};
  }
  // What could go if `keep` stacks are to stay: a whole slab, or the memory of free slots.
  [[nodiscard]] bool can_spare_slab(std::size_t keep) const noexcept {
    return !unused.empty() && (slabs - 1) * slots >= keep;
  }
  [[nodiscard]] bool can_spare_memory(std::size_t keep) const noexcept {
    return warm_free != 0 && in_use + warm_free > keep;
  }
};

// reclaimed is what collect() took out of the pool's books: slabs to unmap, and slots of one slab
// each (marked as if in use) whose memory goes back while the slab stays.
struct stack_pool::reclaimed {
  intrusive_list<slab> slabs;
  struct partial_slots {
    slab* of;
    std::uint64_t slots;
  };
  // LIMIT: slabs of which one call takes slots; trim() calls until none is left.
  static constexpr std::size_t partial_max = 4;
  std::size_t partial_count = 0;
  partial_slots partial[partial_max];
};

guard_kind probe_guard_kind() noexcept {
  // Valgrind does not know the markers: it takes the page for readable and faults in it itself.
  if (runs_on_valgrind()) {
    return guard_kind::no_access;
  }
  const std::size_t page = page_size();
  void* const memory =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return guard_kind::no_access;
  }
  const errno_keeper keep_errno;
  // An emulator may accept any advice and do nothing. So look whether the page is out of bounds
  // now, through a system call that reports that where a plain access would fault.
  const bool works = madvise(memory, page, advice_guard_install) == 0 &&
                     access(static_cast<const char*>(memory), F_OK) != 0 && errno == EFAULT;
  munmap(memory, page);
  return works ? guard_kind::guard_marker : guard_kind::no_access;
}

std::size_t nominal_stack_size(stack_span stack) noexcept {
  // Guard and colour together are less than half of a stack.
  return std::bit_ceil(stack.size);
}

std::size_t guard_size_below(stack_span stack) noexcept {
  return guard_size_of(nominal_stack_size(stack));
}

[[gnu::noinline]] void give_back_unused(stack_span running) noexcept {
  // What the system call's wrapper needs of the stack, and with it most of what the park that
  // follows does: were the page cut right here, it would come back at once.
  constexpr std::uintptr_t margin = 1024;
  const auto low = reinterpret_cast<std::uintptr_t>(running.low);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  SMARM_ASSERT(here >= low && here <= low + running.size, "who gives a stack back stands on it",
               here, low);
  const std::uintptr_t end = (here - margin) / page_size() * page_size();
  if (end <= low) return;
  const errno_keeper keep;
  // Refused, as for locked memory, it stays as it is.
  static_cast<void>(madvise(running.low, end - low, MADV_DONTNEED));
}

stack_pool::stack_pool(std::optional<guard_kind> forced_guards)
    : guards_(forced_guards ? *forced_guards : probe_guard_kind()),
      classes_(std::make_unique<size_class[]>(class_count)),
      buckets_(std::make_unique<slab*[]>(bucket_count)) {
  for (std::size_t index = 0; index < class_count; ++index) {
    size_class& sizes = classes_[index];
    sizes.stride = stack_size_min << index;
    sizes.guard_size = guard_size_of(sizes.stride);
    sizes.slots = std::clamp<std::size_t>(slab_bytes_wanted / sizes.stride, 1, slots_max);
  }
}

stack_pool::~stack_pool() {
  const counters left = count();
  SMARM_ASSERT(left.in_use == 0, "a stack pool ends after its last stack", left.in_use, left.slabs);
  trim();
}

stack_pool::size_class* stack_pool::class_for(std::size_t size) const noexcept {
  if (size > stack_size_max) {
    return nullptr;
  }
  const std::size_t smallest = std::max(stack_size_min, 4 * page_size());
  const std::size_t stride = std::bit_ceil(std::max(size, smallest));
  return &classes_[static_cast<std::size_t>(std::countr_zero(stride) - smallest_class)];
}

std::expected<stack_span, std::error_code> stack_pool::acquire(std::size_t size) noexcept {
  stack_span stack;
  const auto count = acquire_batch(size, {&stack, 1});
  if (!count) {
    return std::unexpected(count.error());
  }
  return stack;
}

std::expected<std::size_t, std::error_code> stack_pool::acquire_batch(
    std::size_t size, std::span<stack_span> stacks) noexcept {
  SMARM_ASSERT(!stacks.empty() && stacks.size() <= batch_max,
               "a batch of stacks has between one and its maximum", stacks.size());
  const errno_keeper keep_errno;
  size_class* const sizes = class_for(size);
  if (sizes == nullptr) {
    return std::unexpected(std::make_error_code(std::errc::invalid_argument));
  }
  std::uint64_t unguarded = 0;  // by index in `stacks`
  std::size_t taken = take_free(*sizes, stacks, unguarded);
  // LIMIT: another thread may take all of the slab we add; then we add another, or memory ends.
  while (taken == 0) {
    if (const std::error_code error = add_slab(*sizes)) {
      return std::unexpected(error);
    }
    taken = take_free(*sizes, stacks, unguarded);
  }
  // Outside the lock: the slots are ours already.
  std::error_code error;
  std::size_t usable = 0;
  for (std::size_t index = 0; index < taken; ++index) {
    const bool needs_guard = (unguarded >> index & 1) != 0;
    if (needs_guard && (error || !install_guard(stacks[index]))) {
      error = error ? error : last_error();
      put_back(stacks[index], false, false);
      continue;
    }
    stacks[usable++] = stacks[index];
  }
  if (usable == 0) {
    return std::unexpected(error);
  }
  return usable;
}

std::size_t stack_pool::take_free(size_class& sizes, std::span<stack_span> stacks,
                                  std::uint64_t& unguarded) noexcept {
  raw_guard guard(mutex_);
  std::size_t taken = 0;
  while (taken < stacks.size()) {
    slab* from = sizes.partial.front();
    if (from == nullptr) {
      from = sizes.unused.pop_front();
      if (from == nullptr) {
        break;
      }
      sizes.partial.push_front(*from);
    }
    const std::uint64_t warm = from->free & from->warm;
    const int slot = std::countr_zero(warm != 0 ? warm : from->free);
    const std::uint64_t bit = std::uint64_t{1} << slot;
    sizes.warm_free -= warm != 0 ? 1 : 0;
    from->free &= ~bit;
    from->warm &= ~bit;
    if (from->free == 0) {
      sizes.partial.erase(*from);
    }
    unguarded |= (from->guarded & bit) == 0 ? std::uint64_t{1} << taken : 0;
    from->guarded |= bit;
    stacks[taken++] = sizes.stack_at(*from, static_cast<std::size_t>(slot));
  }
  sizes.in_use += taken;
  sizes.peak = std::max(sizes.peak, sizes.in_use);
  sizes.target = std::max(sizes.target, sizes.peak);
  return taken;
}

bool stack_pool::install_guard(stack_span stack) const noexcept {
  const std::size_t size = guard_size_below(stack);
  std::byte* const guard = stack.low - size;
  const bool done = guards_ == guard_kind::guard_marker
                        ? madvise(guard, size, advice_guard_install) == 0
                        : mprotect(guard, size, PROT_NONE) == 0;
  if (done) {
    register_stack_root(stack.low, stack.size);
  }
  return done;
}

std::error_code stack_pool::add_slab(size_class& sizes) noexcept {
  std::unique_ptr<slab> fresh(new (std::nothrow) slab);
  if (fresh == nullptr) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  if (runs_on_valgrind()) {
    fresh->valgrind_ids.reset(new (std::nothrow) unsigned[sizes.slots]);
  }
  fresh->base = map_aligned(sizes.slab_bytes());
  if (fresh->base == nullptr) {
    return last_error();
  }
  fresh->sizes = &sizes;
  fresh->free = sizes.all_slots();
  if (fresh->valgrind_ids != nullptr) {
    for (std::size_t slot = 0; slot < sizes.slots; ++slot) {
      const stack_span stack = sizes.stack_at(*fresh, slot);
      fresh->valgrind_ids[slot] = register_valgrind_stack(stack.low, stack.top());
    }
  }
  insert(*fresh.release());
  return {};
}

void stack_pool::insert(slab& fresh) noexcept {
  size_class& sizes = *fresh.sizes;
  raw_guard guard(mutex_);
  slab*& bucket =
      buckets_[reinterpret_cast<std::uintptr_t>(fresh.base) / sizes.slab_bytes() % bucket_count];
  fresh.next_in_bucket = bucket;
  bucket = &fresh;
  ++sizes.slabs;
  sizes.unused.push_front(fresh);
}

stack_pool::slab* stack_pool::find_slab(stack_span stack, const size_class& sizes) const noexcept {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(stack.low);
  const std::uintptr_t base = address - address % sizes.slab_bytes();
  slab* found = buckets_[base / sizes.slab_bytes() % bucket_count];
  while (found != nullptr &&
         (reinterpret_cast<std::uintptr_t>(found->base) != base || found->sizes != &sizes)) {
    found = found->next_in_bucket;
  }
  SMARM_ASSERT(found != nullptr, "a stack goes back to the pool that it came from", stack.low,
               stack.size);
  return found;
}

void stack_pool::put_back(stack_span stack, bool was_used, bool is_guarded) noexcept {
  raw_guard guard(mutex_);
  size_class& sizes = *class_for(nominal_stack_size(stack));
  slab& of = *find_slab(stack, sizes);
  const std::size_t slot = static_cast<std::size_t>(stack.low - of.base) / sizes.stride;
  const std::uint64_t bit = std::uint64_t{1} << slot;
  SMARM_ASSERT((of.free & bit) == 0, "a stack is released once", stack.low, slot);
  if (of.free == 0) {
    sizes.partial.push_front(of);
  }
  of.free |= bit;
  if (was_used) {
    of.warm |= bit;
    ++sizes.warm_free;
  }
  if (!is_guarded) {
    of.guarded &= ~bit;
  }
  --sizes.in_use;
  if (of.free == sizes.all_slots()) {
    sizes.partial.erase(of);
    sizes.unused.push_front(of);
  }
}

void stack_pool::release(stack_span stack) noexcept { release_batch({&stack, 1}); }

void stack_pool::release_batch(std::span<const stack_span> stacks) noexcept {
  for (const stack_span& stack : stacks) {
    put_back(stack, true, true);
  }
  const std::int64_t now_ns = monotonic_ns();
  // Relaxed: nothing is read on the strength of it; decay() looks again under the lock.
  if (now_ns >= epoch_end_ns_.load(relaxed)) {
    decay(now_ns);
  }
}

std::int64_t stack_pool::decay(std::int64_t now_ns) noexcept {
  const errno_keeper keep_errno;
  reclaimed surplus;
  bool more = false;
  std::int64_t due_ns = 0;
  {
    raw_guard guard(mutex_);
    // Relaxed: the lock orders the writes among each other.
    due_ns = epoch_end_ns_.load(relaxed);
    const bool new_epoch = now_ns >= due_ns;
    if (new_epoch) {
      due_ns = add_saturating(now_ns, epoch_ns);
      // Relaxed: see release_batch().
      epoch_end_ns_.store(due_ns, relaxed);
    }
    for (std::size_t index = 0; index < class_count; ++index) {
      size_class& sizes = classes_[index];
      if (new_epoch) {
        sizes.target = std::max({sizes.peak, sizes.in_use, sizes.target / 2});
        sizes.peak = sizes.in_use;
      }
      collect(sizes, sizes.target, decay_slabs_max, surplus);
      more = more || sizes.can_spare_slab(sizes.in_use) || sizes.warm_free != 0;
    }
  }
  give_back(surplus);
  return more ? due_ns : never_ns;
}

void stack_pool::trim() noexcept {
  const errno_keeper keep_errno;
  for (std::size_t index = 0; index < class_count; ++index) {
    bool more = true;
    // Memory first: what it frees may complete a slab, which the round after that unmaps.
    while (more) {
      reclaimed surplus;
      {
        raw_guard guard(mutex_);
        collect(classes_[index], 0, SIZE_MAX, surplus);
        more = surplus.partial_count != 0;
      }
      give_back(surplus);
    }
  }
}

void stack_pool::collect(size_class& sizes, std::size_t keep_stacks, std::size_t slabs_max,
                         reclaimed& out) noexcept {
  for (std::size_t count = 0; count < slabs_max && sizes.can_spare_slab(keep_stacks); ++count) {
    slab& gone = *sizes.unused.back();  // the longest unused
    sizes.unused.erase(gone);
    sizes.warm_free -= static_cast<std::size_t>(std::popcount(gone.warm));
    --sizes.slabs;
    forget(gone);
    out.slabs.push_back(gone);
  }
  slab* next = nullptr;
  for (slab* at = sizes.partial.front(); at != nullptr; at = next) {
    if (!sizes.can_spare_memory(keep_stacks) || out.partial_count == reclaimed::partial_max) {
      break;
    }
    next = sizes.partial.next(*at);
    const std::uint64_t spare = at->free & at->warm;
    if (spare == 0) {
      continue;
    }
    out.partial[out.partial_count++] = {at, spare};
    const auto count = static_cast<std::size_t>(std::popcount(spare));
    sizes.warm_free -= count;
    sizes.in_use += count;  // Until give_back is done with them, so that nobody takes them.
    at->free &= ~spare;
    at->warm &= ~spare;
    if (at->free == 0) {
      sizes.partial.erase(*at);
    }
  }
}

void stack_pool::give_back(reclaimed& surplus) noexcept {
  while (slab* const gone = surplus.slabs.pop_front()) {
    give_back_slab(*gone);
  }
  for (std::size_t index = 0; index < surplus.partial_count; ++index) {
    const reclaimed::partial_slots& part = surplus.partial[index];
    const size_class& sizes = *part.of->sizes;
    std::uint64_t left = part.slots;
    while (left != 0) {
      // A run of neighbours goes by one call; the guards between them survive it.
      const int first = std::countr_zero(left);
      const int length = std::countr_one(left >> first);
      std::byte* const begin = part.of->base + static_cast<std::size_t>(first) * sizes.stride;
      madvise(begin, static_cast<std::size_t>(length) * sizes.stride, MADV_DONTNEED);
      for (int slot = first; slot < first + length; ++slot) {
        left &= ~(std::uint64_t{1} << slot);
        put_back(sizes.stack_at(*part.of, static_cast<std::size_t>(slot)), false, true);
      }
    }
  }
}

void stack_pool::give_back_slab(slab& gone) noexcept {
  size_class& sizes = *gone.sizes;
  unpoison_stack(gone.base, sizes.slab_bytes());
  // Unmapping from the middle of a joined mapping makes one mapping more and may hit the limit on
  // their number. Then the slab stays, without memory.
  std::uint64_t rooted = gone.guarded;
  for (std::size_t slot = 0; rooted != 0; ++slot, rooted >>= 1) {
    if ((rooted & 1) != 0) {
      const stack_span stack = sizes.stack_at(gone, slot);
      unregister_stack_root(stack.low, stack.size);
    }
  }
  if (munmap(gone.base, sizes.slab_bytes()) != 0) {
    madvise(gone.base, sizes.slab_bytes(), MADV_DONTNEED);
    gone.warm = 0;
    gone.guarded = 0;  // They still stand, but installing them again registers the root again.
    insert(gone);
    return;
  }
  for (std::size_t slot = 0; gone.valgrind_ids != nullptr && slot < sizes.slots; ++slot) {
    unregister_valgrind_stack(gone.valgrind_ids[slot]);
  }
  delete &gone;
}

void stack_pool::forget(slab& gone) noexcept {
  slab** link = &buckets_[reinterpret_cast<std::uintptr_t>(gone.base) / gone.sizes->slab_bytes() %
                          bucket_count];
  while (*link != &gone) {
    link = &(*link)->next_in_bucket;
  }
  *link = gone.next_in_bucket;
}

stack_pool::counters stack_pool::count() const noexcept {
  counters total;
  raw_guard guard(mutex_);
  for (std::size_t index = 0; index < class_count; ++index) {
    const size_class& sizes = classes_[index];
    total.in_use += sizes.in_use;
    total.cached += sizes.warm_free;
    total.mapped_bytes += sizes.slabs * sizes.slab_bytes();
    total.slabs += sizes.slabs;
  }
  return total;
}

std::error_code stack_cache::refill() noexcept {
  const auto got = pool_.acquire_batch(stack_size_default, {stacks_, capacity / 2});
  if (!got) {
    return got.error();
  }
  count_ = *got;
  return {};
}

void stack_cache::spill() noexcept {
  // The older half goes: the newest are still in the processor's cache.
  pool_.release_batch({stacks_, capacity / 2});
  std::move(stacks_ + capacity / 2, stacks_ + capacity, stacks_);
  count_ -= capacity / 2;
}

void stack_cache::flush() noexcept {
  if (count_ != 0) {
    pool_.release_batch({stacks_, count_});
    count_ = 0;
  }
}

}  // namespace smarm::detail
