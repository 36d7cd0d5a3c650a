// restart: a worker that fails, and a keeper that watches it and starts it anew. Actors fail alone:
// the exception ends its own actor, and whoever watches learns why.
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include <smarm/smarm.hpp>

using namespace std::chrono_literals;

namespace {

struct job {
  int divisor;
  smarm::oneshot_sender<int> reply;
};

// Divides 1,000 by what it is given. A job that cannot be done ends the worker, not the program;
// the reply that dies with it tells the client.
void work(smarm::receiver<job>& jobs) {
  while (auto next = jobs.recv()) {
    if (next->divisor == 0) throw std::runtime_error("division by zero");
    (void)std::move(next->reply).send(1000 / next->divisor);
  }
}

// Keeps one worker alive on the same mailbox, for at most five failures in a second.
void keep(smarm::receiver<job> jobs) {
  constexpr int failures_max = 5;
  int failures = 0;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    auto worker = smarm::spawn({.name = "worker"}, [&jobs] { work(jobs); });
    const smarm::down news = smarm::monitor(worker.id()).recv();
    if (!news.reason.is_error()) return;
    std::printf("worker %s; restarting\n", news.reason.message().c_str());

    const auto now = std::chrono::steady_clock::now();
    if (now - since > 1s) failures = 0;
    if (failures == 0) since = now;
    if (++failures > failures_max) throw std::runtime_error("the worker fails too often");
  }
}

std::optional<int> divide(const smarm::sender<job>& jobs, int divisor) {
  auto [reply, answer] = smarm::oneshot<int>();
  if (!jobs.send({divisor, std::move(reply)})) return std::nullopt;
  auto got = answer.recv_for(5s);
  return got ? std::optional(*got) : std::nullopt;
}

}  // namespace

int main() {
  smarm::run([] {
    auto [jobs, inbox] = smarm::channel<job>();
    auto keeper = smarm::spawn({.name = "keeper"},
                               [inbox = std::move(inbox)]() mutable { keep(std::move(inbox)); });
    for (const int divisor : {8, 0, 10}) {
      if (const auto result = divide(jobs, divisor)) {
        std::printf("1000 / %d = %d\n", divisor, *result);
      } else {
        std::printf("1000 / %d has no answer\n", divisor);
      }
    }
    jobs.close();
    (void)keeper.join();
  });
}
