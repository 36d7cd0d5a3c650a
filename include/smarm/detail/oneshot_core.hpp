// The part of a oneshot that does not depend on the type of its value, as the templates see it.
#pragma once

#include <cstdint>
#include <utility>

#include <smarm/deadline.hpp>
#include <smarm/detail/value_type.hpp>

namespace smarm::detail {

class oneshot_core;
class waker;
enum class wait_reason : std::uint8_t;

// oneshot_create makes a oneshot with both its ends.
[[nodiscard]] oneshot_core* oneshot_create(const value_type& type);
// oneshot_place is where the value lies; between the sender's and the receiver's use it is theirs
// in turn, by the protocol of the calls below.
[[nodiscard]] void* oneshot_place(oneshot_core& core) noexcept;

// oneshot_send publishes the value in its place; false: the receiver is gone and the value is the
// caller's to destroy. Never parks; no stop point.
[[nodiscard]] bool oneshot_send(oneshot_core& core) noexcept;
[[nodiscard]] bool oneshot_receiver_gone(const oneshot_core& core) noexcept;
// oneshot_receive parks for `reason`, which dumps show.
[[nodiscard]] channel_status oneshot_receive(oneshot_core& core, deadline until,
                                             wait_reason reason);
[[nodiscard]] channel_status oneshot_receive(oneshot_core& core, deadline until);
[[nodiscard]] channel_status oneshot_try_receive(oneshot_core& core) noexcept;

// oneshot_enroll has the waker called when the sender speaks; false: it has. For a wait on several
// things at once, until oneshot_end_enrolment.
[[nodiscard]] bool oneshot_enroll(oneshot_core& core, const waker& wake) noexcept;
void oneshot_end_enrolment(oneshot_core& core) noexcept;

void oneshot_drop_sender(oneshot_core& core) noexcept;
// oneshot_drop_receiver destroys the value if it was sent, received or not.
void oneshot_drop_receiver(oneshot_core& core) noexcept;

// oneshot_ref is one end, or nothing; Drop is what its going does.
template <void (*Drop)(oneshot_core&) noexcept>
class oneshot_ref {
 public:
  oneshot_ref() noexcept = default;
  explicit oneshot_ref(oneshot_core* adopted) noexcept : core_(adopted) {}
  oneshot_ref(oneshot_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  oneshot_ref& operator=(oneshot_ref&& other) noexcept {
    if (this != &other) {
      oneshot_core* const old = std::exchange(core_, std::exchange(other.core_, nullptr));
      if (old != nullptr) Drop(*old);
    }
    return *this;
  }
  ~oneshot_ref() {
    if (core_ != nullptr) Drop(*core_);
  }

  [[nodiscard]] oneshot_core* get() const noexcept { return core_; }
  [[nodiscard]] oneshot_core& require() const {
    if (core_ == nullptr) throw_empty_endpoint("the oneshot end");
    return *core_;
  }

 private:
  oneshot_core* core_ = nullptr;
};

using oneshot_sender_ref = oneshot_ref<&oneshot_drop_sender>;
using oneshot_receiver_ref = oneshot_ref<&oneshot_drop_receiver>;

}  // namespace smarm::detail
