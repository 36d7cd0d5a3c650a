// A replay string is an execution as text: whose turn it is, step by step, and for a step that did
// not do the usual thing how far from it it was: the number of newer writes that a read passed
// over, of later writes that a write went before, of the alternative that was chosen; an `s` is a
// weak compare_exchange that failed without a reason.
//
//   0x3-1-2.1-1x2     three steps of thread 0, one of 1, one of 2 that reads the write before the
//   last
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/walk.hpp"

namespace model {

struct replay_step {
  std::size_t thread = 0;
  std::uint64_t distance = 0;
  bool spurious = false;
  [[nodiscard]] bool is_usual() const { return distance == 0 && !spurious; }
};

// recorder makes the text of a run of its steps.
class recorder {
 public:
  // note adds a step to the string.
  void note(const replay_step& s) {
    if (s.is_usual() && last_.is_usual() && last_.thread == s.thread && repeats_ > 0) {
      ++repeats_;
      return;
    }
    flush();
    last_ = s;
    repeats_ = 1;
  }
  [[nodiscard]] std::string text() {
    flush();
    return text_;
  }

 private:
  void flush() {
    if (repeats_ == 0) return;
    if (!text_.empty()) text_ += '-';
    text_ += std::to_string(last_.thread);
    if (!last_.is_usual()) text_ += '.' + std::to_string(last_.distance);
    if (last_.spurious) text_ += 's';
    if (repeats_ > 1) text_ += 'x' + std::to_string(repeats_);
    repeats_ = 0;
  }

  std::string text_;
  replay_step last_;
  std::uint64_t repeats_ = 0;
};

// replay_walk repeats a recorded run once. Where the text is at an end, or does not fit, it goes on
// in the usual way; whether it fitted is for the caller to ask.
class replay_walk final : public walk {
 public:
  explicit replay_walk(const std::string& text) { read(text); }

  [[nodiscard]] bool next() override { return runs_++ == 0; }

  [[nodiscard]] std::size_t pick(const std::vector<std::size_t>& able) override {
    if (at_ >= steps_.size()) return able.front();
    for (const std::size_t thread : able)
      if (thread == steps_[at_].thread) return thread;
    fits_ = false;
    at_ = steps_.size();
    return able.front();
  }

  [[nodiscard]] extension extend(event_id id, const access& a) override {
    const extension how = walk::extend(id, a);
    if (how == extension::added && at_ < steps_.size()) ++at_;
    return how;
  }

  [[nodiscard]] bool fits() const { return fits_; }

 protected:
  [[nodiscard]] std::size_t decide(const std::vector<way>& ways, std::uint32_t usual) override {
    const replay_step step = at_ < steps_.size() ? steps_[at_] : replay_step{};
    for (std::size_t i = ways.size(); i-- > 0;) {
      const std::uint32_t p = ways[i].position;
      const std::uint32_t distance = p < usual ? usual - p : p - usual;
      if (distance == step.distance && ways[i].spurious == step.spurious) return i;
    }
    if (at_ < steps_.size()) fits_ = false;
    return ways.size() - 1;
  }
  [[nodiscard]] bool takes_blocked() const override { return at_ < steps_.size(); }

 private:
  void read(const std::string& text) {
    const char* at = text.c_str();
    while (*at != '\0') {
      char* end = nullptr;
      replay_step s;
      s.thread = std::strtoull(at, &end, 10);
      if (end == at) break;
      std::uint64_t times = 1;
      if (*end == '.') {
        s.distance = std::strtoull(end + 1, &end, 10);
        s.spurious = *end == 's';
        end += s.spurious;
      }
      if (*end == 'x') times = std::strtoull(end + 1, &end, 10);
      for (std::uint64_t i = 0; i < times && steps_.size() < 100'000; ++i) steps_.push_back(s);
      at = *end == '-' ? end + 1 : end;
      if (*end != '-' && *end != '\0') break;
    }
    fits_ = *at == '\0' && !steps_.empty();
  }

  std::vector<replay_step> steps_;
  std::size_t at_ = 0;
  int runs_ = 0;
  bool fits_ = false;
};

}  // namespace model
