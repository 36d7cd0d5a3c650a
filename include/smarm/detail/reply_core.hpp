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

// call_layout says how a call's block is laid out: the envelope of the request, where it shares the
// block, then the cell, then the place of the reply. Each is worked out where the types are known.
inline constexpr std::size_t reply_cell_size = 104;
inline constexpr std::size_t call_align_max = 16;  // of what may share a block

struct call_layout {
  // A block for a reply of that type, with so much before the cell.
  constexpr call_layout(const value_type& reply, std::size_t request_size) noexcept
      : front(static_cast<std::uint32_t>(request_size)),
        place(static_cast<std::uint32_t>((reply_cell_size + reply.align - 1) & ~(reply.align - 1))),
        size(static_cast<std::uint32_t>(front + place + reply.size)),
        align(static_cast<std::uint32_t>(reply.align)),
        destroy(reply.destroy) {}

  std::uint32_t front;  // from the block to the cell; 0: the envelope lies elsewhere
  std::uint32_t place;  // from the cell to the reply
  std::uint32_t size;
  std::uint32_t align;
  void (*destroy)(void* reply) noexcept;
};

// request_size is what an envelope with a payload of that size takes in such a block.
[[nodiscard]] constexpr std::size_t request_size(std::size_t payload) noexcept {
  return (sizeof(envelope) + payload + call_align_max - 1) & ~(call_align_max - 1);
}
// reply_layout_of is the layout of a cell alone, shared_layout_of of one behind its request.
template <class Reply>
inline constexpr call_layout reply_layout_of{value_type_of<Reply>, 0};
template <class Reply, class Payload>
inline constexpr call_layout shared_layout_of{value_type_of<Reply>, request_size(sizeof(Payload))};

// reply_create makes a cell for a reply; one half is the caller's, one the answerer's. call_create
// makes it behind the envelope of its request, which has a reference of its own. Both throw
// std::bad_alloc.
[[nodiscard]] reply_cell* reply_create(const call_layout& layout);
[[nodiscard]] reply_cell* call_create(const call_layout& layout, const message_type& request);
[[nodiscard]] inline envelope& call_envelope(reply_cell& cell, const call_layout& layout) noexcept {
  // SAFETY: call_create has made it there.
  return *reinterpret_cast<envelope*>(reinterpret_cast<std::byte*>(&cell) - layout.front);
}
// call_give_back is give_back of the types of such envelopes.
void call_give_back(envelope& empty) noexcept;

// reply_place is where the value lies; the answerer makes it there before reply_send.
template <class Reply>
[[nodiscard]] void* reply_place(reply_cell& cell) noexcept {
  return reinterpret_cast<std::byte*>(&cell) + reply_layout_of<Reply>.place;
}

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
