// State machines, behaviour by behaviour as OTP 25's gen_statem has them. B numbers are the names
// these have in the project's list of what Erlang does; the rest is our own.
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <smarm/state_machine.hpp>

#include "actor/server_fixture.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::boom;
using test::down_of;
using test::go;
using test::has;
using test::reports;
using test::take;
using what = call_error::what;

using state_machine_test = test::actors_test;
SMARM_TEST_AT_1_2_8(state_machine_test);

enum class step { a, b };

struct note {
  std::string text;
};

std::string noted() {
  const auto next = take<note>();
  return next ? next->text : "nothing";
}

void expect_noted(std::initializer_list<const char*> texts) {
  for (const char* text : texts) EXPECT_EQ(noted(), text);
}

std::string name_of(step which) { return which == step::a ? "a" : "b"; }

// noting is what the machines of these tests have in common: they tell who started them.
template <class Self>
struct noting : state_machine<Self, step> {
  explicit noting(pid teller) : state_machine<Self, step>(step::a), tell(teller) {}
  void say(const std::string& text) const { send(tell, note{text}); }
  pid tell;
};

template <class S>
server_ref<S> started() {
  auto ref = start_machine<S>({}, self());
  EXPECT_TRUE(ref.has_value());
  return ref.value_or(server_ref<S>());
}

struct to_b {};
struct number {
  int value;
};

struct patient : noting<patient> {
  using noting::noting;
  void handle(to_b) { go_to(step::b); }
  void handle(step now, number n) {
    say((now == step::a ? "postponed " : "taken ") + std::to_string(n.value));
    if (now == step::a) postpone();
  }
};

TEST_P(state_machine_test, B1_what_is_postponed_comes_back_oldest_first_when_the_state_changes) {
  run([] {
    const auto ref = started<patient>();
    ref.cast(number{1});
    ref.cast(number{2});
    ref.cast(to_b{});
    ref.cast(number{3});
    expect_noted({"postponed 1", "postponed 2", "taken 1", "taken 2", "taken 3"});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_FALSE(has<note>());
  });
}

// timed starts timeouts and changes its state, or does not, before they can be over.
struct timed : noting<timed> {
  struct arm {
    bool leave;
  };
  using noting::noting;
  void handle(arm m) {
    go_to(step::a);
    start_state_timeout(1ms);
    start_timeout("n", 1ms);
    if (m.leave) raise(to_b{});
  }
  void handle(to_b) { go_to(step::b); }
  void handle(step now, state_timeout) { say("state timeout in " + name_of(now)); }
  void handle(step now, const named_timeout& t) { say(t.name + " in " + name_of(now)); }
};

TEST_P(state_machine_test, B2_a_state_timeout_ends_with_its_state_and_a_named_one_does_not) {
  run([] {
    const auto ref = started<timed>();
    ref.cast(timed::arm{true});
    expect_noted({"n in b"});
    EXPECT_EQ(ref.get_state(60s)->state(), step::b);
    EXPECT_FALSE(has<note>()) << "the state timeout was due before";
    ref.cast(timed::arm{false});
    expect_noted({"state timeout in a", "n in a"});
    EXPECT_TRUE(ref.stop().has_value());
  });
}

struct entering : noting<entering> {
  struct keep {};
  struct same {};
  struct repeat {};
  using noting::noting;
  void handle(keep) {}
  void handle(same) { go_to(state()); }
  void handle(repeat) { repeat_state(); }
  void handle(to_b) { go_to(step::b); }
  void enter(step before) { say(name_of(before) + " to " + name_of(state())); }
};

TEST_P(state_machine_test, B4_enter_is_called_at_first_on_a_change_and_on_a_repeat) {
  run([] {
    const auto ref = started<entering>();
    ref.cast(entering::keep{});
    ref.cast(entering::same{});
    ref.cast(entering::repeat{});
    ref.cast(to_b{});
    expect_noted({"a to a", "a to a", "a to b"});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_FALSE(has<note>());
  });
}

struct drowsy : noting<drowsy> {
  struct set {};
  struct poke {};
  using noting::noting;
  void handle(set) { start_event_timeout(1ms); }
  void handle(poke) { start_timeout("later", 3ms); }
  void handle(const named_timeout& t) { say(t.name); }
  void handle(event_timeout) { say("event timeout"); }
};

TEST_P(state_machine_test, B5_an_event_timeout_ends_with_any_event) {
  run([] {
    const auto ref = started<drowsy>();
    ASSERT_TRUE(ref.suspend(60s).has_value());
    ref.cast(drowsy::set{});
    ref.cast(drowsy::poke{});
    ASSERT_TRUE(ref.resume(60s).has_value());
    expect_noted({"later"});
    ref.cast(drowsy::set{});
    expect_noted({"event timeout"});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_FALSE(has<note>());
  });
}

struct hasty : noting<hasty> {
  using noting::noting;
  void handle(to_b) {
    start_state_timeout(0s);
    start_timeout("named", 0s);
    raise(number{1});
  }
  void handle(number n) { say(std::to_string(n.value)); }
  void handle(state_timeout) { say("state timeout"); }
  void handle(const named_timeout& t) { say(t.name); }
};

TEST_P(state_machine_test, B6_a_timeout_of_nothing_comes_before_what_is_not_yet_received) {
  run([] {
    const auto ref = started<hasty>();
    ASSERT_TRUE(ref.suspend(60s).has_value());
    ref.cast(to_b{});
    ref.cast(number{2});
    ASSERT_TRUE(ref.resume(60s).has_value());
    expect_noted({"1", "state timeout", "named", "2"});
    EXPECT_TRUE(ref.stop().has_value());
  });
}

struct asleep : noting<asleep> {
  using noting::noting;
  void handle(to_b) { start_event_timeout(0s); }
  void handle(number n) { say(std::to_string(n.value)); }
  void handle(event_timeout) { say("event timeout"); }
};

TEST_P(state_machine_test, B6_so_does_an_event_timeout_of_nothing) {
  run([] {
    const auto ref = started<asleep>();
    ASSERT_TRUE(ref.suspend(60s).has_value());
    ref.cast(to_b{});
    ref.cast(number{2});
    ASSERT_TRUE(ref.resume(60s).has_value());
    expect_noted({"event timeout", "2"});
    EXPECT_TRUE(ref.stop().has_value());
  });
}

struct answering : noting<answering> {
  struct ask {
    int value;
    using reply = int;
  };
  struct ask_later {
    using reply = int;
  };
  struct nothing {
    using reply = void;
  };
  using noting::noting;
  int handle(step now, ask m) {
    if (now == step::a) go_to(step::b);
    return m.value;
  }
  void handle(step now, ask_later, from<int>& back) {
    if (now == step::a) return postpone();
    kept = std::make_shared<from<int>>(std::move(back));
  }
  void handle(nothing) { (void)kept->reply(7); }
  std::shared_ptr<from<int>> kept;
};

TEST_P(state_machine_test, B7_a_call_may_change_the_state_and_is_answered) {
  run([] {
    const auto ref = started<answering>();
    EXPECT_EQ(ref.call(answering::ask{4}, 60s), 4);
    EXPECT_EQ(ref.get_state(60s)->state(), step::b);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(state_machine_test, a_postponed_call_is_answered_by_who_handles_it_later) {
  run([] {
    const auto ref = started<answering>();
    auto later = ref.send_request(answering::ask_later{});
    EXPECT_EQ(ref.call(answering::ask{4}, 60s), 4);
    EXPECT_TRUE(ref.call(answering::nothing{}, 60s).has_value());
    EXPECT_EQ(later.receive_response(60s), 7);
    auto unanswered = ref.send_request(answering::ask_later{});
    EXPECT_TRUE(ref.stop(exit_reason::shutdown()).has_value());
    EXPECT_EQ(unanswered.receive_response(2ms).error().kind, what::died);
  });
}

// A call that returns its reply is not answered while it is postponed.
struct gate : noting<gate> {
  struct pass {
    using reply = int;
  };
  using noting::noting;
  int handle(step now, pass) {
    if (now == step::a) postpone();
    return static_cast<int>(now);
  }
  void handle(to_b) { go_to(step::b); }
};

TEST_P(state_machine_test, what_a_handler_returns_that_postpones_is_no_reply) {
  run([] {
    const auto ref = started<gate>();
    auto first = ref.send_request(gate::pass{});
    auto second = ref.send_request(gate::pass{});
    ref.cast(to_b{});
    EXPECT_EQ(first.receive_response(60s), 1);
    EXPECT_EQ(second.receive_response(60s), 1);
    EXPECT_TRUE(ref.stop().has_value());
  });
}

// raising puts its own events before those that were postponed, and these before what it held.
struct raising : noting<raising> {
  using noting::noting;
  void handle(step now, number n) {
    say(std::to_string(n.value) + " in " + name_of(now));
    if (now == step::a && n.value < 10) postpone();
  }
  void handle(to_b) {
    if (state() == step::a && !std::exchange(has_raised, true)) {
      raise(to_b{});
      raise(number{20});
      raise(number{21});
      return;
    }
    raise(number{30});
    raise(number{31});
    go_to(step::b);
  }
  bool has_raised = false;
};

TEST_P(state_machine_test, what_is_raised_comes_first_then_what_was_postponed_then_what_was_held) {
  run([] {
    const auto ref = started<raising>();
    ref.cast(number{1});
    ref.cast(to_b{});
    expect_noted({"1 in a", "30 in b", "31 in b", "1 in b", "20 in b", "21 in b"});
    EXPECT_TRUE(ref.stop().has_value());
  });
}

struct careful : noting<careful> {
  struct restart {};
  explicit careful(pid teller) : noting(teller) {
    start_timeout("first", 0s);
    start_timeout("never", 1h);
    start_state_timeout(1h);
  }
  void handle(restart) {
    say(cancel_timeout("never") ? "cancelled" : "?");
    say(cancel_timeout("never") ? "?" : "there is none");
    start_state_timeout(0s);  // in place of the other
    start_event_timeout(1ms);
    say(cancel_event_timeout() ? "no event timeout" : "?");
    go_to(step::b);  // the one just started is the new state's
  }
  void handle(const named_timeout& t) { say(t.name); }
  void handle(step now, state_timeout) {
    say("state timeout in " + name_of(now));
    say(cancel_state_timeout() ? "?" : "it is over");
  }
};

TEST_P(state_machine_test, timeouts_are_started_anew_and_cancelled) {
  run([] {
    const auto ref = started<careful>();
    expect_noted({"first"});
    ref.cast(careful::restart{});
    expect_noted(
        {"cancelled", "there is none", "no event timeout", "state timeout in b", "it is over"});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_FALSE(has<note>());
  });
}

// wrong does what is not allowed.
struct wrong : noting<wrong> {
  struct take_and_postpone {
    std::unique_ptr<int> owned;
  };
  struct enter_and_go {};
  struct set {};
  using noting::noting;
  void handle(take_and_postpone&& m) {
    const auto taken = std::move(m.owned);
    postpone();
  }
  void handle(enter_and_go) { go_to(step::b); }
  void handle(set) { this_server::set_timeout(1s); }
  void enter(step) {
    if (state() == step::b) go_to(step::a);
  }
};

TEST_P(state_machine_test, misuse_ends_the_machine) {
  const reports quiet;
  run([] {
    const auto end_of = [](auto message) {
      const auto ref = started<wrong>();
      auto watch = monitor(ref.id(), to_mailbox);
      ref.cast(std::move(message));
      const auto why = down_of(watch);
      return why ? why->type_name() : std::string();
    };
    EXPECT_EQ(end_of(wrong::take_and_postpone{}), "smarm::misuse");
    EXPECT_EQ(end_of(wrong::enter_and_go{}), "smarm::misuse");
    EXPECT_EQ(end_of(wrong::set{}), "smarm::misuse");
  });
}

struct hearing : noting<hearing> {
  using infos = smarm::infos<number>;
  using noting::noting;
  void handle(step now, number n) {
    say(std::to_string(n.value) + " in " + name_of(now));
    if (now == step::a) postpone();
  }
  void handle(to_b) { go_to(step::b); }
  void handle(const any_message& m) { say(m.is<int>() ? "an int" : "?"); }
  void terminate(const exit_reason& why) { say("the end: " + to_string(why)); }
};

TEST_P(state_machine_test, plain_messages_are_events_and_the_end_is_a_servers) {
  const reports quiet;
  run([] {
    const auto ref = started<hearing>();
    send(ref.id(), number{1});
    send(ref.id(), 5);
    ref.cast(to_b{});
    expect_noted({"1 in a", "an int", "1 in b"});
    EXPECT_TRUE(ref.stop(boom).has_value());
    expect_noted({"the end: boom"});
  });
}

}  // namespace
}  // namespace smarm
