// The chunk table under the checker: look-ups against a chunk that is put in its place, and two
// threads that would put one there.
//
// Proves: an element that is found has been constructed; of two chunks for one place one stands,
// for both threads, and the other is its maker's to free. Outside: more chunks, each of which is a
// place of its own.
#include "base/chunk_table.hpp"
#include "model/cell.hpp"
#include "tests/model/protocol.hpp"

namespace smarm::detail {
namespace {

struct element {
  model::cell<int> content{0};
};
using table = chunk_table<element, 2, 2>;

element* make() {
  auto* const made = new element[table::chunk_size];
  for (std::size_t i = 0; i < table::chunk_size; ++i) made[i].content.write(7);
  return made;
}

PROTOCOL(chunk_table_look_up_against_growth) {
  table all;
  model::parallel([&] { model::expect(all.publish(1, make()) != nullptr); },
                  [&] {
                    model::expect(all.find(1) == nullptr, "the other chunk is not there");
                    element* const found = all.find(3);
                    if (found != nullptr) model::expect(found->content.read() == 7, "constructed");
                  });
  model::expect(all.find(4) == nullptr, "beyond the table's end");
  delete[] all.find_chunk(1);
}

PROTOCOL(chunk_table_two_grow) {
  table all;
  element* got[2] = {};
  const auto grow = [&](int self) {
    element* const made = make();
    got[self] = all.publish(0, made);
    model::expect(got[self]->content.read() == 7, "what stands there is constructed");
    if (got[self] != made) delete[] made;
  };
  model::parallel([&] { grow(0); }, [&] { grow(1); });
  model::expect(got[0] == got[1] && got[0] == all.find(0), "one stands, for both");
  delete[] got[0];
}

}  // namespace
}  // namespace smarm::detail
