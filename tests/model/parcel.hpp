// parcel is a value that travels: who reads it races with whoever wrote it, unless what carried it
// ordered the two.
#pragma once

#include "model/cell.hpp"

namespace smarm::under_model {

class parcel {
 public:
  explicit parcel(int content) : content_(content) {}
  parcel(parcel&& from) noexcept : content_(from.content_.read()) {}
  parcel& operator=(parcel&&) = delete;
  parcel(const parcel&) = delete;
  parcel& operator=(const parcel&) = delete;
  // Its end is a look at it, so that whoever destroys it has to come after whoever made it.
  ~parcel() { static_cast<void>(content_.read()); }

  [[nodiscard]] int content() const { return content_.read(); }

 private:
  model::cell<int> content_;
};

}  // namespace smarm::under_model
