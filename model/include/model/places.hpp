// places knows, for one run, which atomics and cells live at which address.
//
// A place is found by its address, so that a model::atomic<T> is as large as a T and the layouts of
// the code under test stay what they are. What identifies it in the graph is not the address but
// the location number: the thread that constructed it and the how-many-eth of that thread it was;
// for an object of static duration its address, which does not change within a process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/clock.hpp"
#include "model/value.hpp"

namespace model {

// epoch is a moment between two events of a thread: it is over for whoever knows event `count - 1`.
struct epoch {
  std::uint16_t thread = 0;
  std::uint16_t count = 0;
  [[nodiscard]] bool is_before(const clock& c) const { return c.count[thread] >= count; }
};

struct place {
  const void* address = nullptr;
  std::uint32_t location = 0;
  std::uint32_t site = 0;  // where it was constructed
  bool dead = false;
  bool is_static = false;
  bool written = false;  // cell: there is a `write`
  value first;           // the value it was constructed with
  epoch made;
  epoch write;                   // cell: the last one
  std::uint32_t write_site = 0;  //
  std::array<std::uint16_t, threads_max>
      uses{};  // per thread, the last access (cell: the last read)
  std::array<std::uint32_t, threads_max> use_sites{};
  const char* name = nullptr;
};

class places {
 public:
  // reset forgets the places of a run; location numbers stay what they were.
  void reset() {
    all_.clear();
    counts_.fill(0);
    ++generation_;
  }

  // add makes a place for a fresh object of the thread.
  place& add(const void* address, std::size_t thread) {
    auto& numbers = numbers_[thread];
    const std::size_t n = counts_[thread]++;
    if (n == numbers.size()) numbers.push_back(next_++);
    return insert(address, numbers[n]);
  }

  // add_static makes a place for an object that existed before the run.
  place& add_static(const void* address) {
    auto [entry, fresh] = static_numbers_.try_emplace(address, next_);
    next_ += fresh;
    place& made = insert(address, entry->second);
    made.is_static = true;
    return made;
  }

  // companion gives the location that the checker keeps beside one of the model's: a futex's queue.
  [[nodiscard]] std::uint32_t companion(std::uint32_t location) {
    auto [entry, fresh] = companions_.try_emplace(location, next_);
    next_ += fresh;
    return entry->second;
  }

  // find returns the place at an address, alive or dead, or null.
  [[nodiscard]] place* find(const void* address) {
    for (std::size_t i = slot(address);; i = (i + 1) & (table_.size() - 1)) {
      entry& e = table_[i];
      if (e.generation != generation_) return nullptr;
      if (e.address == address) return &all_[e.index];
    }
  }

  // of returns the place of a location number.
  [[nodiscard]] place* of(std::uint32_t location) {
    for (place& p : all_)
      if (p.location == location) return &p;
    return nullptr;
  }

  [[nodiscard]] std::vector<place>& all() { return all_; }

 private:
  struct entry {
    const void* address = nullptr;
    std::uint32_t generation = 0;
    std::uint32_t index = 0;
  };

  [[nodiscard]] std::size_t slot(const void* address) const {
    const auto bits = reinterpret_cast<std::uintptr_t>(address);
    return ((bits >> 2) * 0x9e3779b97f4a7c15ULL >> 40) & (table_.size() - 1);
  }

  place& insert(const void* address, std::uint32_t location) {
    if ((all_.size() + 1) * 2 > table_.size()) grow();
    all_.push_back({});
    all_.back().address = address;
    all_.back().location = location;
    link(address, static_cast<std::uint32_t>(all_.size() - 1));
    return all_.back();
  }

  void link(const void* address, std::uint32_t index) {
    for (std::size_t i = slot(address);; i = (i + 1) & (table_.size() - 1)) {
      entry& e = table_[i];
      if (e.generation == generation_ && e.address != address) continue;
      e = {address, generation_, index};
      return;
    }
  }

  void grow() {
    table_.assign(table_.size() * 2, entry{});
    for (std::uint32_t i = 0; i < all_.size(); ++i) link(all_[i].address, i);
  }

  std::vector<place> all_;
  std::vector<entry> table_ = std::vector<entry>(1024);
  std::uint32_t generation_ = 1;
  std::array<std::size_t, threads_max> counts_{};
  std::array<std::vector<std::uint32_t>, threads_max> numbers_;
  std::unordered_map<const void*, std::uint32_t> static_numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> companions_;
  std::uint32_t next_ = 0;
};

}  // namespace model
