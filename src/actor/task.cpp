// How tasks end: what their owner does, and the reasons with which an await ends it.
#include <smarm/mailbox.hpp>
#include <smarm/task.hpp>
#include <smarm/this_actor.hpp>

namespace smarm::detail {

void require_owner(pid owner) {
  if (!is_actor() || self() != owner) {
    throw misuse("smarm::task: only the actor that made a task may wait for it");
  }
}

void exit_from_await(const exit_reason& why) {
  exit(exit_reason(term::tuple({why.to_term(), term::tuple({atom("task"), atom("await")})})));
}

void exit_from_timeout(pid task) {
  exit(exit_reason(
      term::tuple({atom("timeout"), term::tuple({atom("task"), atom("await"), task})})));
}

void end_task(pid task, bool brutally) {
  unlink(task);
  if (brutally) {
    kill(task);
  } else {
    exit(task, exit_reason::shutdown());
  }
}

void forget_task(pid task) {
  unlink(task);
  receive(when([task](const exit_signal& s) { return s.from == task; }, [](const exit_signal&) {}),
          after(deadline::from_ns(0), [] {}));
}

}  // namespace smarm::detail
