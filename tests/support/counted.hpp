// counted is a value that knows how many of its kind live: what was constructed must be destroyed,
// exactly once, whichever way a message took.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace smarm::test {

// A ledger counts the values that were made with it; the test owns it and it outlives them.
struct ledger {
  std::atomic<std::int64_t> made{0};   // not by a move
  std::atomic<std::int64_t> alive{0};  // objects, moved-from ones too
  std::atomic<std::int64_t> full{0};   // objects that hold a value
};

// counted is move-only and holds a number until it is moved from.
class counted {
 public:
  counted(ledger& book, std::int64_t number) : book_(&book), number_(number) {
    ++book.made;
    ++book.alive;
    ++book.full;
  }
  counted(counted&& other) noexcept
      : book_(other.book_), number_(other.number_), full_(std::exchange(other.full_, false)) {
    ++book_->alive;
  }
  counted& operator=(counted&& other) noexcept {
    if (this != &other) {
      if (full_) --book_->full;
      number_ = other.number_;
      full_ = std::exchange(other.full_, false);
    }
    return *this;
  }
  ~counted() {
    --book_->alive;
    if (full_) --book_->full;
  }

  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  [[nodiscard]] bool is_full() const noexcept { return full_; }

 private:
  ledger* book_;
  std::int64_t number_;
  bool full_ = true;
};

}  // namespace smarm::test
