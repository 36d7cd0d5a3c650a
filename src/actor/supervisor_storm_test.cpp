// A supervisor of ten thousand, of which one is killed at random all the time: whoever was killed
// is started again, once, and nobody is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <smarm/report.hpp>
#include <smarm/supervisor.hpp>

#include "actor/actor_fixture.hpp"
#include "base/atomic.hpp"
#include "tests/support/every_way_test.hpp"
#include "tests/support/seed.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;

// Without the count of allocations: the pools keep some of what so many needed.
using supervisor_storm_test = test::run_fixture<unsigned, test::with_schedulers>;
SMARM_TEST_AT_1_2_8(supervisor_storm_test);

// Who each child is at present, and how often any was started.
struct roll {
  explicit roll(std::size_t children) : present(children) {}

  struct place {
    detail::atomic<std::uint64_t> who{0};
  };
  void enter(std::size_t child, pid who) {
    const std::uint64_t packed = std::uint64_t{who.generation} << 32 | who.index;
    present[child].who.store(packed, detail::relaxed);
    starts.fetch_add(1, detail::relaxed);
  }
  [[nodiscard]] pid of(std::size_t child) const {
    const std::uint64_t packed = present[child].who.load(detail::relaxed);
    return {static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(packed >> 32)};
  }

  std::vector<place> present;
  detail::atomic<std::uint64_t> starts{0};
};

std::vector<child_spec> children_of(const std::shared_ptr<roll>& book) {
  std::vector<child_spec> specs;
  for (std::size_t i = 0; i < book->present.size(); ++i) {
    child_spec spec{.id = static_cast<std::int64_t>(i)};
    spec.start = [book, i] {
      return start_link({}, [book, i](starting& me) {
        book->enter(i, self());
        me.ready();
        test::wait_for_ever();
      });
    };
    specs.push_back(std::move(spec));
  }
  return specs;
}

TEST_P(supervisor_storm_test, ten_thousand_children_survive_that_one_is_killed_all_the_time) {
  const auto before = set_report_handler([](const report&) {});
  run([] {
    const auto children = static_cast<std::size_t>(test::soaking() ? 10'000 : test::scaled(10'000));
    const auto book = std::make_shared<roll>(children);
    const auto tree = start_supervisor_link({.intensity = 10'000'000}, children_of(book));
    ASSERT_TRUE(tree.has_value());
    auto random = test::make_rng();
    std::uint64_t killed = 0;
    const auto until = std::chrono::steady_clock::now() + (test::soaking() ? 10s : 1s);
    while (std::chrono::steady_clock::now() < until) {
      const pid victim = book->of(random() % children);
      auto watch = monitor(victim);
      if (!watch.try_recv()) {  // alive when it was watched, and nobody else ends it
        kill(victim);
        EXPECT_TRUE(watch.recv().reason.is_killed());
        ++killed;
      }
      sleep_for(100us);
    }
    // The supervisor answers in turn: what it was told of before is done.
    const supervisor_ref top(*tree);
    const auto counts = top.count_children(test::long_enough);
    ASSERT_TRUE(counts.has_value());
    EXPECT_EQ(counts->active, children);
    EXPECT_EQ(book->starts.load(detail::relaxed), children + killed);
    EXPECT_GT(killed, 10U);
    unlink(*tree);
    EXPECT_TRUE(top.stop(exit_reason::shutdown()).has_value());
    for (std::size_t i = 0; i < children; ++i) EXPECT_FALSE(test::is_alive(book->of(i)));
  });
  set_report_handler(before);
}

}  // namespace
}  // namespace smarm
