// The workloads of conversing actors for CAF: a server that is called, and five of Savina's
// programs, as event-based actors. A call is a request; an account that waits for another one's
// word awaits the response.
#pragma once

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "bench/harness.hpp"

namespace savina {

using namespace caf;
using harness::check;

using begin_atom = atom_constant<atom("begin")>;
using end_atom = atom_constant<atom("end")>;
using ready_atom = atom_constant<atom("ready")>;
using add_atom = atom_constant<atom("add")>;
using count_atom = atom_constant<atom("count")>;
using ping_atom = atom_constant<atom("ping")>;
using pong_atom = atom_constant<atom("pong")>;
using hungry_atom = atom_constant<atom("hungry")>;
using eaten_atom = atom_constant<atom("eaten")>;
using answer_atom = atom_constant<atom("answer")>;
using order_atom = atom_constant<atom("order")>;
using deposit_atom = atom_constant<atom("deposit")>;

using finished = std::shared_ptr<std::promise<void>>;
using directory = std::shared_ptr<std::vector<actor>>;

inline void call_step(event_based_actor* self, finished fin, actor server, uint64_t i, uint64_t n) {
  self->request(server, infinite, i).then([=](uint64_t sum) {
    if (i < n) {
      call_step(self, fin, server, i + 1, n);
      return;
    }
    check(sum == n * (n + 1) / 2, "call_reply");
    self->send(server, end_atom::value);
    fin->set_value();
    self->quit();
  });
}

inline behavior call_reply(event_based_actor* self, finished fin, uint64_t n) {
  actor server = self->spawn([](event_based_actor* me) -> behavior {
    auto sum = std::make_shared<uint64_t>(0);
    return {[=](uint64_t v) { return *sum += v; }, [=](end_atom) { me->quit(); }};
  });
  call_step(self, fin, server, 1, n);
  return {[](end_atom) {}};
}

inline behavior fork_join_throughput(event_based_actor* self, finished fin, int members,
                                     uint64_t each) {
  struct state {
    uint64_t got = 0, sum = 0;
  };
  actor parent = self;
  std::vector<actor> all;
  for (int i = 0; i < members; ++i)
    all.push_back(self->spawn([=](event_based_actor* me) -> behavior {
      auto st = std::make_shared<state>();
      return {[=](uint64_t v) {
        st->sum += v;
        if (++st->got == each) {
          check(st->sum == each * (each - 1) / 2, "fork_join_throughput");
          me->send(parent, ready_atom::value);
          me->quit();
        }
      }};
    }));
  for (uint64_t i = 0; i < each; ++i)
    for (auto& member : all) self->send(member, i);
  auto left = std::make_shared<int>(members);
  return {[=](ready_atom) {
    if (--*left == 0) {
      fin->set_value();
      self->quit();
    }
  }};
}

inline behavior counting(event_based_actor* self, finished fin, uint64_t n) {
  actor parent = self;
  actor counter = self->spawn([](event_based_actor* me) -> behavior {
    auto count = std::make_shared<uint64_t>(0);
    return {[=](add_atom) { ++*count; }, [=](count_atom) { return *count; },
            [=](end_atom) { me->quit(); }};
  });
  self->spawn([=](event_based_actor* me) {
    for (uint64_t i = 0; i < n; ++i) me->send(counter, add_atom::value);
    me->request(counter, infinite, count_atom::value).then([=](uint64_t count) {
      check(count == n, "counting");
      me->send(counter, end_atom::value);
      me->send(parent, ready_atom::value);
    });
  });
  return {[=](ready_atom) {
    fin->set_value();
    self->quit();
  }};
}

inline behavior big_member(event_based_actor* me, actor parent, directory all, uint32_t id,
                           int rounds) {
  struct state {
    harness::lcg random;
    int left;
    uint64_t answered = 0;
  };
  auto st = std::make_shared<state>(state{{id}, rounds});
  auto ping_another = [=] {
    auto members = static_cast<uint32_t>(all->size());
    me->send((*all)[(id + 1 + st->random.next() % (members - 1)) % members], ping_atom::value, id);
  };
  return {[=](begin_atom) { ping_another(); },
          [=](ping_atom, uint32_t from) {
            me->send((*all)[from], pong_atom::value);
            ++st->answered;
          },
          [=](pong_atom) {
            if (--st->left > 0)
              ping_another();
            else
              me->send(parent, ready_atom::value);
          },
          [=](end_atom) {
            check(st->left == 0, "big: a pong is missing");
            me->send(parent, st->answered);
            me->quit();
          }};
}

inline behavior big(event_based_actor* self, finished fin, uint32_t members, int rounds) {
  struct state {
    uint32_t ready = 0, reports = 0;
    uint64_t answered = 0;
  };
  actor parent = self;
  auto all = std::make_shared<std::vector<actor>>();
  for (uint32_t id = 0; id < members; ++id)
    all->push_back(self->spawn(
        [=](event_based_actor* me) { return big_member(me, parent, all, id, rounds); }));
  for (auto& member : *all) self->send(member, begin_atom::value);
  auto st = std::make_shared<state>();
  return {[=](ready_atom) {
            if (++st->ready < members) return;
            for (auto& member : *all) self->send(member, end_atom::value);
          },
          [=](uint64_t answered) {
            st->answered += answered;
            if (++st->reports < members) return;
            check(st->answered == uint64_t(members) * rounds, "big");
            fin->set_value();
            self->quit();
          }};
}

inline behavior arbitrator(event_based_actor* me, actor parent, directory philosophers,
                           size_t seats) {
  struct state {
    std::vector<bool> taken;
    uint64_t meals = 0;
  };
  auto st = std::make_shared<state>();
  st->taken.resize(seats);
  return {[=](hungry_atom, uint64_t who) {
            size_t right = (who + 1) % seats;
            bool free = !st->taken[who] && !st->taken[right];
            if (free) {
              st->taken[who] = st->taken[right] = true;
              ++st->meals;
            }
            me->send((*philosophers)[who], answer_atom::value, free);
          },
          [=](eaten_atom, uint64_t who) {
            size_t right = (who + 1) % seats;
            check(st->taken[who] && st->taken[right], "a fork was not held");
            st->taken[who] = st->taken[right] = false;
          },
          [=](end_atom) {
            for (bool fork : st->taken) check(!fork, "a fork was not given back");
            me->send(parent, st->meals);
            me->quit();
          }};
}

inline behavior philosopher(event_based_actor* me, actor parent, actor judge, uint64_t who,
                            int rounds) {
  auto left = std::make_shared<int>(rounds);
  return {[=](begin_atom) { me->send(judge, hungry_atom::value, who); },
          [=](answer_atom, bool eat) {
            if (eat) {
              me->send(judge, eaten_atom::value, who);
              if (--*left == 0) {
                me->send(parent, ready_atom::value);
                me->quit();
                return;
              }
            }
            me->send(judge, hungry_atom::value, who);
          }};
}

inline behavior philosophers(event_based_actor* self, finished fin, size_t seats, int rounds) {
  actor parent = self;
  auto all = std::make_shared<std::vector<actor>>();
  actor judge =
      self->spawn([=](event_based_actor* me) { return arbitrator(me, parent, all, seats); });
  for (size_t who = 0; who < seats; ++who)
    all->push_back(self->spawn(
        [=](event_based_actor* me) { return philosopher(me, parent, judge, who, rounds); }));
  for (auto& one : *all) self->send(one, begin_atom::value);
  auto left = std::make_shared<size_t>(seats);
  return {[=](ready_atom) {
            if (--*left == 0) self->send(judge, end_atom::value);
          },
          [=](uint64_t meals) {
            check(meals == seats * rounds, "philosophers");
            fin->set_value();
            self->quit();
          }};
}

inline behavior account(event_based_actor* me, actor teller, directory all, uint64_t id) {
  auto balance = std::make_shared<int64_t>(0);
  return {[=](order_atom, int64_t amount, uint64_t to) {
            *balance -= amount;
            me->request((*all)[to], infinite, deposit_atom::value, amount).await([=](bool ok) {
              check(ok, "deposit");
              me->send(teller, amount);
            });
          },
          [=](deposit_atom, int64_t amount) {
            *balance += amount;
            return true;
          },
          [=](end_atom) {
            me->send(teller, id, *balance);
            me->quit();
          }};
}

inline behavior bank_transaction(event_based_actor* self, finished fin, size_t size,
                                 int transfers) {
  struct state {
    harness::transfers orders;
    int64_t moved = 0;
    int replies = 0;
    size_t closed = 0;
  };
  actor teller = self;
  auto all = std::make_shared<std::vector<actor>>();
  for (uint64_t id = 0; id < size; ++id)
    all->push_back(
        self->spawn([=](event_based_actor* me) { return account(me, teller, all, id); }));
  auto st = std::make_shared<state>(state{harness::transfers(size)});
  for (int i = 0; i < transfers; ++i) {
    auto order = st->orders.next();
    self->send((*all)[order.from], order_atom::value, order.amount, uint64_t{order.to});
  }
  return {[=](int64_t amount) {
            st->moved += amount;
            if (++st->replies < transfers) return;
            check(st->moved == st->orders.moved(), "bank_transaction");
            for (auto& one : *all) self->send(one, end_atom::value);
          },
          [=](uint64_t id, int64_t balance) {
            check(balance == st->orders.balance(id), "a balance is wrong");
            if (++st->closed < size) return;
            fin->set_value();
            self->quit();
          }};
}

}  // namespace savina
