// request_collection waits for the replies to many requests, whichever comes first.
//
//   smarm::request_collection<int, std::string> asked;
//   for (auto& [name, ref] : shards) asked.add(ref.send_request(count{}), name);
//   while (auto next = asked.wait_any(5s)) {
//     ... next->label, next->outcome ...
//   }
//
// Dropping it gives up the calls that are left.
// Threads: one at a time.
// Source: OTP 25, gen_server(3): reqids_add/3, receive_response/3.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <smarm/call.hpp>
#include <smarm/deadline.hpp>
#include <smarm/detail/reply_core.hpp>

namespace smarm {

template <class R, class Label = std::size_t>
class request_collection {
 public:
  struct response {
    Label label;
    call_result<R> outcome;
  };

  // add puts a request that has not been waited out into the collection.
  void add(request<R> asked, Label label) {
    entries_.push_back({std::move(asked), std::move(label)});
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

  // wait_any takes out the request that first has an outcome, a reply or a failure, and returns
  // that; nothing: the collection is empty, or none has one until the deadline, and all stay.
  // Parks; a stop point on entry and while parked; blocks a thread that is no actor.
  [[nodiscard]] std::optional<response> wait_any(deadline until) {
    if (entries_.empty()) return std::nullopt;
    std::vector<detail::reply_cell*> cells;
    cells.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      detail::reply_cell* const cell = detail::call_access::cell_of(entries_[i].asked);
      if (cell == nullptr) return take(i);  // it was refused when it was sent
      cells.push_back(cell);
    }
    const std::size_t which = detail::reply_wait_any(cells, until);
    if (which == cells.size()) return std::nullopt;
    return take(which);
  }

 private:
  struct entry {
    request<R> asked;
    Label label;
  };

  response take(std::size_t which) {
    entry taken = std::move(entries_[which]);
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(which));
    return {std::move(taken.label), taken.asked.check_response()};
  }

  std::vector<entry> entries_;  // in the order in which they were added
};

}  // namespace smarm
