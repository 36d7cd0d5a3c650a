// Goal: a pop that waits gets exactly one element, in turn, and a refused element is never missed.
#include "waiters.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"

namespace sider {
namespace {

// A target that takes one element, as a connection does.
struct one_shot : pop_target {
  std::optional<popped> got;
  bool closed = false;
  bool lost = false;

  bool offer(popped& found) override {
    if (got || closed) return false;
    got = std::move(found);
    return true;
  }
  void lose() noexcept override { lost = !got && !std::exchange(closed, true); }
};

using outcome = waiter_registry::outcome;

class Waiters : public testing::Test {
 protected:
  void push(shard_store& store, waiter_registry& waiters, std::vector<std::string_view> words) {
    words.insert(words.begin(), "rpush");
    std::string out;
    shard_call call{store, words, key_ref(words[1]), 0, reply_writer(out)};
    run::rpush(call);
    waiters.serve(store, key_ref(call.grown), 0);
  }
  std::size_t length(shard_store& store, std::string_view key) {
    entry* found = store.find(key_ref(key), 0);
    return found == nullptr ? 0 : list_in(*found)->size();
  }

  shard_store store_;
  waiter_registry waiters_;
  std::shared_ptr<one_shot> first_ = std::make_shared<one_shot>();
  std::shared_ptr<one_shot> second_ = std::make_shared<one_shot>();
};

TEST_F(Waiters, AnElementThatIsThereIsServedAtOnce) {
  push(store_, waiters_, {"k", "a", "b"});
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::right, first_), outcome::served);
  EXPECT_EQ(first_->got->element, "b");
  EXPECT_EQ(first_->got->key, "k");
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, second_), outcome::served);
  EXPECT_EQ(store_.size(), 0U);
  EXPECT_TRUE(waiters_.empty());
}

TEST_F(Waiters, ThoseWhoWaitAreServedInTheOrderInWhichTheyCame) {
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, first_);
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::right, second_);
  push(store_, waiters_, {"k", "a", "b", "c"});
  EXPECT_EQ(first_->got->element, "a");
  EXPECT_EQ(second_->got->element, "c");
  EXPECT_EQ(length(store_, "k"), 1U);
  EXPECT_TRUE(waiters_.empty());
}

TEST_F(Waiters, AnElementThatIsRefusedGoesToTheNextOrStays) {
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, first_);
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, second_);
  first_->closed = true;
  push(store_, waiters_, {"k", "a"});
  EXPECT_EQ(second_->got->element, "a");
  second_->got.reset();
  second_->closed = true;
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, second_);
  push(store_, waiters_, {"k", "b", "c"});
  EXPECT_EQ(length(store_, "k"), 2U);
  EXPECT_EQ(list_in(*store_.find(key_ref("k"), 0))->front(), "b");
}

TEST_F(Waiters, OneTargetOverTwoShardsTakesOneElement) {
  shard_store other_store;
  waiter_registry other_waiters;
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, first_);
  other_waiters.pop_or_wait(other_store, key_ref("j"), 0, pop_end::left, first_);
  push(other_store, other_waiters, {"j", "x"});
  push(store_, waiters_, {"k", "y"});
  EXPECT_EQ(first_->got->element, "x");
  EXPECT_EQ(length(other_store, "j"), 0U);
  EXPECT_EQ(length(store_, "k"), 1U);
}

TEST_F(Waiters, AForgottenTargetIsNotServed) {
  waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, first_);
  waiters_.forget("k", first_.get());
  EXPECT_TRUE(waiters_.empty());
  push(store_, waiters_, {"k", "a"});
  EXPECT_FALSE(first_->got.has_value());
  EXPECT_EQ(length(store_, "k"), 1U);
}

TEST_F(Waiters, AKeyOfAnotherTypeIsAnError) {
  store_.set(key_ref("s"), std::string("text"));
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("s"), 0, pop_end::left, first_),
            outcome::wrong_type);
}

TEST_F(Waiters, AShardThatIsLostTellsThoseThatWait) {
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, first_), outcome::waiting);
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("k"), 0, pop_end::left, second_),
            outcome::waiting);
  EXPECT_EQ(waiters_.pop_or_wait(store_, key_ref("j"), 0, pop_end::left, first_), outcome::waiting);
  push(store_, waiters_, {"k", "a"});
  waiters_.abandon();
  EXPECT_TRUE(first_->got.has_value());
  EXPECT_FALSE(first_->lost);
  EXPECT_TRUE(second_->lost);
  EXPECT_TRUE(waiters_.empty());
}

}  // namespace
}  // namespace sider
