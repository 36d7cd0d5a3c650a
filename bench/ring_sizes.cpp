// ring_sizes prints what one hop of a message costs in rings of ten to a million actors, on one
// scheduler: each hop wakes an actor that has slept for a whole lap.
//
//   ring_sizes [SCHEDULERS]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <smarm/smarm.hpp>

#include "bench/harness.hpp"

namespace {

using harness::check;

struct ring {
  explicit ring(std::size_t size) {
    std::vector<smarm::receiver<std::int64_t>> ends;
    for (std::size_t i = 0; i < size; ++i) {
      auto [tx, rx] = smarm::channel<std::int64_t>();
      to.push_back(std::move(tx));
      ends.push_back(std::move(rx));
    }
    auto [done_tx, done_rx] = smarm::channel<bool>();
    done = std::move(done_rx);
    for (std::size_t i = 0; i < size; ++i) {
      members.push_back(
          smarm::spawn([rx = std::move(ends[i]), next = to[(i + 1) % size], done_tx]() mutable {
            while (auto hops = rx.recv()) {
              if (*hops == 0) {
                check(done_tx.send(true).has_value(), "done");
              } else {
                check(next.send(*hops - 1).has_value(), "hop");
              }
            }
          }));
    }
  }
  ~ring() {
    for (auto& each : members) each.request_stop();
    for (auto& each : members) (void)each.join();
  }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  // ns_a_hop sends a token through so many hops.
  double ns_a_hop(std::int64_t hops) {
    const auto begin = std::chrono::steady_clock::now();
    check(to[0].send(hops).has_value(), "begin");
    check(done.recv().has_value(), "end");
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(hops);
  }

  std::vector<smarm::sender<std::int64_t>> to;
  smarm::receiver<bool> done;
  std::vector<smarm::join_handle<void>> members;
};

void measure(std::size_t size) {
  ring all(size);
  const auto hops = static_cast<std::int64_t>(std::max<std::size_t>(2 * size, 1'000'000));
  (void)all.ns_a_hop(static_cast<std::int64_t>(size));  // each has its stack
  double best = all.ns_a_hop(hops);
  for (int again = 0; again < 2; ++again) best = std::min(best, all.ns_a_hop(hops));
  std::printf("%8zu actors %7.1f ns a hop\n", size, best);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto schedulers = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 1);
  smarm::runtime({.schedulers = schedulers, .max_actors = std::size_t{1} << 21}).run([] {
    for (std::size_t size = 10; size <= 1'000'000; size *= 10) {
      measure(size);
      if (size < 1'000'000) measure(3 * size);
    }
  });
}
