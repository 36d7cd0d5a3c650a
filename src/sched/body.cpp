// Making, sharing, joining and freeing of actor bodies: the core behind spawn and join_handle.
#include "sched/body.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string_view>
#include <utility>

#include <smarm/errors.hpp>

#include "base/assert.hpp"
#include "fiber/block_pool.hpp"
#include "fiber/stack.hpp"
#include "sched/lookup.hpp"
#include "sched/park_here.hpp"
#include "sched/runtime_core.hpp"
#include "sched/scheduler.hpp"
#include "sched/slot_table.hpp"

namespace smarm::detail {

namespace {

// Where the body lies in its allocation: behind the header, at its own alignment.
constexpr std::size_t offset_for(std::size_t align) noexcept {
  return (body_offset + align - 1) / align * align;
}

void free_allocation(body_header& header) noexcept {
  const std::size_t align = std::size_t{1} << header.align_shift;
  const std::size_t size = header.size;
  std::byte* const memory = reinterpret_cast<std::byte*>(&body_of(header)) - offset_for(align);
  header.~body_header();
  if (align > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    ::operator delete(memory, std::align_val_t(align));
  } else {
    pool_free(memory, size);
  }
}

slot* take_slot_of_table() noexcept {
  slot* taken = nullptr;
  return slot_table::instance().take(&taken, 1) == 1 ? taken : nullptr;
}

// Names are rare, and take memory: kept apart from what each spawn does. False: there is no memory.
[[gnu::cold, gnu::noinline]] bool give_name(body_header& header, std::string_view name) noexcept {
  try {
    header.name = name;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Gives the new actor a slot and makes it runnable. The caller has counted it.
std::errc bring_to_life(body_header& header, runtime_core& core, scheduler* here,
                        std::uint32_t stack_kib, birth* at_birth) {
  core.work().queue.reserve(core.life().actors());
  slot* const fresh = here != nullptr ? here->take_slot() : take_slot_of_table();
  if (fresh == nullptr) return std::errc::not_enough_memory;
  fresh->generation = fresh->state.status().generation();
  fresh->body = &header;
  fresh->owner.store(&core, relaxed);  // relaxed: published by publish_queued
  fresh->stack_size = stack_kib;
  fresh->shield_depth = 0;
  fresh->wait_opened = false;
  fresh->wait_timer = nullptr;
  fresh->has_started = false;
  header.who = pid{fresh->index, fresh->generation};
  header.started = true;
  header.references.store(2, relaxed);  // relaxed: nobody else has a reference yet
  if (at_birth != nullptr) at_birth->attend(*fresh, header.who);
  fresh->state.publish_queued();
  if (here != nullptr) {
    here->schedule(*fresh);
  } else {
    core.work().enqueue_from_outside(*fresh);
  }
  return {};
}

}  // namespace

void body_header::end() noexcept {
  // release: publishes `why` and the result to the joiner. acquire: pairs with body_wait's
  // exchange to awaited: the joiner's waker is visible.
  if (cell.exchange(join_cell::ended, acq_rel) == join_cell::awaited) joiner.wake_last();
}

void* body_allocate(std::size_t size, std::size_t align, bool trivial) noexcept {
  align = std::max(align, alignof(std::max_align_t));
  const std::size_t bytes = offset_for(align) + size;
  if (bytes > UINT32_MAX) return nullptr;
  std::byte* memory = nullptr;
  try {
    memory = static_cast<std::byte*>(align > __STDCPP_DEFAULT_NEW_ALIGNMENT__
                                         ? ::operator new(bytes, std::align_val_t(align))
                                         : pool_allocate(bytes));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  std::byte* const body = memory + offset_for(align);
  auto* const header = ::new (body - body_offset) body_header;
  header->align_shift = static_cast<std::uint8_t>(std::countr_zero(align));
  header->size = static_cast<std::uint32_t>(bytes);
  header->has_trivial_function = trivial;
  return body;
}

void body_deallocate(void* unborn) noexcept {
  free_allocation(header_of(*static_cast<actor_body*>(unborn)));
}

void body_release(actor_body& body) noexcept {
  body_header& header = header_of(body);
  // acquire: pairs with the release below: every use by the other holder comes before destruction.
  // A sole holder needs no exchange, since nobody is left to copy or drop a reference.
  if (header.references.load(acquire) != 1) {
    // acq_rel: release our uses; acquire the other's, if we turn out to be the last.
    if (header.references.fetch_sub(1, acq_rel) != 1) return;
  }
  if (!header.started) body.discard();
  body.~actor_body();
  free_allocation(header);
}

std::errc body_start(actor_body& body, runtime_core* where, const start_options& options) {
  scheduler* const here = scheduler::current();
  if (where == nullptr && here == nullptr) {
    throw misuse("smarm::spawn: this thread is no actor; use runtime::spawn");
  }
  if (here != nullptr) stop_point();
  runtime_core& core = where != nullptr ? *where : here->core();
  scheduler* const inside = here != nullptr && &here->core() == &core ? here : nullptr;
  std::uint32_t stack_kib = core.default_stack_kib();
  if (options.stack_size != 0) [[unlikely]] {
    if (options.stack_size < stack_size_min || options.stack_size > stack_size_max) {
      return std::errc::invalid_argument;
    }
    stack_kib = static_cast<std::uint32_t>(std::bit_ceil(options.stack_size) >> 10);
  }
  body_header& header = header_of(body);
  if (!options.name.empty() && !give_name(header, options.name)) {
    return std::errc::not_enough_memory;
  }
  if (const std::errc refused = core.admit(inside); refused != std::errc()) return refused;
  std::errc error{};
  try {
    error = bring_to_life(header, core, inside, stack_kib, options.at_birth);
  } catch (const std::bad_alloc&) {
    error = std::errc::not_enough_memory;
  }
  if (error == std::errc()) [[likely]]
    return error;
  core.life().discharge();
  // What was counted may have been all that kept the run going, and its schedulers have gone to
  // sleep on it; an actor of theirs that spawned still lives.
  if (inside == nullptr && core.life().may_end()) core.work().sleepers.wake_all();
  return error;
}

bool body_wait(actor_body& body, deadline when) {
  body_header& header = header_of(body);
  stop_point();
  // acquire: pairs with end: the result is visible.
  if (header.cell.load(acquire) == join_cell::ended) return true;
  if (const slot* const self = scheduler::current_slot();
      self != nullptr && self->body == &header) {
    throw misuse("smarm::join_handle::join: an actor cannot join itself");
  }
  if (header.cell.load(relaxed) == join_cell::awaited) {  // relaxed: only to catch misuse
    throw misuse("smarm::join_handle::join: somebody already waits on this handle");
  }
  header.joiner = begin_wait();
  join_cell expected = join_cell::open;
  // release: publishes joiner to end. acquire on failure: ended came first, with the result.
  if (!header.cell.compare_exchange_strong(expected, join_cell::awaited, release, acquire)) {
    return true;
  }
  const struct withdraw {
    body_header& header;
    ~withdraw() {
      // relaxed: the load after the park acquires, or the stop that unwinds us wants nothing of it.
      if (header.cell.load(relaxed) == join_cell::ended) return;
      join_cell awaited = join_cell::awaited;
      // relaxed: if it succeeds nobody has read joiner; if not, the load below acquires.
      header.cell.compare_exchange_strong(awaited, join_cell::open, relaxed, relaxed);
    }
  } at_the_end{header};
  park_here(header.joiner, wait_reason::join, when);
  return header.cell.load(acquire) == join_cell::ended;  // pairs with end: the result is visible
}

bool body_has_ended(const actor_body& body) noexcept {
  // acquire: as in body_wait, so that a join after it needs no further look.
  return header_of(body).cell.load(acquire) == join_cell::ended;
}

bool body_request_stop(actor_body& body) noexcept {
  const pid who = header_of(body).who;
  // Whoever holds the handle may stop the actor, of whatever runtime it is.
  slot* const target = slot_table::instance().find(who.index);
  return target != nullptr && stop_slot(*target, who.generation);
}

pid body_pid(const actor_body& body) noexcept { return header_of(body).who; }

const exit_reason& body_exit_reason(const actor_body& body) noexcept { return header_of(body).why; }

void throw_empty_handle() {
  throw misuse("smarm::join_handle: the handle is empty (moved from, joined or detached)");
}

}  // namespace smarm::detail
