// envelope_queue is a list of messages in the order of their arrival. It owns what stands in it.
// Threads: none of its own.
#pragma once

#include <utility>

#include <smarm/detail/envelope.hpp>

namespace smarm::detail {

class envelope_queue {
 public:
  envelope_queue() = default;
  envelope_queue(const envelope_queue&) = delete;
  envelope_queue& operator=(const envelope_queue&) = delete;
  ~envelope_queue() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] envelope* front() const noexcept { return first_; }
  [[nodiscard]] envelope* back() const noexcept { return last_; }

  void push_back(envelope& message) noexcept {
    message.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &message;
    last_ = &message;
  }
  // append_all moves everything of the other queue to the end of this one.
  void append_all(envelope_queue& other) noexcept {
    if (other.empty()) return;
    (last_ == nullptr ? first_ : last_->next) = other.first_;
    last_ = std::exchange(other.last_, nullptr);
    other.first_ = nullptr;
  }
  // take takes the message behind `before` out, or the first where that is null.
  [[nodiscard]] full_envelope take(envelope* before) noexcept {
    envelope*& link = before == nullptr ? first_ : before->next;
    envelope* const taken = link;
    link = taken->next;
    if (last_ == taken) last_ = before;
    return full_envelope(taken);
  }
  void clear() noexcept {
    while (first_ != nullptr) {
      const full_envelope gone = take(nullptr);
    }
  }
  void swap(envelope_queue& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
  }

 private:
  envelope* first_ = nullptr;
  envelope* last_ = nullptr;
};

}  // namespace smarm::detail
