// The router cuts commands into items for shards and puts the shards' answers together again.
//
// A batch is all that one connection asks at a time: the commands of one read. It goes to the
// shards whole (each looks at its own part), comes back whole, and is merged in the order of the
// requests.
//
// Invariants
//   1. The items of one shard stand in the order of their requests, so commands of one connection
//   on
//      one key run in the order in which they were sent.
//   2. Whatever of a command falls to one shard is run without a pause between; a command over
//      several shards (MSET, MGET, DEL, EXISTS, KEYS, FLUSHALL ...) is not one step: another
//      connection may see one shard's part done and another's not.
//   3. The arguments live in the batch's input for as long as anyone holds the batch.
//   4. A request of which one item was lost with its shard is answered with one error, whatever its
//      other items have done; lost items never run again.
// Commands of one batch on different shards overlap. A client that waits for a reply before it
// sends on cannot tell; one that pipelines gets the replies in order all the same.
//
// LIMIT: a part stops once its unsent replies exceed reply_bytes_max (having run one item at
// least), so a client that asks for far more than it reads holds about that much per shard, plus
// one reply. Threads: a batch belongs to its connection; while it is out, each part to that shard's
// actor, and everything else is constant. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"

namespace sider {

class batch {
 public:
  // reply_bytes_max is what one part may hold in replies before it pauses.
  static constexpr std::size_t reply_bytes_max = std::size_t{1} << 20;

  explicit batch(std::size_t shard_count) : parts_(shard_count) {}

  // arguments is where a parser appends; a request then names the tail of it.
  [[nodiscard]] std::vector<std::string_view>& arguments() { return arguments_; }

  // add_local adds a request that the connection answers itself; it writes the reply at once to
  // what is returned.
  [[nodiscard]] reply_writer add_local();

  // add plans a request whose arguments are the last `count` of arguments(). It may find it wrong
  // and answer it with an error instead. Returns false, having added nothing, if the command is not
  // the shards' business alone: the connection must run it, after what was added before.
  [[nodiscard]] bool add(const command& what, std::size_t count);

  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] std::size_t request_count() const { return requests_.size(); }

  // needs_shard tells whether the shard has items left to run.
  [[nodiscard]] bool needs_shard(std::size_t shard) const {
    return parts_[shard].next_item < parts_[shard].items.size();
  }

  // run_part runs the shard's items in order until none is left or the replies exceed the limit.
  // `grown` is called with the key of each list that has gained elements, right after that item.
  template <typename Grown>
  void run_part(std::size_t shard, shard_store& store, std::int64_t now_ms, Grown&& grown);

  // lose_part says that the shard has crashed, or will not run its part: what has no result by now
  // will have none. In place of the end of run_part, by whoever had the part.
  void lose_part(std::size_t shard) noexcept { parts_[shard].is_lost = true; }

  // answer_lost gives the items without a result, in parts that are lost, an error for one. No
  // shard may have the batch.
  void answer_lost();

  // merge appends the replies of all requests, in order, up to the first that is not complete.
  // `random` in [0, 1) decides RANDOMKEY. Returns true once every request has been answered.
  [[nodiscard]] bool merge(std::string& out, double random = 0);

  // clear empties the batch for the next round. Memory is kept for it, a little of each kind.
  void clear();

  // held_bytes is what the batch keeps, whether it is in use or not; no shard may have the batch.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct request {
    merging merge;
    std::uint32_t item_count;  // 0: the reply is the next of local_
    std::size_t local_end;     // where it ends there
  };
  struct item {
    handler run;
    std::uint32_t first_argument;
    std::uint32_t argument_count;
    std::uint64_t hash;
  };
  struct result {
    std::size_t text_end;
    std::int64_t number;
  };
  struct part {
    std::vector<item> items;
    std::vector<result> results;
    std::string text;           // the replies not merged yet
    std::size_t next_item = 0;  // items before it have run
    std::size_t merged = 0;     // results before it have been merged
    std::size_t text_merged = 0;
    bool is_lost = false;
    std::size_t lost_from = none;  // results from here on stand for lost items
  };
  struct piece {
    std::string_view text;
    std::int64_t number;
    std::size_t shard;
  };

  [[nodiscard]] argument_list arguments_of(const item& one) const {
    return argument_list(arguments_).subspan(one.first_argument, one.argument_count);
  }
  [[nodiscard]] std::size_t shard_of(std::uint64_t hash) const { return hash % parts_.size(); }
  static void run_item(handler run, shard_call& call, std::string& text);
  void add_item(std::size_t shard, const item& one);
  bool add_each_key(const command& what, std::size_t first, std::size_t count);
  bool add_every_shard(const command& what, std::size_t first, std::size_t count);
  bool add_scan(const command& what, std::size_t first, std::size_t count);
  bool add_rename(const command& what, std::size_t first, std::size_t count);
  [[nodiscard]] bool is_complete(const request& one) const;
  [[nodiscard]] piece take_piece();
  void merge_request(const request& one, std::string& out, double random);
  void merge_pieces(const request& one, std::string& out, double random);
  void merge_single(std::string& out);
  void merge_random(const request& one, std::string& out, double random);
  void merge_scan(std::string& out);
  void forget_merged();

  std::vector<std::string_view> arguments_;
  std::vector<request> requests_;
  std::vector<std::uint16_t> item_shards_;  // of all items, in the order of the requests
  std::vector<part> parts_;
  std::string local_;              // replies that the connection wrote itself
  std::size_t open_local_ = none;  // the request whose local reply may still be written
  std::size_t next_request_ = 0;   // requests before it have been merged
  std::size_t next_shard_ = 0;     // the same for item_shards_
  std::size_t local_merged_ = 0;
  bool has_taken_lost_ = false;  // take_piece has taken a lost item of the present request
};

template <typename Grown>
void batch::run_part(std::size_t shard, shard_store& store, std::int64_t now_ms, Grown&& grown) {
  part& mine = parts_[shard];
  while (mine.next_item < mine.items.size()) {
    const item& one = mine.items[mine.next_item++];
    const argument_list arguments = arguments_of(one);
    const std::string_view key = arguments.size() > 1 ? arguments[1] : std::string_view();
    shard_call call{store, arguments, {key, one.hash}, now_ms, reply_writer(mine.text)};
    run_item(one.run, call, mine.text);
    mine.results.push_back({mine.text.size(), call.number});
    if (!call.grown.empty()) grown(key_ref(call.grown));
    if (mine.text.size() - mine.text_merged > reply_bytes_max) return;
  }
}

}  // namespace sider
