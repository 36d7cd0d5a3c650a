// thrown keeps the stack of an exception that ends an actor, as it stood at the throw.
//
//   try {
//     f();
//   } catch (const forced_stop&) {     // who is taken before the probe pays for no capture
//     ...
//   } catch (const stack_probe&) {     // nobody ever comes here, but the compiler must not know
//     std::abort();
//   } catch (...) {
//     return caught_reason();
//   }
//
// How: an exception is thrown in two phases. The first walks up and asks each handler whether it
// takes the exception, while the stack that threw it still stands; the second unwinds. A handler is
// asked through the type_info of what it catches. stack_probe's is our own: asked, it walks the
// stack, keeps the return addresses, and says no, so that the `catch (...)` behind it is taken.
// Hence an exception that is caught within f costs nothing, and neither does f that throws none.
//
// Invariants
//   1. At most one capture waits in a body, between the question and the handler: its `thrown`. The
//      actor may park there, in destructors. An exception within those is another's: it has a
//      greater level (exceptions in flight), gets no stack, and leaves the first one's alone.
//   2. Each try block that asks the probe ends in caught_reason, which takes what waits.
// Threads: the running actor. On a thread that is no actor nothing is captured.
// Why not the others: an interposed __cxa_throw is process-wide and makes every throw dearer; a
// frame with a personality routine of its own costs each actor a frame and is assembler.
#pragma once

#include <smarm/exit_reason.hpp>

namespace smarm::detail {

// stack_probe stands in a handler that is asked and never entered. There is none, and its
// type_info, which thrown.cpp defines, is emitted nowhere else, for want of the destructor's body.
class stack_probe {
 public:
  stack_probe() = delete;
  virtual ~stack_probe();
};

// caught_reason is the error with the exception that is being handled, and with its stack where
// that was captured. In the handler behind a stack_probe's.
[[nodiscard]] exit_reason caught_reason() noexcept;

}  // namespace smarm::detail
