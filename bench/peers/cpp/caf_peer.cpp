// Peer benchmark: CAF 0.17, event-based actors, the default (work stealing)
// scheduler.
//
//   caf_peer <bench> <threads>
//   caf_peer tcp_server <threads> <port>   one broker per connection
//   caf_peer idle|sleep1ms <threads> <seconds>
//
// threads = 0 keeps the default. See bench/README.md.

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <functional>
#include <future>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "bench/harness.hpp"
#include "caf_savina.hpp"

using namespace caf;
using harness::check;

using go_atom = atom_constant<atom("go")>;
using done_atom = atom_constant<atom("done")>;
using stop_atom = atom_constant<atom("stop")>;
using tick_atom = atom_constant<atom("tick")>;
using ask_atom = atom_constant<atom("ask")>;
using next_atom = atom_constant<atom("next")>;

static const char* const peer = "caf";

// What the driver actor of each run says when it has finished.
using finished = std::shared_ptr<std::promise<void>>;

static void run_driver(actor_system& sys,
                       const std::function<behavior(event_based_actor*, finished)>& make) {
  auto p = std::make_shared<std::promise<void>>();
  auto f = p->get_future();
  // The handle keeps the driver alive: a monitor alone would not.
  actor driver = sys.spawn([=](event_based_actor* self) { return make(self, p); });
  f.wait();
}

// An actor that finishes after n `done` messages.
static behavior await_done(event_based_actor* self, finished fin, int n) {
  auto left = std::make_shared<int>(n);
  return {[=](done_atom) {
    if (--*left == 0) {
      fin->set_value();
      self->quit();
    }
  }};
}

// ----------------------------------------------------------------- workloads

static behavior chained_spawn(event_based_actor* self, finished fin, int n) {
  auto left = std::make_shared<int>(n);
  self->set_down_handler([=](down_msg&) {
    if (--*left == 0) {
      fin->set_value();
      self->quit();
    } else {
      self->spawn<monitored>([](event_based_actor*) {});
    }
  });
  self->spawn<monitored>([](event_based_actor*) {});
  return {[](stop_atom) {}};
}

// No yield in CAF: each task sends itself a message, and the scheduler is told
// to take one message per turn.
static behavior yield_many(event_based_actor* self, finished fin, int tasks, int yields) {
  actor parent = self;
  for (int i = 0; i < tasks; ++i)
    self->spawn([=](event_based_actor* child) -> behavior {
      child->send(child, tick_atom::value);
      auto left = std::make_shared<int>(yields);
      return {[=](tick_atom) {
        if (--*left > 0) {
          child->send(child, tick_atom::value);
        } else {
          child->send(parent, done_atom::value);
          child->quit();
        }
      }};
    });
  return await_done(self, fin, tasks);
}

static behavior ping_pong(event_based_actor* self, finished fin, uint64_t n) {
  actor parent = self;
  actor ponger = self->spawn([](event_based_actor* me) -> behavior {
    return {[=](const actor& from, uint64_t v) { me->send(from, v + 1); },
            [=](stop_atom) { me->quit(); }};
  });
  self->spawn([=](event_based_actor* me) -> behavior {
    me->send(ponger, actor{me}, uint64_t{0});
    return {[=](uint64_t v) {
      if (v < n) {
        me->send(ponger, actor{me}, v);
      } else {
        me->send(ponger, stop_atom::value);
        me->send(parent, done_atom::value);
        me->quit();
      }
    }};
  });
  return await_done(self, fin, 1);
}

static void oneshot_step(event_based_actor* self, finished fin, uint64_t i, uint64_t n,
                         uint64_t sum) {
  if (i == n) {
    check(sum == n * (n - 1) / 2, "ping_pong_oneshot");
    fin->set_value();
    self->quit();
    return;
  }
  actor child = self->spawn([i](event_based_actor* me) -> behavior {
    return {[=](ask_atom) {
      me->quit();
      return i;
    }};
  });
  self->request(child, infinite, ask_atom::value).then([=](uint64_t v) {
    oneshot_step(self, fin, i + 1, n, sum + v);
  });
}

static behavior ping_pong_oneshot(event_based_actor* self, finished fin, uint64_t n) {
  oneshot_step(self, fin, 0, n, 0);
  return {[](stop_atom) {}};
}

static behavior spawn_storm(event_based_actor* self, finished fin, int n) {
  actor parent = self;
  for (int i = 0; i < n; ++i)
    self->spawn([parent](event_based_actor* me) { me->send(parent, done_atom::value); });
  return await_done(self, fin, n);
}

static behavior mpsc(event_based_actor* self, finished fin, uint64_t producers, uint64_t each) {
  struct state {
    uint64_t left, sum = 0;
  };
  actor parent = self;
  actor consumer = self->spawn([=](event_based_actor* me) -> behavior {
    auto st = std::make_shared<state>(state{producers * each});
    return {[=](uint64_t v) {
      st->sum += v;
      if (--st->left == 0) {
        check(st->sum == producers * each * (each - 1) / 2, "mpsc");
        me->send(parent, done_atom::value);
        me->quit();
      }
    }};
  });
  for (uint64_t p = 0; p < producers; ++p)
    self->spawn([=](event_based_actor* me) {
      for (uint64_t i = 0; i < each; ++i) me->send(consumer, i);
    });
  return await_done(self, fin, 1);
}

static behavior many_timers(event_based_actor* self, finished fin, int n) {
  actor parent = self;
  for (int i = 0; i < n; ++i)
    self->spawn([=](event_based_actor* me) -> behavior {
      me->delayed_send(me, std::chrono::milliseconds(harness::sleep_millis(i)), tick_atom::value);
      return {[=](tick_atom) {
        me->send(parent, done_atom::value);
        me->quit();
      }};
    });
  return await_done(self, fin, n);
}

static behavior fan_out(event_based_actor* self, finished fin, int tasks) {
  actor parent = self;
  for (int i = 0; i < tasks; ++i)
    self->spawn([=](event_based_actor* me) {
      check(harness::count_primes(200'000) == 17984, "primes");
      me->send(parent, done_atom::value);
    });
  return await_done(self, fin, tasks);
}

// Passes a token `hops` times; then `stop`, once around, ends the actors.
static behavior ring(event_based_actor* self, finished fin, int size, int64_t hops) {
  actor parent = self;
  auto node = [=](event_based_actor* me, int id, actor next) -> behavior {
    return {[=](int64_t left) {
              if (left > 0) {
                me->send(next, left - 1);
              } else {
                check(id == hops % size, "ring");
                me->send(parent, done_atom::value);
              }
            },
            [=](stop_atom) {
              me->send(next, stop_atom::value);
              me->quit();
            }};
  };
  actor first = self->spawn([=](event_based_actor* me) -> behavior {
    return {[=](next_atom, const actor& next) { me->become(node(me, 0, next)); }};
  });
  actor last = first;
  for (int id = size - 1; id > 0; --id)
    last = self->spawn([=](event_based_actor* me) -> behavior { return node(me, id, last); });
  self->send(first, next_atom::value, last);
  self->send(first, hops);
  return {[=](done_atom) {
    self->send(first, stop_atom::value);
    fin->set_value();
    self->quit();
  }};
}

static behavior skynet_node(event_based_actor* me, actor parent, uint64_t num, uint64_t size) {
  if (size == 1) {
    me->send(parent, num);
    return {};
  }
  uint64_t step = size / 10;
  actor mine = me;
  for (uint64_t i = 0; i < 10; ++i)
    me->spawn(
        [=](event_based_actor* child) { return skynet_node(child, mine, num + i * step, step); });
  struct state {
    int left = 10;
    uint64_t sum = 0;
  };
  auto st = std::make_shared<state>();
  return {[=](uint64_t v) {
    st->sum += v;
    if (--st->left == 0) {
      me->send(parent, st->sum);
      me->quit();
    }
  }};
}

static behavior skynet(event_based_actor* self, finished fin, uint64_t leaves) {
  actor parent = self;
  self->spawn([=](event_based_actor* me) { return skynet_node(me, parent, 0, leaves); });
  return {[=](uint64_t sum) {
    check(sum == leaves * (leaves - 1) / 2, "skynet");
    fin->set_value();
    self->quit();
  }};
}

static behavior panic_isolation(event_based_actor* self, finished fin, int n) {
  struct state {
    int left, seen = 0;
  };
  auto st = std::make_shared<state>(state{n});
  auto bomb = [](event_based_actor* me) -> behavior {
    // The default handler does the same, but prints to stderr too.
    me->set_exception_handler([](std::exception_ptr&) -> error { return sec::runtime_error; });
    me->send(me, go_atom::value);
    return {[](go_atom) { throw std::runtime_error("boom"); }};
  };
  self->set_down_handler([=](down_msg& m) {
    st->seen += m.reason ? 1 : 0;
    if (--st->left == 0) {
      check(st->seen == n, "panic_isolation");
      fin->set_value();
      self->quit();
    } else {
      self->spawn<monitored>(bomb);
    }
  });
  self->spawn<monitored>(bomb);
  return {[](stop_atom) {}};
}

// CAF ends an actor that nobody refers to; these are sent the order, and a message says that it is
// carried out.
static void idle_memory(actor_system& sys, const std::string& bench, int threads, int n) {
  harness::memory_probe probe;
  auto nap = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  auto ready = std::make_shared<std::atomic<int>>(0);
  auto received = std::make_shared<std::atomic<int>>(0);
  auto keep = std::make_shared<std::vector<actor>>();
  run_driver(sys, [=](event_based_actor* self, finished fin) -> behavior {
    keep->reserve(n);
    for (int i = 0; i < n; ++i)
      keep->push_back(self->spawn([=](event_based_actor* me) -> behavior {
        ++*ready;
        return {[=](int v) { *received += v; }, [=](stop_atom) { me->quit(); }};
      }));
    fin->set_value();
    return {};
  });
  while (*ready != n) nap(1);
  probe.parked();
  nap(200);
  probe.settled();
  for (auto& one : *keep) anon_send(one, 1);
  while (*received != n) nap(1);
  probe.woken();
  for (auto& one : *keep) anon_send(one, stop_atom::value);
  keep->clear();
  keep->shrink_to_fit();
  while (sys.registry().running() != 0) nap(1);
  probe.stopped();
  nap(200);
  probe.report(peer, bench, threads, n);
  std::_Exit(0);
}

static behavior sleep_loop(event_based_actor* self, finished fin, double secs) {
  auto t0 = harness::clock::now();
  auto iters = std::make_shared<long>(0);
  self->delayed_send(self, std::chrono::milliseconds(1), tick_atom::value);
  return {[=](tick_atom) {
    ++*iters;
    double us = harness::micros_since(t0);
    if (us < secs * 1e6) {
      self->delayed_send(self, std::chrono::milliseconds(1), tick_atom::value);
    } else {
      std::printf("iters_per_s=%.1f\n", *iters / us * 1e6);
      fin->set_value();
      self->quit();
    }
  }};
}

// ----------------------------------------------------------------------- TCP

static behavior echo_broker(io::broker* self, io::connection_handle hdl) {
  self->configure_read(hdl, io::receive_policy::at_most(4096));
  return {[=](const io::new_data_msg& msg) {
            self->write(msg.handle, msg.buf.size(), msg.buf.data());
            self->flush(msg.handle);
          },
          [=](const io::connection_closed_msg&) { self->quit(); }};
}

static behavior echo_acceptor(io::broker* self) {
  return {[=](const io::new_connection_msg& msg) { self->fork(echo_broker, msg.handle); },
          [=](const io::acceptor_closed_msg&) { self->quit(); }};
}

struct config : actor_system_config {
  config() { load<io::middleman>(); }
};

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: caf_peer <bench> <threads> [port|seconds]\n");
    return 2;
  }
  std::string bench = argv[1], arg = argc > 3 ? argv[3] : "5";
  int threads = std::atoi(argv[2]);
  config with_io;
  actor_system_config plain;
  actor_system_config& cfg = bench == "tcp_server" ? with_io : plain;
  if (threads > 0) cfg.set("scheduler.max-threads", threads);
  if (bench == "yield_many") cfg.set("scheduler.max-throughput", 1);
  actor_system sys{cfg};
  auto run = [&](double n, const std::function<behavior(event_based_actor*, finished)>& make) {
    harness::measure(peer, bench, threads, n, [&] { run_driver(sys, make); });
  };
  using self_t = event_based_actor*;
  if (bench == "chained_spawn")
    run(10'000, [](self_t s, finished f) { return chained_spawn(s, f, 10'000); });
  else if (bench == "yield_many")
    run(100'000, [](self_t s, finished f) { return yield_many(s, f, 100, 1'000); });
  else if (bench == "ping_pong")
    run(100'000, [](self_t s, finished f) { return ping_pong(s, f, 100'000); });
  else if (bench == "ping_pong_oneshot")
    run(10'000, [](self_t s, finished f) { return ping_pong_oneshot(s, f, 10'000); });
  else if (bench == "spawn_storm")
    run(100'000, [](self_t s, finished f) { return spawn_storm(s, f, 100'000); });
  else if (bench == "mpsc_contention")
    run(160'000, [](self_t s, finished f) { return mpsc(s, f, 8, 20'000); });
  else if (bench == "uncontended_channel")
    run(1'000'000, [](self_t s, finished f) { return mpsc(s, f, 1, 1'000'000); });
  else if (bench == "many_timers")
    run(10'000, [](self_t s, finished f) { return many_timers(s, f, 10'000); });
  else if (bench == "fan_out_compute")
    run(8, [](self_t s, finished f) { return fan_out(s, f, 8); });
  else if (bench == "ring")
    run(1'000'000, [](self_t s, finished f) { return ring(s, f, 503, 1'000'000); });
  else if (bench == "skynet")
    run(111'111, [](self_t s, finished f) { return skynet(s, f, 100'000); });
  else if (bench == "skynet_1m")
    run(1'111'111, [](self_t s, finished f) { return skynet(s, f, 1'000'000); });
  else if (bench == "panic_isolation")
    run(10'000, [](self_t s, finished f) { return panic_isolation(s, f, 10'000); });
  else if (bench == "call_reply")
    run(200'000, [](self_t s, finished f) { return savina::call_reply(s, f, 200'000); });
  else if (bench == "fork_join_throughput")
    run(1'200'000,
        [](self_t s, finished f) { return savina::fork_join_throughput(s, f, 60, 20'000); });
  else if (bench == "counting")
    run(1'000'000, [](self_t s, finished f) { return savina::counting(s, f, 1'000'000); });
  else if (bench == "big")
    run(360'000, [](self_t s, finished f) { return savina::big(s, f, 120, 3'000); });
  else if (bench == "philosophers")
    run(200'000, [](self_t s, finished f) { return savina::philosophers(s, f, 20, 10'000); });
  else if (bench == "bank_transaction")
    run(100'000,
        [](self_t s, finished f) { return savina::bank_transaction(s, f, 1'000, 100'000); });
  else if (bench == "idle_memory_100k")
    idle_memory(sys, bench, threads, 100'000);
  else if (bench == "idle_memory_1m")
    idle_memory(sys, bench, threads, 1'000'000);
  else if (bench == "idle")
    std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(arg.c_str())));
  else if (bench == "sleep1ms")
    run_driver(sys, [&](self_t s, finished f) { return sleep_loop(s, f, std::atof(arg.c_str())); });
  else if (bench == "tcp_server") {
    auto server =
        sys.middleman().spawn_server(echo_acceptor, static_cast<uint16_t>(std::atoi(arg.c_str())));
    check(static_cast<bool>(server), "spawn_server");
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  } else
    harness::skip(peer, bench, threads);
}
