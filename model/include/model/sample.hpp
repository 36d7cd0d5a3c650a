// sample holds the strategies for models that are too large to exhaust: random takes any thread
// that can go on; pct (Burckhardt et al., ASPLOS 2010) runs by random priorities with a few random
// changes, and finds a bug that needs d ordered steps with probability 1 / (n * k^(d-1)) a run or
// more. Both take sources and places in modification order at random. The same seed makes the same
// runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "model/walk.hpp"

namespace model {

class random_walk : public walk {
 public:
  random_walk(std::uint64_t runs, std::uint64_t seed) : left_(runs), random_(seed) {}

  [[nodiscard]] bool next() override {
    if (left_ == 0) return false;
    --left_;
    forget();
    return true;
  }
  [[nodiscard]] std::size_t pick(const std::vector<std::size_t>& able) override {
    return able[below(able.size())];
  }

 protected:
  [[nodiscard]] std::size_t decide(const std::vector<way>& ways, std::uint32_t) override {
    return ways.size() == 1 ? 0 : below(ways.size());
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  std::uint64_t left_;
  std::mt19937_64 random_;
};

class pct_walk final : public random_walk {
 public:
  pct_walk(std::uint64_t runs, std::uint64_t seed, unsigned depth)
      : random_walk(runs, seed), depth_(depth) {}

  [[nodiscard]] bool next() override {
    if (!random_walk::next()) return false;
    for (std::size_t t = 0; t < threads_max; ++t) priority_[t] = depth_ + t;
    for (std::size_t t = threads_max; t-- > 1;) std::swap(priority_[t], priority_[below(t + 1)]);
    changes_.clear();
    for (unsigned c = 1; c < depth_; ++c) changes_.push_back(1 + below(longest_));
    step_ = 0;
    return true;
  }

  [[nodiscard]] std::size_t pick(const std::vector<std::size_t>& able) override {
    const auto first = [this, &able] {
      return *std::ranges::max_element(able, {}, [this](std::size_t t) { return priority_[t]; });
    };
    if (able.size() > 1) {
      ++step_;
      for (std::size_t c = 0; c < changes_.size(); ++c)
        if (changes_[c] == step_) priority_[first()] = depth_ - 1 - c;
    }
    return first();
  }

  void finished(std::size_t) override { longest_ = std::max(longest_, step_); }

 private:
  unsigned depth_;
  std::uint64_t longest_ = 1;
  std::uint64_t step_ = 0;
  std::array<std::uint64_t, threads_max> priority_{};
  std::vector<std::uint64_t> changes_;
};

}  // namespace model
