// The life of objects. Goal: leaks, double frees, uses after free and after destruction, and lives
// that race with uses are found. Method: one small model each.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "model/model.hpp"

namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

std::string kind_of(const std::function<void()>& body) {
  const model::result r = model::check({}, body);
  return r.outcome == model::verdict::fail ? r.kind : name_of(r.outcome);
}

struct node {
  model::atomic<int> count{2};
  model::cell<int> payload{7};
};

void drop(node* n, std::memory_order o) {
  model::expect(n->payload.read() == 7);
  if (n->count.fetch_sub(1, o) == 1) model::destroy(n);
}

TEST(memory, reference_count_frees_once_after_every_use) {
  EXPECT_EQ(kind_of([] {
              auto* n = model::make<node>();
              model::parallel([=] { drop(n, memory_order_acq_rel); },
                              [=] { drop(n, memory_order_acq_rel); });
            }),
            "pass");
}

TEST(memory, relaxed_reference_count_frees_what_is_in_use) {
  EXPECT_EQ(kind_of([] {
              auto* n = model::make<node>();
              model::parallel([=] { drop(n, memory_order_relaxed); },
                              [=] { drop(n, memory_order_relaxed); });
            }),
            "use after free");
}

TEST(memory, block_that_nobody_frees_is_a_leak) {
  EXPECT_EQ(kind_of([] { static_cast<void>(model::make<node>()); }), "leak");
}

TEST(memory, block_freed_twice_is_found) {
  EXPECT_EQ(kind_of([] {
              auto* n = model::make<node>();
              model::destroy(n);
              model::destroy(n);
            }),
            "double free");
}

TEST(memory, use_of_a_freed_object_is_found) {
  EXPECT_EQ(kind_of([] {
              auto* n = model::make<node>();
              model::destroy(n);
              n->count.load(memory_order_relaxed);
            }),
            "use after free");
}

TEST(memory, use_after_free_depends_on_an_order_and_is_found) {
  EXPECT_EQ(kind_of([] {
              auto* n = model::make<node>();
              model::atomic<node*> shared{n};
              model::parallel(
                  [&] {
                    if (node* mine = shared.load(memory_order_acquire))
                      mine->count.load(memory_order_relaxed);
                  },
                  [&] {
                    shared.store(nullptr, memory_order_release);
                    model::destroy(n);
                  });
            }),
            "use after free");
}

TEST(memory, object_of_a_stack_that_is_left_is_gone) {
  EXPECT_EQ(kind_of([] {
              model::atomic<model::atomic<int>*> shared{nullptr};
              model::parallel(
                  [&] {
                    model::atomic<int> local{1};
                    shared.store(&local, memory_order_release);
                  },
                  [&] {
                    if (auto* seen = shared.load(memory_order_acquire))
                      seen->load(memory_order_relaxed);
                  });
            }),
            "use after destruction");
}

TEST(memory, object_published_without_release_races_with_its_construction) {
  const auto publish = [](std::memory_order o) {
    return [=] {
      model::atomic<node*> shared{nullptr};
      model::parallel([&] { shared.store(model::make<node>(), o); },
                      [&] {
                        if (node* seen = shared.load(memory_order_acquire))
                          seen->count.load(memory_order_relaxed);
                      });
      model::destroy(shared.load(memory_order_relaxed));
    };
  };
  EXPECT_EQ(kind_of(publish(memory_order_release)), "pass");
  EXPECT_EQ(kind_of(publish(memory_order_relaxed)), "data race");
}

TEST(memory, object_destroyed_by_who_does_not_know_that_it_was_made_is_a_race) {
  const auto hand_over = [](std::memory_order o) {
    return [=] {
      model::atomic<node*> shared{nullptr};
      model::parallel([&] { shared.store(model::make<node>(), o); },
                      [&] {
                        const auto is_there = [](node* seen) { return seen != nullptr; };
                        model::destroy(shared.await(is_there, memory_order_acquire));
                      });
    };
  };
  EXPECT_EQ(kind_of(hand_over(memory_order_release)), "pass");
  EXPECT_EQ(kind_of(hand_over(memory_order_relaxed)), "data race");
}

// Members whose default initialisers a compiler might evaluate by itself: the checker would not see
// these objects begin.
struct members {
  model::atomic<int> none[2];
  model::atomic<int> braces[2]{};
  model::atomic<int> equals[2] = {};
  model::atomic<int> values[2] = {{1}, {2}};
  model::atomic<int> single{3};
};
struct with_constructor : members {
  model::cell<int> cells[2] = {};
  with_constructor() {}
};

TEST(memory, members_of_every_form_are_seen_to_begin_and_to_end) {
  const model::result r = model::check({}, [] {
    int sum = 0;
    const auto add = [&sum](members& m) {
      for (auto* array : {&m.none, &m.braces, &m.equals, &m.values})
        for (auto& each : *array) sum += each.load(memory_order_relaxed);
      sum += m.single.load(memory_order_relaxed);
    };
    members local;
    add(local);
    auto* const made = model::make<members>();
    add(*made);
    model::destroy(made);
    with_constructor both;
    add(both);
    model::expect(sum == 3 * (1 + 2 + 3));
    model::expect(both.cells[1].read() == 0);
    std::destroy_at(&both.none[0]);
    both.none[0].load(memory_order_relaxed);
  });
  EXPECT_EQ(r.kind, "use after destruction") << name_of(r.outcome) << r.message;
}

TEST(memory, addresses_are_the_same_in_every_run) {
  std::set<void*> seen;
  const model::result r = model::check({}, [&] {
    model::atomic<int> x{0};
    const auto one = [&] {
      x.fetch_add(1, memory_order_relaxed);
      int* made = model::make<int>(1);
      seen.insert(made);
      model::destroy(made);
    };
    model::parallel(one, one, one);
  });
  EXPECT_EQ(r.executions, 6U);
  EXPECT_EQ(seen.size(), 3U);
}

TEST(exceptions, are_thrown_and_caught_within_threads_that_alternate) {
  const model::result r = model::check({}, [] {
    model::atomic<int> x{0};
    const auto one = [&] {
      try {
        x.fetch_add(1, memory_order_relaxed);
        throw std::runtime_error("thrown");
      } catch (const std::runtime_error& caught) {
        x.fetch_add(1, memory_order_relaxed);
        model::expect(std::string{caught.what()} == "thrown");
        try {
          x.fetch_add(1, memory_order_relaxed);
          throw 5;
        } catch (int inner) {
          x.fetch_add(1, memory_order_relaxed);
          model::expect(inner == 5);
        }
        x.fetch_add(1, memory_order_relaxed);
        model::expect(std::uncaught_exceptions() == 0);
      }
    };
    model::parallel(one, one);
    model::expect(x.load() == 10);
  });
  EXPECT_EQ(r.outcome, model::verdict::pass) << r.message;
  EXPECT_EQ(r.executions, 252U);  // ten choose five
}

TEST(exceptions, that_leave_a_thread_are_a_failure) {
  EXPECT_EQ(kind_of([] { model::parallel([] { throw std::runtime_error("lost"); }); }),
            "exception");
}

}  // namespace
