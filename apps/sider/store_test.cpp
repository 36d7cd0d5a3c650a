// Goal: keys are found, expire and are walked as promised, whatever the table does meanwhile.
// Method: random operations beside a std::map; scans while keys come and go.
#include "store.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace sider {
namespace {

std::string text_of(const entry* found) {
  return found == nullptr ? "(none)" : std::get<std::string>(found->content);
}

TEST(Store, AgreesWithAMapOverRandomOperations) {
  std::mt19937 random(7);
  shard_store store;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 200'000; ++i) {
    // The range of keys swells and shrinks, so that the table grows and shrinks with it.
    const unsigned range = (i / 20'000) % 2 == 0 ? 5000 : 50;
    const std::string key = "k" + std::to_string(random() % range);
    const key_ref name(key);
    switch (random() % 3) {
      case 0:
        store.set(name, std::to_string(i));
        model[key] = std::to_string(i);
        break;
      case 1:
        if (entry* found = store.find(name, 0)) store.erase(*found);
        model.erase(key);
        break;
      default:
        ASSERT_EQ(text_of(store.find(name, 0)), model.contains(key) ? model[key] : "(none)");
    }
    if (i % 40'000 == 39'999) {
      while (model.size() > 20) {
        store.erase(*store.find(key_ref(model.begin()->first), 0));
        model.erase(model.begin());
      }
    }
    ASSERT_EQ(store.size(), model.size());
  }
  std::size_t visited = 0;
  store.for_each(0,
                 [&](const entry& present) { visited += model.contains(present.key) ? 1 : 100; });
  EXPECT_EQ(visited, model.size());
}

TEST(Store, KeysWithOneHashStandSideBySide) {
  shard_store store;
  for (int i = 0; i < 200; ++i) {
    const std::string key = std::to_string(i);
    store.set({key, i < 100 ? ~std::uint64_t{0} : std::uint64_t{0}}, key);
  }
  for (int i = 0; i < 200; ++i) {
    const std::string key = std::to_string(i);
    const key_ref name(key, i < 100 ? ~std::uint64_t{0} : std::uint64_t{0});
    ASSERT_EQ(text_of(store.find(name, 0)), key);
    if (i % 2 == 0) store.erase(*store.find(name, 0));
  }
  EXPECT_EQ(store.size(), 100U);
  std::set<std::string> seen;
  std::uint64_t cursor = 0;
  while (cursor != key_table::scan_end) {
    cursor = store.scan(cursor, 1, 0, [&](const entry& present) { seen.insert(present.key); });
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Store, AScanReturnsWhatIsThereThroughoutWhileTheTableGrowsAndShrinks) {
  std::mt19937 random(11);
  for (const int step : {1, 7, 100}) {
    shard_store store;
    std::set<std::string> lasting;
    for (int i = 0; i < 1000; ++i) {
      lasting.insert("lasting:" + std::to_string(i));
      store.set(key_ref("lasting:" + std::to_string(i)), std::string("x"));
    }
    std::set<std::string> seen;
    std::uint64_t cursor = 0;
    int others = 0;
    for (int calls = 0; cursor != key_table::scan_end; ++calls) {
      ASSERT_LT(calls, 100'000);
      cursor = store.scan(cursor, static_cast<std::size_t>(step), 0,
                          [&](const entry& present) { seen.insert(present.key); });
      const bool growing = calls % 40 < 20;
      for (int i = 0; i < 50 * step; ++i) {
        const std::string key = "other:" + std::to_string(growing ? others++ : --others);
        if (growing) {
          store.set(key_ref(key), std::string("y"));
        } else if (entry* found = store.find(key_ref(key), 0)) {
          store.erase(*found);
        }
      }
    }
    for (const std::string& key : lasting) EXPECT_TRUE(seen.contains(key)) << key;
  }
}

TEST(Store, AScanOverAQuietTableReturnsEachKeyOnce) {
  shard_store store;
  for (int i = 0; i < 5000; ++i) store.set(key_ref(std::to_string(i)), std::string());
  std::map<std::string, int> seen;
  std::uint64_t cursor = 0;
  while (cursor != key_table::scan_end) {
    std::size_t visited = 0;
    cursor = store.scan(cursor, 10, 0, [&](const entry& present) {
      ++seen[present.key];
      ++visited;
    });
    EXPECT_LE(visited, 12U);
  }
  EXPECT_EQ(seen.size(), 5000U);
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key;
}

TEST(Store, AnExpiredKeyIsNeverFoundAgain) {
  shard_store store;
  store.set_expiry(store.set(key_ref("a"), std::string("1")), 100);
  EXPECT_NE(store.find(key_ref("a"), 99), nullptr);
  EXPECT_EQ(store.find(key_ref("a"), 100), nullptr);
  EXPECT_EQ(store.size(), 0U);
  EXPECT_EQ(store.next_expiry(), std::nullopt);
}

TEST(Store, DueKeysGoInTheOrderOfTheirDeadlines) {
  shard_store store;
  for (int i = 10; i > 0; --i) {
    store.set_expiry(store.set(key_ref(std::to_string(i)), std::string()), i * 10);
  }
  EXPECT_EQ(store.next_expiry(), 10);
  EXPECT_EQ(store.expire_due(55, 2), 2U);
  EXPECT_EQ(store.next_expiry(), 30);
  EXPECT_EQ(store.expire_due(55, 100), 3U);
  EXPECT_EQ(store.size(), 5U);
  store.set(key_ref("6"), std::string());  // overwriting forgets the deadline
  EXPECT_EQ(store.next_expiry(), 70);
  store.set(key_ref("7"), std::string(), true);
  EXPECT_EQ(store.next_expiry(), 70);
  store.clear();
  EXPECT_EQ(store.next_expiry(), std::nullopt);
}

TEST(Store, IsDestroyedInPartsWhereItIsLarge) {
  shard_store store;
  for (int i = 0; i < 1000; ++i) {
    entry& added = store.set(key_ref(std::to_string(i)), std::string());
    if (i % 2 == 0) store.set_expiry(added, i);
  }
  EXPECT_FALSE(store.destroy_part(400));  // of the 500 deadlines
  EXPECT_FALSE(store.destroy_part(1000));
  int parts = 0;
  while (!store.destroy_part(100)) ++parts;
  EXPECT_GT(parts, 0);
  EXPECT_TRUE(store.destroy_part(1));
}

TEST(Store, AMovedKeyTakesItsDeadlineAlongAndReplacesWhatWasThere) {
  shard_store from;
  shard_store to;
  from.set_expiry(from.set(key_ref("k"), std::string("new")), 500);
  to.set_expiry(to.set(key_ref("k"), std::string("old")), 300);
  to.attach(from.detach(*from.find(key_ref("k"), 0)), 0);
  EXPECT_EQ(from.size(), 0U);
  EXPECT_EQ(from.next_expiry(), std::nullopt);
  EXPECT_EQ(to.next_expiry(), 500);
  EXPECT_EQ(text_of(to.find(key_ref("k"), 0)), "new");
}

TEST(Store, RandomEntriesAreEvenlyDistributedAndAlive) {
  shard_store store;
  for (int i = 0; i < 10; ++i) store.set(key_ref(std::to_string(i)), std::string());
  for (int i = 0; i < 5; ++i) store.set_expiry(*store.find(key_ref(std::to_string(i)), 0), 10);
  std::map<std::string, int> seen;
  for (int i = 0; i < 5000; ++i) ++seen[store.random_entry(10)->key];
  EXPECT_EQ(seen.size(), 5U);
  for (const auto& [key, times] : seen) EXPECT_GT(times, 700) << key;
  EXPECT_EQ(shard_store().random_entry(0), nullptr);
}

}  // namespace
}  // namespace sider
