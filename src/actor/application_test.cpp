// Applications: the registry does what OTP's application module does (A1 to A3 are its probe's
// names), and a service starts, is told to stop and tells the service manager.
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/application.hpp>
#include <smarm/fd.hpp>
#include <smarm/supervisor.hpp>

#include "actor/supervisor_fixture.hpp"
#include "base/atomic.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::events;
using test::events_here;
using test::is_alive;
using test::next_events;
using test::take;
using test::worker;
using what = application_error::what;

// ---- the registry ----------------------------------------------------------------------------

class supervisor_application_test : public test::supervisor_test {};
SMARM_TEST_AT_1_2_8(supervisor_application_test);

applications start_registry() { return applications::start_link().value(); }

// An application whose supervisor has its name, with one worker of that name.
application_spec app(const std::string& name, std::vector<std::string> needs = {}) {
  return {.name = name,
          .needs = std::move(needs),
          .start = [name, specs = std::vector{worker(atom(name))}] {
            return start_supervisor_link({.name = name}, specs);
          }};
}

std::vector<std::string> names_of_running(const applications& apps) {
  std::vector<std::string> names;
  const auto all = apps.running();
  for (const running_application& each : all.value()) names.push_back(each.name);
  return names;
}

TEST_P(supervisor_application_test, A1_what_an_application_needs_is_started_before_it) {
  run([] {
    const applications apps = start_registry();
    EXPECT_TRUE(apps.load(app("ap_b")).has_value());
    EXPECT_TRUE(apps.load(app("ap_a", {"ap_b"})).has_value());
    EXPECT_EQ(apps.start("ap_a").error(), (application_error{what::not_started, "ap_b"}));
    EXPECT_EQ(apps.ensure_all_started("ap_a"), (std::vector<std::string>{"ap_b", "ap_a"}));
    EXPECT_EQ(events_here(), (events{"start ap_b", "start ap_a"}));
    EXPECT_EQ(names_of_running(apps), (std::vector<std::string>{"ap_a", "ap_b"}));
    EXPECT_EQ(apps.ensure_all_started("ap_a"), std::vector<std::string>());
    EXPECT_TRUE(apps.stop("ap_b").has_value());
    EXPECT_TRUE(apps.stop("ap_a").has_value());
    EXPECT_EQ(events_here(), (events{"stop ap_b shutdown", "stop ap_a shutdown"}));
  });
}

TEST_P(supervisor_application_test, A2_a_stop_ends_the_tree_and_each_is_started_once) {
  run([] {
    const applications apps = start_registry();
    (void)apps.load(app("ap_c"));
    EXPECT_TRUE(apps.start("ap_c").has_value());
    const pid tree = whereis("ap_c").value();
    EXPECT_EQ(apps.start("ap_c").error(), (application_error{what::already_started, "ap_c"}));
    EXPECT_TRUE(apps.stop("ap_c").has_value());
    EXPECT_FALSE(is_alive(tree));
    EXPECT_EQ(apps.stop("ap_c").error(), (application_error{what::not_started, "ap_c"}));
    EXPECT_TRUE(apps.start("ap_c").has_value());
  });
}

// Waits until the registry knows of no application of that name that runs.
void await_stopped(const applications& apps, const std::string& name) {
  const deadline until(test::long_enough);
  for (auto all = names_of_running(apps); std::ranges::find(all, name) != all.end();
       all = names_of_running(apps)) {
    ASSERT_FALSE(until.has_passed());
    yield();
  }
}

TEST_P(supervisor_application_test, A3_the_crash_of_a_temporary_one_leaves_the_others_up) {
  run([] {
    const applications apps = start_registry();
    (void)apps.load(app("ap_d"));
    (void)apps.load(app("ap_e"));
    EXPECT_TRUE(apps.start("ap_e", application_type::permanent).has_value());
    EXPECT_TRUE(apps.start("ap_d", application_type::temporary).has_value());
    kill(whereis("ap_d").value());
    await_stopped(apps, "ap_d");
    EXPECT_EQ(names_of_running(apps), std::vector<std::string>{"ap_e"});
  });
}

TEST_P(supervisor_application_test, the_crash_of_a_permanent_one_ends_everything_in_reverse) {
  run([] {
    trap_exit(true);
    const applications apps = start_registry();
    for (const char* const name : {"one", "two", "three"}) (void)apps.load(app(name));
    for (const char* const name : {"one", "two"}) (void)apps.start(name);
    (void)apps.start("three", application_type::permanent);
    (void)events_here();
    kill(whereis("three").value());
    EXPECT_EQ(to_string(test::exit_of(apps.id())->to_term()),
              "{shutdown,{application_terminated,three,killed}}");
    events ended = next_events(3);
    EXPECT_EQ(std::erase(ended, "stop three killed"), 1U);  // in its own time, by its link
    EXPECT_EQ(ended, (events{"stop two shutdown", "stop one shutdown"}));
    EXPECT_EQ(apps.start("one").error().kind, what::no_registry);
  });
}

TEST_P(supervisor_application_test, a_transient_one_may_end_as_normal) {
  run([] {
    const applications apps = start_registry();
    (void)apps.load(app("once"));
    EXPECT_TRUE(apps.start("once", application_type::transient).has_value());
    EXPECT_TRUE(supervisor_ref("once").stop().has_value());
    await_stopped(apps, "once");
    EXPECT_TRUE(is_alive(apps.id()));
  });
}

TEST_P(supervisor_application_test, where_one_fails_those_started_for_it_are_stopped_again) {
  run([] {
    const applications apps = start_registry();
    application_spec bad{.name = "bad", .needs = {"good"}};
    bad.start = []() -> start_result { throw std::runtime_error("no disk"); };
    (void)apps.load(app("good"));
    (void)apps.load(bad);
    const auto failed = apps.ensure_all_started("bad");
    EXPECT_EQ(failed.error().kind, what::start_failed);
    EXPECT_EQ(failed.error().reason.text(), "no disk");
    EXPECT_EQ(events_here(), (events{"start good", "stop good shutdown"}));
    (void)apps.load(app("left", {"right"}));
    (void)apps.load(app("right", {"left"}));
    EXPECT_EQ(apps.ensure_all_started("left").error().kind, what::circular);
    EXPECT_EQ(apps.load(app("left")).error().kind, what::already_loaded);
    EXPECT_EQ(apps.start("nothing").error().kind, what::not_loaded);
  });
}

TEST_P(supervisor_application_test, a_start_may_ask_the_registry) {
  run([] {
    const applications apps = start_registry();
    (void)apps.load(app("inner"));
    application_spec outer = app("outer");
    outer.start = [apps, start = outer.start] {
      EXPECT_TRUE(apps.start("inner").has_value());
      return start();
    };
    (void)apps.load(outer);
    EXPECT_TRUE(apps.start("outer").has_value());
    EXPECT_EQ(events_here(), (events{"start inner", "start outer"}));
  });
}

// ---- services --------------------------------------------------------------------------------

// A log that threads and actors of any runtime may write.
class shared_log {
 public:
  void add(std::string line) { lines_.lock()->push_back(std::move(line)); }
  [[nodiscard]] events lines() { return *lines_.lock(); }

 private:
  guarded<events> lines_;
};

// ThreadSanitizer holds a handler back while its thread sleeps in a futex. So under it the first
// thread, a scheduler, has the signal blocked. (base/atomic.hpp knows of the sanitizer.)
class supervisor_service_test : public test::supervisor_test {
 protected:
  supervisor_service_test() {
#ifdef SMARM_THREAD_SANITIZER
    sigset_t received;
    sigemptyset(&received);
    sigaddset(&received, SIGTERM);
    sigaddset(&received, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &received, nullptr);
#endif
  }
  [[nodiscard]] static application_options options() { return {.runtime = make_config()}; }
};
SMARM_TEST_AT_1_2_8(supervisor_service_test);

// A worker that logs its start and, when it is told to stop, its stop.
child_spec logging(shared_log& log, const std::string& name) {
  const auto serve = [&log, name](starting& me) {
    trap_exit(true);
    log.add("start " + name);
    me.ready();
    const auto told = receive<exit_signal>();
    log.add("stop " + name);
    exit(told.reason);
  };
  return {.id = atom(name), .start = [serve] { return start_link({}, serve); }, .start_with = {}};
}

void terminate_this_process() { (void)::kill(::getpid(), SIGTERM); }

// A child that does something when all before it have been started, and is none.
child_spec then(std::function<void()> action) {
  return {.id = atom("then"), .start = [action = std::move(action)]() -> start_result {
            action();
            return std::unexpected(start_error{start_error::what::ignored, {}, {}});
          }};
}

TEST_P(supervisor_service_test, SIGTERM_stops_the_tree_in_order) {
  shared_log log;
  const int code = run_application(
      {}, {logging(log, "a"), logging(log, "b"), then(terminate_this_process)}, options());
  EXPECT_EQ(code, application_ended);
  EXPECT_EQ(log.lines(), (events{"start a", "start b", "stop b", "stop a"}));
}

TEST_P(supervisor_service_test, SIGINT_stops_the_tree_in_order) {
  shared_log log;
  const auto interrupt = [] { (void)::kill(::getpid(), SIGINT); };
  EXPECT_EQ(run_application({}, {logging(log, "a"), logging(log, "b"), then(interrupt)}, options()),
            application_ended);
  EXPECT_EQ(log.lines(), (events{"start a", "start b", "stop b", "stop a"}));
}

// The child takes an hour to stop, of which it tells by sending the second signal.
TEST_P(supervisor_service_test, a_second_signal_kills_a_tree_that_takes_its_time_to_stop) {
  for (const int second : {SIGTERM, SIGINT}) {
    application_options how = options();
    how.stop_time = 1h;
    const auto slow = [second](starting& me) {
      trap_exit(true);
      me.ready();
      (void)receive<exit_signal>();
      (void)::kill(::getpid(), second);
      test::wait_for_ever();
    };
    const child_spec spec{.id = 1,
                          .start = [slow] { return start_link({}, slow); },
                          .start_with = {},
                          .shutdown = child_shutdown::infinity()};
    EXPECT_EQ(run_application({}, {spec, then(terminate_this_process)}, how),
              application_stop_timed_out);
  }
}

TEST_P(supervisor_service_test, a_tree_that_cannot_be_started_is_an_exit_code) {
  shared_log log;
  const child_spec bad{.id = atom("bad"),
                       .start = []() -> start_result { throw std::runtime_error("no disk"); }};
  EXPECT_EQ(run_application({}, {logging(log, "a"), bad}, options()), application_start_failed);
  EXPECT_EQ(log.lines(), (events{"start a", "stop a"}));
}

TEST_P(supervisor_service_test, a_tree_that_ends_by_itself_gives_its_exit_code) {
  const auto code_of = [](const exit_reason& why, bool shutdown_is_success) {
    application_options how = options();
    how.shutdown_is_success = shutdown_is_success;
    return run_application(how, [why] {
      return start_link({}, [why](starting& me) {
        me.ready();
        exit(why);
      });
    });
  };
  EXPECT_EQ(code_of(exit_reason::normal(), false), application_ended);
  EXPECT_EQ(code_of(exit_reason::shutdown(), false), application_failed);
  EXPECT_EQ(code_of(exit_reason::shutdown(), true), application_ended);
  EXPECT_EQ(code_of(exit_reason(atom("boom")), true), application_failed);
}

TEST_P(supervisor_service_test, a_tree_that_does_not_stop_in_time_is_killed) {
  application_options how = options();
  how.stop_time = 10ms;
  const child_spec stubborn{.id = 1,
                            .start =
                                [] {
                                  return start_link({}, [](starting& me) {
                                    trap_exit(true);
                                    me.ready();
                                    test::wait_for_ever();
                                  });
                                },
                            .start_with = {},
                            .shutdown = child_shutdown::infinity()};
  EXPECT_EQ(run_application({}, {stubborn, then(terminate_this_process)}, how),
            application_stop_timed_out);
}

TEST_P(supervisor_service_test, an_actor_that_cannot_be_ended_does_not_keep_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto serve = [] {
    application_options how = options();
    how.stop_time = 10ms;
    how.kill_grace = 10ms;
    const auto shielded = [](starting& me) {
      const stop_shield whole;
      me.ready();
      test::wait_for_ever();
    };
    std::exit(run_application({},
                              {{.id = 1, .start = [&] { return start_link({}, shielded); }},
                               then(terminate_this_process)},
                              how));
  };
  EXPECT_EXIT(serve(), ::testing::ExitedWithCode(application_stop_timed_out), "");
}

// ---- the service manager ---------------------------------------------------------------------

// The socket to which a service tells how it fares; its address is in the environment.
class manager_socket {
 public:
  explicit manager_socket(const std::string& address)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)), address_(address) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, address.data(), address.size());
    if (at.sun_path[0] == '@') at.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), size), 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
  }
  manager_socket(const manager_socket&) = delete;
  manager_socket& operator=(const manager_socket&) = delete;
  ~manager_socket() {
    for (const char* const name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
      ::unsetenv(name);
    }
    if (address_.front() != '@') ::unlink(address_.c_str());
  }

  // next waits for the next message; it blocks its thread.
  [[nodiscard]] std::string next() {
    char text[64];
    const ssize_t size = ::recv(fd_.get(), text, sizeof text, 0);
    return size < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(size));
  }
  // is_empty tells whether nothing waits.
  [[nodiscard]] bool is_empty() {
    char text[64];
    return ::recv(fd_.get(), text, sizeof text, MSG_DONTWAIT) < 0;
  }

 private:
  unique_fd fd_;
  std::string address_;
};

std::string unique_name(const char* before) {
  static std::atomic<int> last = 0;
  return before + std::string("smarm-notify-") + std::to_string(::getpid()) + "-" +
         std::to_string(++last);
}

TEST_P(supervisor_service_test, the_service_manager_is_told_of_the_start_and_the_stop) {
  for (const char* const where : {"@", "/tmp/"}) {
    manager_socket manager(unique_name(where));
    EXPECT_EQ(run_application({}, {then(terminate_this_process)}, options()), application_ended);
    EXPECT_EQ(manager.next(), "READY=1");
    EXPECT_EQ(manager.next(), "STOPPING=1");
    EXPECT_TRUE(manager.is_empty());
  }
}

TEST_P(supervisor_service_test, the_watchdog_gets_signs_of_life) {
  manager_socket manager(unique_name("@"));
  ::setenv("WATCHDOG_USEC", "20000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  // It ends the service when it has seen two.
  std::thread listener([&] {
    EXPECT_EQ(manager.next(), "READY=1");
    EXPECT_EQ(manager.next(), "WATCHDOG=1");
    EXPECT_EQ(manager.next(), "WATCHDOG=1");
    terminate_this_process();
  });
  EXPECT_EQ(run_application({}, {}, options()), application_ended);
  listener.join();
}

TEST_P(supervisor_service_test, a_watchdog_for_another_process_gets_none) {
  manager_socket manager(unique_name("@"));
  ::setenv("WATCHDOG_USEC", "2", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  const auto serve_a_while = [](starting& me) {
    me.ready();
    sleep_for(10ms);  // many signs of life, if there were any
    terminate_this_process();
    test::wait_for_ever();
  };
  const child_spec spec{.id = 1, .start = [&] { return start_link({}, serve_a_while); }};
  EXPECT_EQ(run_application({}, {spec}, options()), application_ended);
  EXPECT_EQ(manager.next(), "READY=1");
  EXPECT_EQ(manager.next(), "STOPPING=1");
}

TEST_P(supervisor_service_test, a_service_manager_that_is_gone_is_reported_and_no_more) {
  ::setenv("NOTIFY_SOCKET", unique_name("@").c_str(), 1);
  EXPECT_EQ(run_application({}, {then(terminate_this_process)}, options()), application_ended);
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(reported_kinds(), (std::vector{report_kind::unexpected, report_kind::unexpected}));
}

}  // namespace
}  // namespace smarm
