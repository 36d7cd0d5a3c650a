// What the tests of servers share: a server that does what its messages say, and what it reports.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <smarm/guarded.hpp>
#include <smarm/report.hpp>
#include <smarm/server.hpp>

#include "actor/actor_fixture.hpp"

namespace smarm::test {

inline const exit_reason boom(atom("boom"));
inline const exit_reason quiet_end = exit_reason::shutdown(atom("quiet"));

// The reports made while it lives, instead of lines on standard error.
class reports {
 public:
  reports()
      : before_(set_report_handler([this](const report& r) { seen_.lock()->push_back(r); })) {}
  ~reports() { set_report_handler(std::move(before_)); }
  [[nodiscard]] std::vector<report_kind> kinds() {
    std::vector<report_kind> all;
    for (const report& r : *seen_.lock()) all.push_back(r.kind);
    return all;
  }

  [[nodiscard]] std::vector<report> all() { return *seen_.lock(); }

 private:
  guarded<std::vector<report>> seen_;
  report_handler before_;
};

struct terminated {
  pid who;
  exit_reason why;
};

// scripted does what its messages say, as the probe's fun-driven server does.
struct scripted {
  struct run {
    std::function<int(scripted&)> what;
    using reply = int;
  };
  struct run_later {
    std::function<void(scripted&, from<int>)> what;
    using reply = int;
  };
  struct act {
    std::function<void(scripted&)> what;
  };
  struct get {
    using reply = int;
  };

  int value = 0;
  pid tell = {};  // of terminate

  int handle(const run& r) { return r.what(*this); }
  void handle(const run_later& r, from<int> back) { r.what(*this, std::move(back)); }
  void handle(const act& a) { a.what(*this); }
  int handle(get) const { return value; }
  void terminate(const exit_reason& why) const {
    if (tell.is_valid()) send(tell, terminated{self(), why});
  }
};

// trapping is scripted that traps exits.
struct trapping : scripted {
  explicit trapping(pid teller) : scripted{0, teller} { trap_exit(true); }
};

template <class S = scripted, class... Args>
server_ref<S> started(Args&&... args) {
  auto ref = start_server<S>({}, std::forward<Args>(args)...);
  EXPECT_TRUE(ref.has_value());
  return ref.value_or(server_ref<S>());
}

// holding keeps a server in a handler until it is sent a `go`.
inline int holding(scripted&) {
  (void)receive<go>();
  return 1;
}

// started_below starts a server as the child of an actor that ends with a reason when told to.
template <class S>
std::pair<pid, pid> started_below(const exit_reason& why) {
  const pid parent = spawn_detached([top = self(), why] {
    const auto server = start_server_link<S>({}, top);
    send(top, ready{server->id()});
    (void)receive<go>();
    exit(why);
  });
  return {parent, take<ready>()->who};
}

struct plain_child : scripted {
  explicit plain_child(pid teller) : scripted{0, teller} {}
};

}  // namespace smarm::test
