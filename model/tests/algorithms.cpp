// The algorithms: queues, stacks, deques, locks, parkers, slots. Values that stand for pairs are
// packed into one integer; plain data is model::plain, so that executions can be compared one by
// one.
#include "algorithms.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace algorithms {

namespace {

using model::expect;
using model::parallel;

constexpr auto rlx = std::memory_order_relaxed;
constexpr auto acq = std::memory_order_acquire;
constexpr auto rel = std::memory_order_release;
constexpr auto ar = std::memory_order_acq_rel;
constexpr auto sc = std::memory_order_seq_cst;

using word = model::atomic<int>;
using data = model::plain<int>;

// ends counts an execution that came to its end.
void ends(const orders& o) {
  if (o.completed != nullptr) ++*o.completed;
}

// cas is compare_exchange_strong by value; `found` gets what was there.
bool cas(word& w, int expected, int desired, std::memory_order success, std::memory_order failure,
         int* found = nullptr) {
  int seen = expected;
  const bool done = w.compare_exchange_strong(seen, desired, success, failure);
  if (found != nullptr) *found = done ? expected : seen;
  return done;
}

void spsc(const orders& o) {
  constexpr int capacity = 1;
  constexpr int items = 2;
  word head{0};
  word tail{0};
  std::array<data, capacity> ring;
  std::vector<int> out;
  parallel(
      [&] {
        for (int i = 0; i < items; ++i) {
          head.await([i](int v) { return i - v < capacity; }, o("p.head.load", acq));
          ring[i % capacity].write(10 + i);
          tail.store(i + 1, o("p.tail.store", rel));
        }
      },
      [&] {
        for (int i = 0; i < items; ++i) {
          tail.await([i](int v) { return v > i; }, o("c.tail.load", acq));
          out.push_back(ring[i % capacity].read());
          head.store(i + 1, o("c.head.store", rel));
        }
      });
  ends(o);
  expect(out == std::vector{10, 11}, "wrong data");
}

// Vyukov's bounded queue of two cells; an operation is tried `tries` times.
class mpmc {
 public:
  mpmc(const orders& o, int tries) : o_(o), tries_(tries) {
    static_assert(capacity == 2);
    sequence_[1].store(1, rlx);
  }

  void push(int value) {
    int at = tail_.load(rlx);
    for (int i = 0; i < tries_; ++i) {
      const int seen = sequence_[at % capacity].load(o_("enq.seq.load", acq));
      if (seen < at) return;
      if (seen > at) {
        at = tail_.load(rlx);
      } else if (int found = 0; cas(tail_, at, at + 1, rlx, rlx, &found)) {
        data_[at % capacity].write(value);
        sequence_[at % capacity].store(at + 1, o_("enq.seq.store", rel));
        pushed.push_back(value);
        return;
      } else {
        at = found;
      }
    }
  }

  void pop(std::vector<int>& out) {
    int at = head_.load(rlx);
    for (int i = 0; i < tries_; ++i) {
      const int seen = sequence_[at % capacity].load(o_("deq.seq.load", acq));
      if (seen < at + 1) return;
      if (seen > at + 1) {
        at = head_.load(rlx);
      } else if (int found = 0; cas(head_, at, at + 1, rlx, rlx, &found)) {
        out.push_back(data_[at % capacity].read());
        sequence_[at % capacity].store(at + capacity, o_("deq.seq.store", rel));
        return;
      } else {
        at = found;
      }
    }
  }

  std::vector<int> pushed;

 private:
  static constexpr int capacity = 2;
  const orders& o_;
  int tries_;
  word tail_{0};
  word head_{0};
  std::array<word, capacity> sequence_;
  std::array<data, capacity> data_;
};

void run_mpmc(const orders& o, const std::vector<std::vector<int>>& producers,
              const std::vector<int>& consumers, int tries) {
  mpmc queue{o, tries};
  std::vector<std::vector<int>> outs(consumers.size());
  std::vector<model::thread> threads;
  for (const auto& values : producers)
    threads.emplace_back([&] {
      for (const int v : values) queue.push(v);
    });
  for (std::size_t c = 0; c < consumers.size(); ++c)
    threads.emplace_back([&, c] {
      for (int i = 0; i < consumers[c]; ++i) queue.pop(outs[c]);
    });
  for (model::thread& t : threads) t.join();
  ends(o);
  std::set<int> seen;
  for (const auto& out : outs) {
    expect(std::ranges::is_sorted(out), "the order of a producer is lost");
    for (const int v : out) {
      expect(seen.insert(v).second, "an item comes out twice");
      expect(std::ranges::count(queue.pushed, v) == 1, "an item comes from nowhere");
    }
  }
}

// Treiber's stack of nodes 1 (on top) and 2; with `tag` the top counts its changes.
void treiber(const orders& o, bool reuse, bool tag) {
  const auto node = [](int top) { return top & 0xff; };
  const auto next_top = [tag](int n, int old) { return tag ? n | ((old & ~0xff) + 0x100) : n; };
  word top{1};
  word next1{2};
  word next2{0};
  const auto next = [&](int n) -> word& { return n == 1 ? next1 : next2; };
  std::vector<int> owned;
  std::vector<int> others;
  parallel(
      [&] {
        const int h = top.load(o("pop.top.load", acq));
        if (node(h) == 0) return;
        const int n = next(node(h)).load(rlx);
        if (cas(top, h, next_top(n, h), o("pop.cas", ar), rlx)) owned.push_back(node(h));
      },
      [&] {
        for (int i = 0; i < 2; ++i) {
          const int h = top.load(o("pop.top.load2", acq));
          if (node(h) == 0) break;
          const int n = next(node(h)).load(rlx);
          if (cas(top, h, next_top(n, h), o("pop.cas2", ar), rlx)) others.push_back(node(h));
        }
        if (!reuse || others != std::vector{1, 2}) return;
        const int h = top.load(rlx);
        next1.store(node(h), rlx);
        if (cas(top, h, next_top(1, h), o("push.cas", rel), rlx)) others.erase(others.begin());
      });
  ends(o);
  owned.insert(owned.end(), others.begin(), others.end());
  for (int n = node(top.load(rlx)), i = 0; n != 0 && i < 4; ++i, n = next(n).load(rlx))
    owned.push_back(n);
  std::ranges::sort(owned);
  expect(owned == std::vector{1, 2}, "a node is lost, or in two hands");
}

void treiber_payload(const orders& o) {
  word top{0};
  word next{0};
  data payload{0};
  parallel(
      [&] {
        payload.write(7);
        const int h = top.load(rlx);
        next.store(h, rlx);
        cas(top, h, 1, o("push.cas", rel), rlx);
      },
      [&] {
        const int h = top.load(o("pop.top.load", acq));
        if (h == 0) return;
        const int n = next.load(rlx);
        if (cas(top, h, n, rlx, rlx)) expect(payload.read() == 7, "bad payload");
      });
  ends(o);
}

void mcs(const orders& o) {
  word tail{0};
  std::array<word, 3> next;
  std::array<word, 3> locked;
  data counter{0};
  const auto body = [&](int me) {
    next[me].store(0, rlx);
    locked[me].store(1, rlx);
    const int previous = tail.exchange(me, o("lock.xchg", ar));
    if (previous != 0) {
      next[previous].store(me, o("lock.link", rel));
      locked[me].await([](int v) { return v == 0; }, o("lock.spin", acq));
    }
    counter.write(counter.read() + 1);
    int follower = next[me].load(o("unlock.next.load", acq));
    if (follower == 0) {
      if (cas(tail, me, 0, o("unlock.cas", rel), rlx)) return;
      follower = next[me].await([](int v) { return v != 0; }, o("unlock.next.spin", acq));
    }
    locked[follower].store(0, o("unlock.handoff", rel));
  };
  parallel([&] { body(1); }, [&] { body(2); });
  ends(o);
  expect(counter.read() == 2, "an update is lost");
}

void ticket(const orders& o) {
  word next{0};
  word serving{0};
  data counter{0};
  const auto body = [&] {
    const int me = next.fetch_add(1, rlx);
    serving.await([me](int v) { return v == me; }, o("spin", acq));
    counter.write(counter.read() + 1);
    serving.store(me + 1, o("unlock", rel));
  };
  parallel(body, body);
  ends(o);
  expect(counter.read() == 2, "an update is lost");
}

// The work-stealing deque of Chase and Lev, as in Le et al. (PPoPP 2013).
class chase_lev {
 public:
  explicit chase_lev(const orders& o) : o_(o) {}

  void push(int item) {
    const int b = bottom_.load(rlx);
    top_.load(o_("push.top.load", acq));
    items_[b % 4].store(item, rlx);
    o_.fence("push.fence", rel);
    bottom_.store(b + 1, rlx);
  }

  void take(std::vector<int>& got) {
    const int b = bottom_.load(rlx) - 1;
    bottom_.store(b, rlx);
    o_.fence("take.fence", sc);
    const int t = top_.load(rlx);
    if (t > b) return bottom_.store(b + 1, rlx);
    const int item = items_[b % 4].load(rlx);
    if (t < b) return got.push_back(item);
    if (cas(top_, t, t + 1, o_("take.cas", sc), rlx)) got.push_back(item);
    bottom_.store(b + 1, rlx);
  }

  void steal(std::vector<int>& got) {
    const int t = top_.load(o_("steal.top.load", acq));
    o_.fence("steal.fence", sc);
    const int b = bottom_.load(o_("steal.bot.load", acq));
    if (t >= b) return;
    const int item = items_[t % 4].load(rlx);
    if (cas(top_, t, t + 1, o_("steal.cas", sc), rlx)) got.push_back(item);
  }

  [[nodiscard]] int left() const { return bottom_.load(rlx) - top_.load(rlx); }

 private:
  const orders& o_;
  word top_{0};
  word bottom_{0};
  std::array<word, 4> items_;
};

void run_chase_lev(const orders& o, int pushes, int takes, int thieves, int steals) {
  chase_lev deque{o};
  std::vector<std::vector<int>> got(1 + static_cast<std::size_t>(thieves));
  std::vector<model::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < pushes; ++i) deque.push(10 + i);
    for (int i = 0; i < takes; ++i) deque.take(got[0]);
  });
  for (int t = 1; t <= thieves; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < steals; ++i) deque.steal(got[static_cast<std::size_t>(t)]);
    });
  for (model::thread& t : threads) t.join();
  ends(o);
  std::set<int> seen;
  for (const auto& items : got)
    for (const int item : items) {
      expect(item != 0, "an item is read that nobody wrote");
      expect(seen.insert(item).second, "an item comes out twice");
    }
  expect(static_cast<int>(seen.size()) + deque.left() == pushes, "an item is lost");
}

// A futex of atomics: bucket lock, set of waiters, a flag each.
struct futex {
  word bucket{0};
  word waiters{0};
  std::array<word, 3> woken;

  void lock() {
    bucket.await_update([](int v) { return v == 0; }, [](int) { return 1; }, acq);
  }

  bool wait(word& w, int expected, int me) {
    lock();
    if (w.load(rlx) != expected) {
      bucket.store(0, rel);
      return false;
    }
    waiters.store(waiters.load(rlx) | me, rlx);
    bucket.store(0, rel);
    woken[me].await([](int v) { return v == 1; }, acq);
    woken[me].store(0, rlx);
    return true;
  }

  void wake_one() {
    lock();
    int set = waiters.load(rlx);
    const int chosen = set & -set;
    if (chosen != 0) woken[chosen].store(1, rel);
    set &= ~chosen;
    waiters.store(set, rlx);
    bucket.store(0, rel);
  }
};

void token_parker(const orders& o) {
  word state{0};
  data payload{0};
  futex kernel;
  parallel(
      [&] {
        if (state.fetch_add(-1, o("park.sub", acq)) != 1) {
          kernel.wait(state, -1, 1);
          if (!cas(state, 1, 0, o("park.cas", acq), rlx)) model::fail("woken for nothing");
        }
        expect(payload.read() == 5, "bad payload");
      },
      [&] {
        payload.write(5);
        if (state.exchange(1, o("unpark.swap", rel)) == -1) kernel.wake_one();
      });
  ends(o);
}

void naive_parker(const orders& o, std::memory_order store, std::memory_order load) {
  word sleeping{0};
  word flag{0};
  word woken{0};
  parallel(
      [&] {
        sleeping.store(1, o("park.sleeping.store", store));
        if (flag.load(o("park.flag.load", load)) == 0)
          woken.await([](int v) { return v == 1; }, acq);
      },
      [&] {
        flag.store(1, o("unpark.flag.store", store));
        if (sleeping.load(o("unpark.sleeping.load", load)) != 0) woken.store(1, rel);
      });
  ends(o);
}

// A slot's word is a generation and a state; a stale unpark must not hit the next generation.
void generational_slot(const orders& o) {
  const int run = 0;
  const int park = 1;
  const int ready = 2;
  const int next = 0x100;
  word w{run};
  bool parked = false;
  parallel(
      [&] {
        cas(w, run, park, o("park.cas", ar), o("park.cas!fail", acq));
        w.exchange(next | run, o("reuse.xchg", ar));
        parked = cas(w, next | run, next | park, o("park2.cas", ar), o("park2.cas!fail", acq));
      },
      [&] {
        if (w.load(o("unpark.load", acq)) == park)
          cas(w, park, ready, o("unpark.cas", ar), o("unpark.cas!fail", acq));
      });
  ends(o);
  expect(parked && w.load(rlx) == (next | park), "a stale unpark hit a reused slot");
}

void broken_slot(const orders& o) {
  word generation{0};
  word state{0};  // 0 runs, 1 parked, 2 ready, 3 parked again, by another
  parallel(
      [&] {
        state.store(1, o("park", rel));
        generation.store(1, o("reuse.gen", rel));
        state.store(3, o("reuse.park", rel));
      },
      [&] {
        const int g = generation.load(o("unpark.gen", acq));
        const int s = state.load(o("unpark.state", acq));
        if (g == 0 && s == 1) state.store(2, o("unpark.store", rel));
      });
  ends(o);
  expect(state.load(rlx) == 3, "a stale unpark hit a reused slot");
}

void two_unparkers(const orders& o) {
  word state{1};
  word queue{0};
  const auto body = [&] {
    if (cas(state, 1, 2, o("unpark.cas", ar), o("unpark.cas!fail", acq))) queue.fetch_add(1, rlx);
  };
  parallel(body, body);
  ends(o);
  expect(queue.load(rlx) == 1, "enqueued other than once");
}

void seqlock(const orders& o) {
  word sequence{0};
  word first{0};
  word second{0};
  parallel(
      [&] {
        sequence.store(1, rlx);
        o.fence("w.fence", rel);
        first.store(1, rlx);
        second.store(1, rlx);
        sequence.store(2, o("w.end", rel));
      },
      [&] {
        const int begin = sequence.load(o("r.begin", acq));
        if ((begin & 1) != 0) return;
        const int x = first.load(rlx);
        const int y = second.load(rlx);
        o.fence("r.fence", acq);
        if (sequence.load(rlx) == begin) expect(x == y, "torn");
      });
  ends(o);
}

void double_checked(const orders& o) {
  word pointer{0};
  word lock{0};
  data object{0};
  const auto body = [&] {
    if (pointer.load(o("fast.load", acq)) == 0) {
      lock.await_update([](int v) { return v == 0; }, [](int) { return 1; }, o("m.lock", acq));
      if (pointer.load(rlx) == 0) {
        object.write(3);
        pointer.store(1, o("publish", rel));
      }
      lock.store(0, o("m.unlock", rel));
    }
    expect(object.read() == 3, "not initialised");
  };
  parallel(body, body);
  ends(o);
}

void hazard_pointer(const orders& o) {
  word pointer{1};
  word hazard{0};
  word alive{1};
  parallel(
      [&] {
        const int p = pointer.load(rlx);
        if (p == 0) return;
        hazard.store(p, rlx);
        o.fence("r.fence", sc);
        if (pointer.load(o("r.reload", acq)) == p) expect(alive.load(rlx) == 1, "use after free");
        hazard.store(0, o("r.hp.clear", rel));
      },
      [&] {
        pointer.store(0, rlx);
        o.fence("w.fence", sc);
        if (hazard.load(o("w.scan", acq)) == 0) alive.store(0, rlx);
      });
  ends(o);
}

// Drepper's mutex: 0 free, 1 locked, 2 locked with waiters. A lock is tried twice.
void futex_mutex(const orders& o) {
  word lock{0};
  data counter{0};
  futex kernel;
  std::array<int, 3> done{};
  const auto body = [&](int me) {
    if (!cas(lock, 0, 1, o("lock.cas", acq), rlx)) {
      int tries = 0;
      for (; tries < 2 && lock.exchange(2, o("lock.xchg2", acq)) != 0; ++tries)
        kernel.wait(lock, 2, me);
      if (tries == 2) return;
    }
    counter.write(counter.read() + 1);
    if (lock.exchange(0, o("unlock.xchg", rel)) == 2) kernel.wake_one();
    done[static_cast<std::size_t>(me)] = 1;
  };
  parallel([&] { body(1); }, [&] { body(2); });
  ends(o);
  expect(counter.read() == done[1] + done[2], "an update is lost");
}

// Michael and Scott's queue: dummy node 1, new node 2.
void michael_scott(const orders& o) {
  word head{1};
  word tail{1};
  std::array<word, 3> next;
  data value{0};
  parallel(
      [&] {
        value.write(9);
        next[2].store(0, rlx);
        const int t = tail.load(o("enq.tail.load", acq));
        next[t].load(o("enq.next.load", acq));
        if (cas(next[t], 0, 2, o("enq.link.cas", rel), rlx))
          cas(tail, t, 2, o("enq.tail.cas", rel), rlx);
      },
      [&] {
        const int h = head.load(o("deq.head.load", acq));
        const int t = tail.load(o("deq.tail.load", acq));
        const int n = next[h].load(o("deq.next.load", acq));
        if (n == 0) return;
        if (h == t) cas(tail, t, n, o("deq.help.cas", rel), rlx);
        if (cas(head, h, n, o("deq.head.cas", ar), rlx)) expect(value.read() == 9, "bad value");
      });
  ends(o);
}

}  // namespace

std::vector<algorithm> all() {
  using o = const orders&;
  return {
      {"A01", "spsc", spsc},
      {"A02", "mpmc_two_producers", [](o x) { run_mpmc(x, {{11}, {21}}, {1}, 2); }},
      {"A03", "mpmc_lap", [](o x) { run_mpmc(x, {{11, 12, 13}}, {2}, 1); }},
      {"A04", "mpmc_two_consumers", [](o x) { run_mpmc(x, {{11, 12}}, {1, 1}, 2); }},
      {"A05", "treiber", [](o x) { treiber(x, false, false); }},
      {"A06", "treiber_reuse", [](o x) { treiber(x, true, false); }},
      {"A07", "treiber_tagged", [](o x) { treiber(x, true, true); }},
      {"A08", "treiber_payload", treiber_payload},
      {"A09", "mcs", mcs},
      {"A10", "ticket", ticket},
      {"A11", "chase_lev_1_1_1", [](o x) { run_chase_lev(x, 1, 1, 1, 1); }},
      {"A12", "chase_lev_2_2_1", [](o x) { run_chase_lev(x, 2, 2, 1, 1); }},
      {"A13", "chase_lev_two_thieves", [](o x) { run_chase_lev(x, 1, 1, 2, 1); }},
      {"A14", "token_parker", token_parker},
      {"A15", "naive_parker", [](o x) { naive_parker(x, rel, acq); }},
      {"A16", "sequential_parker", [](o x) { naive_parker(x, sc, sc); }},
      {"A17", "generational_slot", generational_slot},
      {"A18", "broken_slot", broken_slot},
      {"A19", "two_unparkers", two_unparkers},
      {"A20", "seqlock", seqlock},
      {"A21", "double_checked", double_checked},
      {"A22", "hazard_pointer", hazard_pointer},
      {"A23", "futex_mutex", futex_mutex},
      {"A24", "michael_scott", michael_scott},
      {"A25", "chase_lev_two_steals", [](o x) { run_chase_lev(x, 2, 1, 1, 2); }},
      {"A26", "chase_lev_push_2_two_thieves", [](o x) { run_chase_lev(x, 2, 1, 2, 1); }},
  };
}

}  // namespace algorithms
