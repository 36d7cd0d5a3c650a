// The part of a call that does not depend on its types, as the templates see it: the reply cell
// that the caller and whoever answers share, and the posting of the request that carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/envelope.hpp>
#include <smarm/detail/value_type.hpp>
#include <smarm/exit_reason.hpp>
#include <smarm/pid.hpp>

namespace smarm::detail {

class reply_cell;

// What has become of a call.
enum class reply_status : std::uint8_t {
  pending,  // nothing yet: the deadline passed
  replied,  // the value lies in its place, the caller's until it drops the cell
  died,     // the server ended: reply_reason
};

// reply_create makes a cell for a reply of that type; one half is the caller's, one the answerer's.
// Throws std::bad_alloc.
[[nodiscard]] reply_cell* reply_create(const value_type& type);
// call_create makes a cell and the envelope of its request in one block, the envelope first. None
// is aligned to more than call_align_max. Throws std::bad_alloc.
inline constexpr std::size_t call_align_max = 16;
[[nodiscard]] reply_cell* call_create(const value_type& reply, const message_type& request);
[[nodiscard]] envelope& call_envelope(reply_cell& cell) noexcept;
// call_give_back is give_back of the types of such envelopes.
void call_give_back(envelope& empty) noexcept;

// reply_place is where the value lies; the answerer makes it there before reply_send.
[[nodiscard]] void* reply_place(reply_cell& cell) noexcept;

// The answerer's. reply_send publishes the value and drops the answerer's half; false: nobody waits
// any more, and the value was destroyed. Never parks; no stop point.
[[nodiscard]] bool reply_send(reply_cell& cell) noexcept;
[[nodiscard]] bool reply_is_awaited(const reply_cell& cell) noexcept;
void reply_drop_answerer(reply_cell& cell) noexcept;

// The caller's. reply_wait parks until something has become of the call, or the deadline passes; a
// stop point on entry and while parked.
[[nodiscard]] reply_status reply_wait(reply_cell& cell, deadline until);
// reply_wait_any waits for the first of several, and says which; their number: none until the
// deadline.
[[nodiscard]] std::size_t reply_wait_any(std::span<reply_cell* const> cells, deadline until);
[[nodiscard]] reply_status reply_look(const reply_cell& cell) noexcept;
[[nodiscard]] const exit_reason& reply_reason(const reply_cell& cell) noexcept;
// reply_drop_caller gives the call up where it is pending, and destroys a value that has come.
void reply_drop_caller(reply_cell& cell) noexcept;

enum class post_status : std::uint8_t { sent, noproc, full, calling_self };

// post_request puts the request into the server's mailbox and, in the same step, ties the cell to
// the server's end: who calls then gets a reply or hears of the death. Unless the answer is `sent`
// the envelope stays with the caller. Any thread; never parks. Throws std::bad_alloc.
[[nodiscard]] post_status post_request(pid to, full_envelope& request, reply_cell& cell);
// post_and_wait is post_request and, where that has sent it, reply_wait in one.
[[nodiscard]] post_status post_and_wait(pid to, full_envelope& request, reply_cell& cell,
                                        deadline until, reply_status& outcome);

// reply_ref is one half of a cell, or nothing; Drop is what its going does.
template <void (*Drop)(reply_cell&) noexcept>
class reply_ref {
 public:
  reply_ref() noexcept = default;
  explicit reply_ref(reply_cell* adopted) noexcept : cell_(adopted) {}
  reply_ref(reply_ref&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  reply_ref& operator=(reply_ref&& other) noexcept {
    if (this != &other) {
      reply_cell* const old = std::exchange(cell_, std::exchange(other.cell_, nullptr));
      if (old != nullptr) Drop(*old);
    }
    return *this;
  }
  ~reply_ref() {
    if (cell_ != nullptr) Drop(*cell_);
  }

  // release gives the half to the caller.
  [[nodiscard]] reply_cell* release() noexcept { return std::exchange(cell_, nullptr); }
  [[nodiscard]] reply_cell* get() const noexcept { return cell_; }
  [[nodiscard]] reply_cell& require(const char* what) const {
    if (cell_ == nullptr) throw_empty_endpoint(what);
    return *cell_;
  }

 private:
  reply_cell* cell_ = nullptr;
};

using answerer_ref = reply_ref<&reply_drop_answerer>;
using caller_ref = reply_ref<&reply_drop_caller>;

}  // namespace smarm::detail
