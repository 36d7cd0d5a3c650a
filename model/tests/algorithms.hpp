// Known lock-free algorithms, small, with every memory order replaceable by name: what a checker of
// algorithms has to judge right, and which weakenings it has to notice.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace algorithms {

// orders gives each access its order by the name of its site; one of them may be another.
struct orders {
  std::string site;                    // empty: none is changed; `name!fail` is a failure order
  std::memory_order changed{};         //
  bool dropped = false;                // the site is a fence that is left out
  std::uint64_t* completed = nullptr;  // counts the executions that reach their end

  [[nodiscard]] std::memory_order operator()(const char* name, std::memory_order usual) const {
    return site == name ? changed : usual;
  }
  void fence(const char* name, std::memory_order usual) const {
    if (site == name && dropped) return;
    model::fence((*this)(name, usual));
  }
};

struct algorithm {
  std::string id;
  std::string name;
  std::function<void(const orders&)> body;
};

// What a test prints of its parameter.
inline void PrintTo(const algorithm& a, std::ostream* out) { *out << a.name; }

// all lists the algorithms.
[[nodiscard]] std::vector<algorithm> all();

}  // namespace algorithms
