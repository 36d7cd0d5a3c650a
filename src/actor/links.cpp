// Links, exit signals, and the ties of a new actor.
//
// Lock order: the lock of a pair, then a slot's. The pair's is there because link and unlink change
// a half at each actor, and two actors that link and unlink each other at the same moment must not
// leave one half behind. An exit needs it not: it takes all its own halves, and what it finds at
// the other end, under that one's lock, decides whether a signal is due.
#include "actor/links.hpp"

#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include <smarm/link.hpp>
#include <smarm/this_actor.hpp>

#include "actor/actor_box.hpp"
#include "actor/mailbox_hook.hpp"
#include "actor/shared_state.hpp"
#include "base/raw_mutex.hpp"

namespace smarm {

namespace detail {

namespace {

// Gives a table that has become too full more buckets. Where there is no memory it stays slow.
void grow_links(pid of) noexcept {
  slot* const found = find_slot(of);
  if (found == nullptr) return;
  std::size_t wanted = 0;
  (void)if_box(*found, of.generation, [&](actor_box& box) { wanted = box.links.wanted_buckets(); });
  if (wanted == 0) return;
  link_table::buckets fresh(new (std::nothrow) half_link* [wanted] {});
  if (fresh == nullptr) return;
  link_table::buckets old;
  (void)if_box(*found, of.generation,
               [&](actor_box& box) { old = box.links.grow(std::move(fresh), wanted); });
}

// What became of a signal at its receiver, to be seen to when the lock has been left.
struct effect {
  waker wake;
  bool stops = false;

  void take_place(slot& on, std::uint32_t generation) const noexcept {
    wake.wake();
    if (stops) (void)stop_slot(on, generation);
  }
};

// Delivers a signal that is not a kill, under the lock. `message` is taken if the receiver traps
// exits; `why` then stays as it was.
effect receive_signal(actor_box& box, full_envelope& message, exit_reason& why,
                      bool normal_too) noexcept {
  if (box.traps_exits) return {box.append(*message.release())};
  if (why.is_normal() && !normal_too) return {};
  box.note_stop(why);
  return {{}, true};
}

}  // namespace

void signal_from_link(pid to, pid from, const exit_reason& why) noexcept {
  slot* const found = find_slot(to);
  if (found == nullptr) return;
  owned_half_link unused;
  full_envelope message;
  exit_reason reason = why;
  effect what;
  (void)if_box(*found, to.generation, [&](actor_box& box) {
    unused.reset(box.links.erase(from));
    if (unused == nullptr) return;
    if (box.traps_exits) message.reset(&half_link::into_signal(*unused.release(), why));
    what = receive_signal(box, message, reason, false);
  });
  what.take_place(*found, to.generation);
}

// ---- the ties of a new actor -----------------------------------------------------------------

namespace {

class bond_birth final : public birth {
 public:
  bond_birth(bool with_link, mailbox_hook* hook)
      : spawner_(self_box("spawn with ties")), fresh_box_(new actor_box), hook_(hook) {
    if (!with_link) return;
    mine_.reset(half_link::make({}));
    theirs_.reset(half_link::make(spawner_.who));
  }
  ~bond_birth() override {
    fresh_box_->drop_reference();
    if (hook_ != nullptr) hook_->drop_reference();
    if (grow_) grow_links(spawner_.who);
  }

  void attend(slot& fresh, pid who) noexcept override {
    if (mine_ != nullptr) {
      fresh_box_->home = &fresh;
      fresh_box_->who = who;
      install_first_extension(fresh, *fresh_box_);
      fresh_box_->links.insert(*theirs_.release());
      mine_->peer = who;
      const raw_guard guard(spawner_.home->lock);
      spawner_.links.insert(*mine_.release());
      grow_ = spawner_.links.wanted_buckets() > 0;
    }
    if (hook_ != nullptr) {
      hook_->attached_at_birth(who);
      install_first_hook(fresh, *hook_);
    }
  }

 private:
  actor_box& spawner_;
  actor_box* const fresh_box_;
  mailbox_hook* const hook_;
  owned_half_link mine_;
  owned_half_link theirs_;
  bool grow_ = false;
};

}  // namespace

std::unique_ptr<birth> make_bonds(bonds which) {
  mailbox_hook* const hook =
      which.monitored ? mailbox_hook::make(self_box("spawn with ties"), {}, {}) : nullptr;
  try {
    return std::make_unique<bond_birth>(which.linked, hook);
  } catch (...) {
    if (hook != nullptr) hook->drop_reference();
    throw;
  }
}

birth_monitor::birth_monitor(bool with_link) {
  mailbox_hook* const hook = mailbox_hook::make(self_box("spawn_monitor"), {}, {});
  watch_ = monitor_access::make(hook);
  hook->add_reference();
  try {
    birth_ = std::make_unique<bond_birth>(with_link, hook);
  } catch (...) {
    hook->drop_reference();
    throw;
  }
}

birth_monitor::~birth_monitor() = default;

}  // namespace detail

using detail::actor_box;

// ---- exit signals ----------------------------------------------------------------------------

void exit(exit_reason why) {
  if (!is_actor()) throw misuse("smarm::exit: this thread is no actor");
  throw exit_request{std::move(why)};
}

void exit(pid who, const exit_reason& why) {
  if (why.is("kill")) {
    kill(who);
    return;
  }
  const pid me = is_actor() ? self() : pid{};
  const bool to_itself = me == who;
  detail::full_envelope message = detail::envelope_of(exit_signal{me, why});
  exit_reason reason = why;
  detail::effect what;
  if (!detail::with_box(who, [&](actor_box& box) {
        what = detail::receive_signal(box, message, reason, to_itself);
      })) {
    return;
  }
  if (detail::slot* const found = detail::find_slot(who)) what.take_place(*found, who.generation);
  if (to_itself) detail::stop_point();
}

void kill(pid who) {
  exit_reason reason = exit_reason::killed();
  if (!detail::with_box(who, [&](actor_box& box) { box.note_stop(reason); })) return;
  (void)request_stop(who);
  if (is_actor() && self() == who) detail::stop_point();
}

bool trap_exit(bool on) {
  actor_box& box = detail::self_box("trap_exit");
  const detail::raw_guard guard(box.home->lock);
  return std::exchange(box.traps_exits, on);
}

// ---- links -----------------------------------------------------------------------------------

std::expected<void, no_such_actor> link(pid who) {
  actor_box& mine = detail::self_box("link");
  if (who == mine.who) return {};
  detail::owned_half_link here(detail::half_link::make(who));
  detail::owned_half_link there(detail::half_link::make(mine.who));
  // Made before, so that nothing fails between the halves.
  bool lives = detail::with_box(who, [](actor_box&) {});
  bool traps = false;
  {
    const std::lock_guard pair(detail::shared().pairs.of(mine.who, who));
    {
      const detail::raw_guard guard(mine.home->lock);
      if (mine.links.find(who) != nullptr) return {};
      mine.links.insert(*here.release());
    }
    lives = lives && detail::with_box(who, [&](actor_box& box) {
              if (box.links.find(mine.who) == nullptr) box.links.insert(*there.release());
            });
    if (!lives) {
      detail::full_envelope message;
      const detail::raw_guard guard(mine.home->lock);
      here.reset(mine.links.erase(who));
      // Gone already: it lived when the half was there, and its end has been told.
      if (here == nullptr) return {};
      traps = mine.traps_exits;
      if (traps) {
        // The caller runs, so nobody waits for this.
        static_cast<void>(
            mine.append(detail::half_link::into_signal(*here.release(), exit_reason::noproc())));
      }
    }
  }
  detail::grow_links(mine.who);
  detail::grow_links(who);
  if (lives || traps) return {};
  return std::unexpected(no_such_actor{who});
}

void unlink(pid who) {
  actor_box& mine = detail::self_box("unlink");
  detail::owned_half_link here;
  detail::owned_half_link there;
  const std::lock_guard pair(detail::shared().pairs.of(mine.who, who));
  {
    const detail::raw_guard guard(mine.home->lock);
    here.reset(mine.links.erase(who));
  }
  detail::slot* const found = detail::find_slot(who);
  if (here == nullptr || found == nullptr) return;
  (void)detail::if_box(*found, who.generation,
                       [&](actor_box& box) { there.reset(box.links.erase(mine.who)); });
}

bool is_linked(pid who) {
  actor_box& mine = detail::self_box("is_linked");
  const detail::raw_guard guard(mine.home->lock);
  return mine.links.find(who) != nullptr;
}

}  // namespace smarm
