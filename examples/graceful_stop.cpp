// graceful_stop: workers that are asked to stop by SIGTERM. Each finishes what it holds, because a
// stop unwinds it only where it waits, and its destructors run; then the program ends by itself.
//
// The program sends itself the signal after a moment, so that it can be tried without a second
// terminal.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include <smarm/smarm.hpp>

using namespace std::chrono_literals;

namespace {

struct ledger {
  int open = 0;
  int booked = 0;
};

// One transfer: must not be cut in half. The shield holds a stop off until its end.
void book(smarm::guarded<ledger>& books) {
  const smarm::stop_shield whole;
  ++books.lock()->open;
  smarm::sleep_for(1ms);  // waits inside a shield are not cut short
  const auto locked = books.lock();
  --locked->open;
  ++locked->booked;
}

void teller(smarm::guarded<ledger>& books) {
  for (;;) {
    book(books);
    smarm::sleep_for(1ms);  // here a stop takes effect
  }
}

}  // namespace

int main() {
  smarm::run([] {
    smarm::signals termination({SIGTERM, SIGINT});
    smarm::guarded<ledger> books;

    std::vector<smarm::join_handle<void>> tellers;
    tellers.reserve(8);
    for (int i = 0; i < 8; ++i) {
      tellers.push_back(smarm::spawn({.name = "teller"}, [&books] { teller(books); }));
    }
    smarm::spawn([] {
      smarm::sleep_for(50ms);
      kill(getpid(), SIGTERM);  // not raise, which aims at this very thread
    });

    const int number = termination.recv();
    for (auto& each : tellers) each.request_stop();
    int stopped = 0;
    for (auto& each : tellers) {
      const auto outcome = each.join();
      if (!outcome && outcome.error().is_stopped()) ++stopped;
    }
    const ledger end = *books.lock();
    std::printf("signal %d: %d tellers stopped, %d transfers open, booked some: %s\n", number,
                stopped, end.open, end.booked > 0 ? "yes" : "no");
  });
}
