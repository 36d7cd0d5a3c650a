// The workloads of conversing actors for Boost.Fiber: a server that is called, and five of Savina's
// programs. A fiber with a channel stands for an actor; a promise is the reply to a call. There is
// no unbounded channel: a mailbox has room for whatever can be on its way to it at once, where a
// sender that waits for room could be waited for itself.
#pragma once

#include <boost/fiber/all.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/harness.hpp"

namespace savina {

namespace bf = boost::fibers;
using harness::check;

template <class T>
using channel = bf::buffered_channel<T>;
template <class T>
using channels = std::vector<std::unique_ptr<channel<T>>>;

constexpr auto success = bf::channel_op_status::success;

inline void call_reply(uint64_t n) {
  struct request {
    uint64_t value = 0;
    std::optional<bf::promise<uint64_t>> reply;
  };
  channel<request> requests(16);
  bf::fiber server([&] {
    uint64_t sum = 0;
    for (request r; requests.pop(r) == success;) {
      sum += r.value;
      r.reply->set_value(sum);
    }
  });
  bf::fiber client([&] {
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= n; ++i) {
      bf::promise<uint64_t> reply;
      auto answer = reply.get_future();
      requests.push(request{i, std::move(reply)});
      sum = answer.get();
    }
    check(sum == n * (n + 1) / 2, "call_reply");
    requests.close();
  });
  client.join();
  server.join();
}

inline void fork_join_throughput(int members, uint64_t each, size_t room) {
  channels<uint64_t> boxes;
  std::vector<bf::fiber> fs;
  for (int i = 0; i < members; ++i) {
    boxes.push_back(std::make_unique<channel<uint64_t>>(room));
    fs.emplace_back([&box = *boxes.back(), each] {
      uint64_t sum = 0;
      for (uint64_t v; box.pop(v) == success;) sum += v;
      check(sum == each * (each - 1) / 2, "fork_join_throughput");
    });
  }
  for (uint64_t i = 0; i < each; ++i)
    for (auto& box : boxes) check(box->push(i) == success, "push");
  for (auto& box : boxes) box->close();
  for (auto& f : fs) f.join();
}

// A message without a promise is an increment, one with it asks for the count.
inline void counting(uint64_t n, size_t room) {
  using message = std::unique_ptr<bf::promise<uint64_t>>;
  channel<message> box(room);
  bf::fiber counter([&] {
    uint64_t count = 0;
    for (message m; box.pop(m) == success;) {
      if (m)
        m->set_value(count);
      else
        ++count;
    }
  });
  bf::fiber producer([&] {
    for (uint64_t i = 0; i < n; ++i) box.push(message{});
    auto reply = std::make_unique<bf::promise<uint64_t>>();
    auto answer = reply->get_future();
    box.push(std::move(reply));
    check(answer.get() == n, "counting");
    box.close();
  });
  producer.join();
  counter.join();
}

struct big_message {
  enum { ping, pong, halt } kind = ping;
  uint32_t from = 0;
};

inline uint64_t big_member(uint32_t id, int rounds, channels<big_message>& boxes,
                           channel<uint32_t>& done) {
  harness::lcg random{id};
  const auto members = static_cast<uint32_t>(boxes.size());
  auto ping_another = [&] {
    boxes[(id + 1 + random.next() % (members - 1)) % members]->push({big_message::ping, id});
  };
  uint64_t answered = 0;
  ping_another();
  for (big_message m; boxes[id]->pop(m) == success && m.kind != big_message::halt;) {
    if (m.kind == big_message::ping) {
      boxes[m.from]->push({big_message::pong, id});
      ++answered;
    } else if (--rounds > 0) {
      ping_another();
    } else {
      done.push(id);
    }
  }
  check(rounds == 0, "big: a pong is missing");
  return answered;
}

inline void big(uint32_t members, int rounds) {
  channels<big_message> boxes;
  for (uint32_t i = 0; i < members; ++i)
    boxes.push_back(std::make_unique<channel<big_message>>(256));
  channel<uint32_t> done(256);
  std::vector<uint64_t> answered(members);
  std::vector<bf::fiber> fs;
  for (uint32_t i = 0; i < members; ++i)
    fs.emplace_back([&, i] { answered[i] = big_member(i, rounds, boxes, done); });
  for (uint32_t i = 0; i < members; ++i) done.value_pop();
  for (auto& box : boxes) box->push({big_message::halt, 0});
  for (auto& f : fs) f.join();
  uint64_t sum = 0;
  for (uint64_t one : answered) sum += one;
  check(sum == uint64_t(members) * rounds, "big");
}

struct fork_request {
  size_t who = 0;
  bool finished = false;
};

inline uint64_t arbitrator(channel<fork_request>& requests, channels<bool>& philosophers) {
  std::vector<bool> taken(philosophers.size());
  uint64_t meals = 0;
  for (fork_request r; requests.pop(r) == success;) {
    size_t left = r.who, right = (r.who + 1) % taken.size();
    if (r.finished) {
      check(taken[left] && taken[right], "a fork was not held");
      taken[left] = taken[right] = false;
      continue;
    }
    bool free = !taken[left] && !taken[right];
    if (free) {
      taken[left] = taken[right] = true;
      ++meals;
    }
    philosophers[left]->push(free);
  }
  for (bool fork : taken) check(!fork, "a fork was not given back");
  return meals;
}

inline void philosophers(size_t seats, int rounds) {
  channel<fork_request> requests(64);
  channels<bool> boxes;
  for (size_t i = 0; i < seats; ++i) boxes.push_back(std::make_unique<channel<bool>>(2));
  uint64_t meals = 0;
  bf::fiber judge([&] { meals = arbitrator(requests, boxes); });
  std::vector<bf::fiber> fs;
  for (size_t who = 0; who < seats; ++who)
    fs.emplace_back([&, who] {
      for (int eaten = 0; eaten < rounds; ++eaten) {
        do {
          requests.push({who, false});
        } while (!boxes[who]->value_pop());
        requests.push({who, true});
      }
    });
  for (auto& f : fs) f.join();
  requests.close();
  judge.join();
  check(meals == seats * rounds, "philosophers");
}

struct bank_message {
  enum { transfer, deposit, closing } kind = transfer;
  int64_t amount = 0;
  size_t to = 0;
  std::optional<bf::promise<bool>> reply;
};

inline int64_t account(size_t id, channels<bank_message>& boxes, channel<int64_t>& teller) {
  int64_t balance = 0;
  for (bank_message m; boxes[id]->pop(m) == success && m.kind != bank_message::closing;) {
    if (m.kind == bank_message::transfer) {
      balance -= m.amount;
      bf::promise<bool> reply;
      auto answer = reply.get_future();
      boxes[m.to]->push({bank_message::deposit, m.amount, 0, std::move(reply)});
      check(answer.get(), "deposit");
      teller.push(m.amount);
    } else {
      balance += m.amount;
      m.reply->set_value(true);
    }
  }
  return balance;
}

// The teller's mailbox holds all replies, since it orders everything first. A full account's
// mailbox is no deadlock: transfers go to higher numbers only.
inline void bank_transaction(size_t size, int transfers, size_t room) {
  channels<bank_message> boxes;
  for (size_t i = 0; i < size; ++i) boxes.push_back(std::make_unique<channel<bank_message>>(256));
  channel<int64_t> teller(room);
  std::vector<int64_t> balances(size);
  std::vector<bf::fiber> fs;
  for (size_t i = 0; i < size; ++i)
    fs.emplace_back([&, i] { balances[i] = account(i, boxes, teller); });
  harness::transfers orders(size);
  for (int i = 0; i < transfers; ++i) {
    auto order = orders.next();
    boxes[order.from]->push({bank_message::transfer, order.amount, order.to, std::nullopt});
  }
  int64_t moved = 0;
  for (int i = 0; i < transfers; ++i) moved += teller.value_pop();
  check(moved == orders.moved(), "bank_transaction");
  for (auto& box : boxes) box->push({bank_message::closing, 0, 0, std::nullopt});
  for (auto& f : fs) f.join();
  for (size_t i = 0; i < size; ++i) check(balances[i] == orders.balance(i), "a balance is wrong");
}

}  // namespace savina
