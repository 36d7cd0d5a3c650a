// exit_hook is how a higher layer learns that an actor has ended: a monitor is one.
//
// Hooks hang on the actor's slot under the slot's lock. The exit takes the whole list at once and
// then calls each hook outside the lock, so a hook that is removed at that moment may still be
// called: it is counted by reference and must bear a late call.
//
// An exit without hooks, as nearly all are, takes no lock. Who hangs a hook on writes it and then
// reads the state word; the exit writes the word and then reads whether there is a hook. All four
// are seq_cst, so one of the two sees the other: the exit finds the hook, or who hung it on finds
// the actor done and takes it off again.
#pragma once

#include <cstdint>

#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

#include "base/atomic.hpp"

namespace smarm::detail {

class exit_hook {
 public:
  exit_hook() = default;
  exit_hook(const exit_hook&) = delete;
  exit_hook& operator=(const exit_hook&) = delete;

  // on_exit is called once, on the scheduler that ran the actor, when its result has been
  // published. It must not park; it may send, wake and spawn nothing.
  virtual void on_exit(pid who, const exit_reason& why) noexcept = 0;

  void add_reference() noexcept {
    references_.fetch_add(1, relaxed);  // relaxed: whoever copies a reference already holds one
  }
  void drop_reference() noexcept { drop_references(1); }

 protected:
  // A hook that begins with the references of several holders.
  explicit exit_hook(std::uint32_t references) noexcept : references_(references) {}

  // drop_references drops what one holder has of them.
  void drop_references(std::uint32_t held) noexcept {
    if (let_go(held)) destroy();
  }
  // let_go does it for who deletes the hook itself: true: they were the last.
  [[nodiscard]] bool let_go(std::uint32_t held) noexcept {
    // acquire: as below. Who has all of them needs no exchange: nobody is left to copy one.
    return references_.load(acquire) == held ||
           // acq_rel: every use by the other holders happens before the deletion by the last one.
           references_.fetch_sub(held, acq_rel) == held;
  }
  virtual ~exit_hook() = default;

 private:
  void destroy() noexcept;

  friend struct exit_hook_list;
  exit_hook* next_ = nullptr;      // guarded by the lock of the slot it hangs on
  exit_hook* previous_ = nullptr;  // likewise; the first one's is the last
  atomic<std::uint32_t> references_{1};
};

// add_exit_hook hangs the hook on the actor and takes a reference; false: no such actor, nothing
// was taken. Any thread; never parks. An actor finds actors of its own runtime only.
[[nodiscard]] bool add_exit_hook(pid who, exit_hook& hook) noexcept;

// remove_exit_hook takes the hook off and drops the list's reference; false: the actor has ended
// and the hook was or will be called.
bool remove_exit_hook(pid who, exit_hook& hook) noexcept;

}  // namespace smarm::detail
