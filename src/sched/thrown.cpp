// The probe's type_info, the walk that it does, and the handler's side of it.
#include "sched/thrown.hpp"

#include <cxxabi.h>

#include <array>
#include <cstddef>
#include <exception>
#include <span>
#include <typeinfo>
#include <utility>

#include "base/captured_stack.hpp"
#include "fiber/current.hpp"
#include "sched/body.hpp"
#include "sched/scheduler.hpp"
#include "sched/stack_walk.hpp"

namespace smarm::detail {

namespace {

// Captures the stack of the exception that looks for its handler. A cold path in a hot spot: the
// unwinder stands on the same stack, with frames larger than these.
void capture() noexcept {
  slot* const self = scheduler::current_slot();
  if (self == nullptr) return;
  const unsigned level = current_thread().exceptions->uncaught;
  if (self->body->thrown != nullptr) {
    if (self->body->thrown->level() < level) return;
    std::exchange(self->body->thrown, nullptr)->drop();
  }
  std::array<void*, captured_stack::frames_max> frames;
  const std::size_t count = walk_stack(self->context.stack, frames);
  self->body->thrown = captured_stack::make(std::span(frames).first(count), level);
}

}  // namespace

// probe_type is the type_info of stack_probe, of which the unwinder asks whether it catches.
class probe_type final : public std::type_info {
 public:
  bool __do_catch(const std::type_info* thrown, void** object, unsigned outer) const override;
};

bool probe_type::__do_catch(const std::type_info* thrown, void**, unsigned) const {
  // What another language throws has no exception_ptr, and a thread that is being ended is none of
  // ours; nor is either of them worth a line in a report.
  if (*thrown != typeid(abi::__foreign_exception) && *thrown != typeid(abi::__forced_unwind)) {
    capture();
  }
  return false;
}

extern "C++" {
// A type_info as the Itanium ABI lays it out. Written by hand, because it must stand where the
// compiler would have put stack_probe's, and before any constructor of the program runs.
struct type_info_layout {
  const void* table;
  const char* name;
};
extern const void* const probe_table[8] asm("_ZTVN5smarm6detail10probe_typeE");
extern const type_info_layout probe_info asm("_ZTIN5smarm6detail11stack_probeE");
constinit const type_info_layout probe_info{static_cast<const void*>(&probe_table[2]),
                                            "N5smarm6detail11stack_probeE"};
}

static_assert(sizeof(type_info_layout) == sizeof(std::type_info));

exit_reason caught_reason() noexcept {
  std::exception_ptr why = std::current_exception();
  slot* const self = scheduler::current_slot();
  if (self == nullptr || self->body->thrown == nullptr) return exit_reason::error(std::move(why));
  // One less than at the throw, since an exception that is handled is in flight no more.
  if (self->body->thrown->level() != current_thread().exceptions->uncaught + 1) {
    return exit_reason::error(std::move(why));
  }
  return std::exchange(self->body->thrown, nullptr)->reason(std::move(why));
}

}  // namespace smarm::detail
