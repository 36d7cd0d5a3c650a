// Mistakes planted in the checker itself. Goal: none of them would go unnoticed by this suite.
// Method: each is switched on, and the litmus program named beside it has to come out wrong;
// without it the same program comes out right.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "litmus.hpp"

namespace {

struct planted_fault {
  model::fault fault;
  const char* name;
  const char* litmus;  // the program that notices
};

const std::vector<planted_fault> faults{
    {model::fault::no_sequential_order, "no_sequential_order", "L03"},
    {model::fault::no_fence_order, "no_fence_order", "L04"},
    {model::fault::light_orders_light, "light_orders_light", "A05"},
    {model::fault::heavy_is_sequential, "heavy_is_sequential", "A01"},
    {model::fault::no_order_by_fences, "no_order_by_fences", "L04"},
    {model::fault::sequential_fence_syncs, "sequential_fence_syncs", "L46"},
    {model::fault::release_sequence_2011, "release_sequence_2011", "L22"},
    {model::fault::no_release_sequence, "no_release_sequence", "L21"},
    {model::fault::acquire_ignored, "acquire_ignored", "L12"},
    {model::fault::release_ignored, "release_ignored", "L12"},
    {model::fault::acquire_fence_ignored, "acquire_fence_ignored", "L17"},
    {model::fault::release_fence_ignored, "release_fence_ignored", "L16"},
    {model::fault::failed_cas_strong, "failed_cas_strong", "L26"},
    {model::fault::failed_cas_latest, "failed_cas_latest", "L73"},
    {model::fault::weak_cas_strong, "weak_cas_strong", "L55"},
    {model::fault::no_stale_read, "no_stale_read", "L01"},
    {model::fault::any_stale_read, "any_stale_read", "L12"},
    {model::fault::stores_last, "stores_last", "L34"},
    {model::fault::no_revisit, "no_revisit", "L01"},
    {model::fault::revisit_not_maximal, "revisit_not_maximal", "L09"},
    {model::fault::revisit_skips_cas, "revisit_skips_cas", "L54"},
    {model::fault::conflict_dropped, "conflict_dropped", "L53"},
    {model::fault::split_update, "split_update", "L53"},
    {model::fault::race_by_causes, "race_by_causes", "L20"},
    {model::fault::no_race_check, "no_race_check", "L20"},
};

// planting switches a fault on for a scope.
class planting {
 public:
  explicit planting(model::fault which) { model::planted = which; }
  planting(const planting&) = delete;
  planting& operator=(const planting&) = delete;
  ~planting() { model::planted = model::fault::none; }
};

const litmus::program& program_named(const std::string& id) {
  static const auto all = [] {
    const std::string folder = MODEL_TEST_FOLDER;
    auto both = litmus::read(folder + "/litmus.txt");
    for (litmus::program& p : litmus::read(folder + "/asymmetric.txt"))
      both.push_back(std::move(p));
    return both;
  }();
  for (const litmus::program& p : all)
    if (p.id == id) return p;
  ADD_FAILURE() << "no program " << id;
  return all.front();
}

class checker_fault : public testing::TestWithParam<planted_fault> {};

TEST_P(checker_fault, is_noticed_by_its_litmus_program) {
  const litmus::program& p = program_named(GetParam().litmus);
  model::options wished;
  wished.races_fail = false;
  wished.executions_max = 2000;
  EXPECT_EQ(litmus::difference(p, litmus::run(p, wished)), "");
  const planting on{GetParam().fault};
  EXPECT_NE(litmus::difference(p, litmus::run(p, wished)), "");
}

INSTANTIATE_TEST_SUITE_P(every, checker_fault, testing::ValuesIn(faults),
                         [](const auto& info) { return std::string{info.param.name}; });

TEST(fault, deadlock_ignored_is_noticed_by_a_lock_taken_twice) {
  const auto body = [] {
    model::mutex lock;
    lock.lock();
    lock.lock();
  };
  EXPECT_EQ(model::check({}, body).kind, "deadlock");
  const planting on{model::fault::deadlock_ignored};
  EXPECT_EQ(model::check({}, body).kind, "");
}

TEST(fault, spin_is_stuck_is_noticed_by_a_loop_that_ends) {
  const auto body = [] {
    model::atomic<int> flag{0};
    model::parallel([&] { flag.store(1, std::memory_order_relaxed); },
                    [&] {
                      while (flag.load(std::memory_order_relaxed) == 0) model::pause();
                    });
  };
  EXPECT_EQ(model::check({}, body).kind, "");
  const planting on{model::fault::spin_is_stuck};
  EXPECT_EQ(model::check({}, body).kind, "livelock");
}

TEST(fault, every_one_has_a_test) {
  EXPECT_EQ(faults.size() + 2, static_cast<std::size_t>(model::fault::spin_is_stuck));
}

}  // namespace
