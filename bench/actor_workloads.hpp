// The workloads of conversing actors: a server that is called, and five of Savina's programs
// (Imam and Sarkar, Savina: an actor benchmark suite, 2014), on smarm's public headers.
//
// Each checks its own result, down to every balance and every message answered: a figure measured
// on lost work is worse than none. They are written as a user would write them, with a channel for
// a mailbox, a variant where it takes more than one kind of message, and the owner's join for an
// actor's last word. bench/peers/ holds the same programs for the other runtimes, in their words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <smarm/smarm.hpp>

#include "bench/harness.hpp"

namespace actors {

using harness::check;

// call_reply: one client calls one server n times; the server answers with the sum so far.
inline void call_reply(std::uint64_t n) {
  struct request {
    std::uint64_t value;
    smarm::oneshot_sender<std::uint64_t> reply;
  };
  auto [tx, rx] = smarm::channel<request>();
  auto server = smarm::spawn([rx = std::move(rx)]() mutable {
    std::uint64_t sum = 0;
    for (request asked : rx) {
      sum += asked.value;
      check(asked.reply.send(sum).has_value(), "reply");
    }
  });
  auto client = smarm::spawn([n, tx = std::move(tx)] {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 1; i <= n; ++i) {
      auto [reply, answer] = smarm::oneshot<std::uint64_t>();
      check(tx.send({i, std::move(reply)}).has_value(), "call");
      sum = answer.recv().value();
    }
    return sum;
  });
  check(client.join().value() == n * (n + 1) / 2, "call_reply");
  check(server.join().has_value(), "server");
}

// fork_join_throughput: one sends `each` messages to every one of `members` actors, in turns.
inline void fork_join_throughput(int members, std::uint64_t each) {
  std::vector<smarm::sender<std::uint64_t>> mailboxes;
  std::vector<smarm::join_handle<std::uint64_t>> all;
  for (int i = 0; i < members; ++i) {
    auto [tx, rx] = smarm::channel<std::uint64_t>();
    mailboxes.push_back(std::move(tx));
    all.push_back(smarm::spawn([rx = std::move(rx)]() mutable {
      std::uint64_t sum = 0;
      for (const std::uint64_t value : rx) sum += value;
      return sum;
    }));
  }
  for (std::uint64_t i = 0; i < each; ++i) {
    for (const auto& mailbox : mailboxes) check(mailbox.send(i).has_value(), "send");
  }
  mailboxes.clear();
  for (auto& member : all) check(member.join().value() == each * (each - 1) / 2, "fork_join");
}

// counting: a producer sends n increments to a counter and then asks for the count.
inline void counting(std::uint64_t n) {
  struct increment {};
  struct retrieve {
    smarm::oneshot_sender<std::uint64_t> reply;
  };
  using message = std::variant<increment, retrieve>;
  auto [tx, rx] = smarm::channel<message>();
  auto counter = smarm::spawn([rx = std::move(rx)]() mutable {
    std::uint64_t count = 0;
    for (message got : rx) {
      if (auto* const asked = std::get_if<retrieve>(&got)) {
        check(asked->reply.send(count).has_value(), "count");
      } else {
        ++count;
      }
    }
  });
  auto producer = smarm::spawn([n, tx = std::move(tx)] {
    for (std::uint64_t i = 0; i < n; ++i) check(tx.send(increment{}).has_value(), "increment");
    auto [reply, answer] = smarm::oneshot<std::uint64_t>();
    check(tx.send(retrieve{std::move(reply)}).has_value(), "retrieve");
    return answer.recv().value();
  });
  check(producer.join().value() == n, "counting");
  check(counter.join().has_value(), "counter");
}

// mailboxes are as many channels, of actors that all know each other.
template <class Message>
struct mailboxes {
  explicit mailboxes(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto [tx, rx] = smarm::channel<Message>();
      senders.push_back(std::move(tx));
      receivers.push_back(std::move(rx));
    }
  }
  std::vector<smarm::sender<Message>> senders;
  std::vector<smarm::receiver<Message>> receivers;
};

namespace big_world {

struct ping {
  std::uint32_t from;
};
struct pong {};
struct halt {};
using message = std::variant<ping, pong, halt>;
using directory = std::vector<smarm::sender<message>>;

// member pings another at random, answers whoever pings it, and pings again once it has its own
// pong; after `rounds` it says so and only answers, until it is halted. Gives the pings answered.
inline std::uint64_t member(std::uint32_t id, smarm::receiver<message> inbox, const directory& all,
                            const smarm::sender<std::uint32_t>& done, int rounds) {
  harness::lcg random{id};
  const auto members = static_cast<std::uint32_t>(all.size());
  const auto ping_another = [&] {
    const std::uint32_t other = (id + 1 + random.next() % (members - 1)) % members;
    check(all[other].send(ping{id}).has_value(), "ping");
  };
  std::uint64_t answered = 0;
  ping_another();
  for (const message got : inbox) {
    if (const auto* const asked = std::get_if<ping>(&got)) {
      check(all[asked->from].send(pong{}).has_value(), "pong");
      ++answered;
    } else if (std::holds_alternative<halt>(got)) {
      break;
    } else if (--rounds > 0) {
      ping_another();
    } else {
      check(done.send(id).has_value(), "done");
    }
  }
  check(rounds == 0, "big: a pong is missing");
  return answered;
}

}  // namespace big_world

// big: every one of `members` actors pings random others, `rounds` times, a ping at a time.
inline void big(std::uint32_t members, int rounds) {
  auto [all, inboxes] = mailboxes<big_world::message>(members);
  auto [done_tx, done_rx] = smarm::channel<std::uint32_t>();
  std::vector<smarm::join_handle<std::uint64_t>> handles;
  handles.reserve(members);
  for (std::uint32_t id = 0; id < members; ++id) {
    handles.push_back(
        smarm::spawn([id, inbox = std::move(inboxes[id]), &all, done = done_tx, rounds]() mutable {
          return big_world::member(id, std::move(inbox), all, done, rounds);
        }));
  }
  for (std::uint32_t i = 0; i < members; ++i) check(done_rx.recv().has_value(), "done");
  for (const auto& mailbox : all) check(mailbox.send(big_world::halt{}).has_value(), "halt");
  std::uint64_t answered = 0;
  for (auto& handle : handles) answered += handle.join().value();
  check(answered == std::uint64_t{members} * static_cast<std::uint64_t>(rounds), "big");
}

namespace table {

struct hungry {
  std::size_t who;
};
struct finished {
  std::size_t who;
};
using request = std::variant<hungry, finished>;
enum class answer : std::uint8_t { eat, denied };

// arbitrator hands out both forks or none, until the last philosopher is gone. Gives the meals.
inline std::uint64_t arbitrator(smarm::receiver<request> inbox,
                                const std::vector<smarm::sender<answer>>& philosophers) {
  const std::size_t seats = philosophers.size();
  std::vector<bool> taken(seats);
  std::uint64_t meals = 0;
  for (const request got : inbox) {
    if (const auto* const asks = std::get_if<hungry>(&got)) {
      const std::size_t left = asks->who;
      const std::size_t right = (left + 1) % seats;
      const bool free = !taken[left] && !taken[right];
      if (free) {
        taken[left] = taken[right] = true;
        ++meals;
      }
      check(philosophers[left].send(free ? answer::eat : answer::denied).has_value(), "answer");
    } else {
      const std::size_t left = std::get<finished>(got).who;
      check(taken[left] && taken[(left + 1) % seats], "a fork was not held");
      taken[left] = taken[(left + 1) % seats] = false;
    }
  }
  for (const bool fork : taken) check(!fork, "a fork was not given back");
  return meals;
}

}  // namespace table

// philosophers: `seats` of them eat `rounds` times each; one that is denied asks again.
inline void philosophers(std::size_t seats, int rounds) {
  auto [asks, inbox] = smarm::channel<table::request>();
  std::vector<smarm::sender<table::answer>> mailboxes;
  std::vector<smarm::join_handle<void>> all;
  for (std::size_t who = 0; who < seats; ++who) {
    auto [tx, rx] = smarm::channel<table::answer>();
    mailboxes.push_back(std::move(tx));
    all.push_back(smarm::spawn([who, rounds, asks = asks, rx = std::move(rx)]() mutable {
      for (int eaten = 0; eaten < rounds; ++eaten) {
        do {
          check(asks.send(table::hungry{who}).has_value(), "hungry");
        } while (rx.recv().value() == table::answer::denied);
        check(asks.send(table::finished{who}).has_value(), "finished");
      }
    }));
  }
  asks.close();
  auto arbitrator = smarm::spawn([inbox = std::move(inbox), &mailboxes]() mutable {
    return table::arbitrator(std::move(inbox), mailboxes);
  });
  for (auto& philosopher : all) check(philosopher.join().has_value(), "philosopher");
  check(arbitrator.join().value() == seats * static_cast<std::size_t>(rounds), "philosophers");
}

namespace bank {

struct transfer {
  std::int64_t amount;
  std::size_t to;
};
struct deposit {
  std::int64_t amount;
  smarm::oneshot_sender<bool> reply;
};
struct closing {};
using message = std::variant<transfer, deposit, closing>;
using directory = std::vector<smarm::sender<message>>;

// account does what it is told until it is closed; it waits for the other account's word before it
// tells the teller. A transfer goes to a higher number only, so no two wait for each other.
inline std::int64_t account(smarm::receiver<message> inbox, const directory& accounts,
                            const smarm::sender<std::int64_t>& teller) {
  std::int64_t balance = 0;
  for (message got : inbox) {
    if (const auto* const order = std::get_if<transfer>(&got)) {
      balance -= order->amount;
      auto [reply, answer] = smarm::oneshot<bool>();
      check(accounts[order->to].send(deposit{order->amount, std::move(reply)}).has_value(), "to");
      check(answer.recv().value(), "deposit");
      check(teller.send(order->amount).has_value(), "teller");
    } else if (auto* const paid = std::get_if<deposit>(&got)) {
      balance += paid->amount;
      check(paid->reply.send(true).has_value(), "reply");
    } else {
      break;
    }
  }
  return balance;
}

}  // namespace bank

// bank_transaction: a teller orders `transfers` between `size` accounts and waits for all replies.
inline void bank_transaction(std::size_t size, int transfers) {
  auto [accounts, inboxes] = mailboxes<bank::message>(size);
  auto [teller, replies] = smarm::channel<std::int64_t>();
  std::vector<smarm::join_handle<std::int64_t>> all;
  all.reserve(size);
  for (auto& inbox : inboxes) {
    all.push_back(smarm::spawn([inbox = std::move(inbox), &accounts, teller = teller]() mutable {
      return bank::account(std::move(inbox), accounts, teller);
    }));
  }
  harness::transfers orders(size);
  for (int i = 0; i < transfers; ++i) {
    const harness::transfers::order order = orders.next();
    check(accounts[order.from].send(bank::transfer{order.amount, order.to}).has_value(), "order");
  }
  std::int64_t moved = 0;
  for (int i = 0; i < transfers; ++i) moved += replies.recv().value();
  check(moved == orders.moved(), "bank_transaction");
  for (const auto& account : accounts) check(account.send(bank::closing{}).has_value(), "closing");
  for (std::size_t id = 0; id < size; ++id) {
    check(all[id].join().value() == orders.balance(id), "a balance is wrong");
  }
}

}  // namespace actors
