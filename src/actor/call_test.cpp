// Calls: the reply against the deadline, against the death of the server, and against the end of
// the caller, and that nothing of a call is left behind.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <smarm/request_collection.hpp>
#include <smarm/semaphore.hpp>
#include <smarm/server.hpp>

#include "actor/actor_fixture.hpp"
#include "tests/support/counted.hpp"

namespace smarm {
namespace {

using namespace std::chrono_literals;
using test::await_end;
using test::counted;
using test::down_of;
using test::go;
using test::ledger;
using test::spawn_detached;
using test::take;
using what = call_error::what;

using call_test = test::actors_test;
SMARM_TEST_AT_1_2_8(call_test);

// echo answers with what it was sent, at once or when it is told to.
struct echo {
  struct now {
    counted value;
    using reply = counted;
  };
  struct later {
    counted value;
    using reply = counted;
  };
  struct nothing {
    using reply = void;
  };
  struct big {
    using reply = struct alignas(64) line {
      std::array<char, 64> bytes;
    };
  };
  struct let_go {};
  struct limit {
    std::size_t messages;
  };
  struct hold {
    pid tell;
  };

  std::vector<std::pair<counted, from<counted>>> kept;

  counted handle(now m) { return std::move(m.value); }
  void handle(later m, from<counted> back) {
    kept.emplace_back(std::move(m.value), std::move(back));
  }
  void handle(nothing) {}
  big::reply handle(big) { return {{'x'}}; }
  void handle(let_go) {
    for (auto& [value, back] : kept) (void)back.reply(std::move(value));
    kept.clear();
  }
  void handle(limit l) { limit_mailbox(l.messages); }
  void handle(hold h) {
    send(h.tell, go{});
    (void)receive<go>();
  }
};

server_ref<echo> started() {
  auto ref = start_server<echo>();
  EXPECT_TRUE(ref.has_value());
  return ref.value_or(server_ref<echo>());
}

TEST_P(call_test, whatever_is_replied_is_destroyed_once) {
  ledger book;
  run([&book] {
    const auto ref = started();
    EXPECT_EQ(ref.call(echo::now{counted(book, 1)}, 60s)->number(), 1);
    EXPECT_EQ(ref.call(echo::later{counted(book, 2)}, 1ms).error().kind, what::timed_out);
    auto asked = ref.send_request(echo::later{counted(book, 3)});
    ref.cast(echo::let_go{});
    EXPECT_EQ(asked.receive_response(60s)->number(), 3);
    // Replied and never taken; given up before the reply; never answered.
    {
      auto replied = ref.send_request(echo::now{counted(book, 4)});
      (void)ref.call(echo::nothing{}, 60s);
      EXPECT_TRUE(static_cast<bool>(replied));
    }
    {
      auto given_up = ref.send_request(echo::later{counted(book, 5)});
    }
    ref.cast(echo::let_go{});
    auto unanswered = ref.send_request(echo::later{counted(book, 6)});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_EQ(unanswered.receive_response(60s).error().kind, what::died);
    EXPECT_EQ(ref.call(echo::now{counted(book, 7)}, 60s).error().kind, what::noproc);
  });
  EXPECT_EQ(book.made, 7);
  EXPECT_EQ(book.alive, 0);
}

TEST_P(call_test, a_reply_may_be_nothing_or_aligned_for_a_cache_line) {
  run([] {
    const auto ref = started();
    EXPECT_TRUE(ref.call(echo::nothing{}, 60s).has_value());
    const auto line = ref.call(echo::big{}, 60s);
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->bytes[0], 'x');
    EXPECT_TRUE(ref.stop().has_value());
  });
}

TEST_P(call_test, a_thread_that_is_no_actor_may_call) {
  run([] {
    const auto ref = started();
    ledger book;
    semaphore done(0);
    std::thread outside([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(ref.call(echo::now{counted(book, i)}, 60s)->number(), i);
      }
      EXPECT_EQ(ref.call(echo::later{counted(book, 0)}, 1ms).error().kind, what::timed_out);
      done.release();
    });
    done.acquire();
    outside.join();
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_EQ(book.alive, 0);
  });
}

TEST_P(call_test, a_full_mailbox_refuses_a_call) {
  run([] {
    const auto ref = started();
    ref.cast(echo::limit{2});
    ref.cast(echo::hold{self()});
    (void)take<go>();
    auto first = ref.send_request(echo::nothing{});
    auto second = ref.send_request(echo::nothing{});
    auto third = ref.send_request(echo::nothing{});
    EXPECT_TRUE(static_cast<bool>(third));
    EXPECT_EQ(third.receive_response(60s).error().kind, what::full);
    kill(ref.id());
    EXPECT_EQ(first.receive_response(60s).error().kind, what::died);
    EXPECT_EQ(second.receive_response(60s).error().kind, what::died);
  });
}

TEST_P(call_test, a_caller_that_is_stopped_gives_its_call_up) {
  ledger book;
  run([&book] {
    const auto ref = started();
    auto caller = spawn([ref, &book, top = self()] {
      send(top, go{});
      (void)ref.call(echo::later{counted(book, 1)}, deadline::never());
    });
    (void)take<go>();
    caller.request_stop();
    EXPECT_TRUE(caller.join().error().is_stopped());
    ref.cast(echo::let_go{});
    EXPECT_TRUE(ref.stop().has_value());
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(call_test, what_comes_before_the_death_is_told_as_a_reply) {
  run([] {
    const auto ref = started();
    auto asked = ref.send_request(echo::nothing{});
    EXPECT_TRUE(ref.stop().has_value());
    EXPECT_TRUE(asked.receive_response(60s).has_value());
  });
}

// Callers whose deadlines are as long as the replies take, and servers that are killed meanwhile:
// every call has one outcome, and nothing is left.
TEST_P(call_test, replies_deadlines_and_deaths_that_meet_leave_each_call_one_outcome) {
  ledger book;
  std::array<std::atomic<int>, 4> outcomes{};
  run([&] {
    const auto rounds = test::rounds(30, 1'000);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto ref = started();
      std::vector<join_handle<void>> callers;
      for (int i = 0; i < 4; ++i) {
        callers.push_back(spawn([&, ref, i] {
          for (int call = 0; call < 25; ++call) {
            const bool at_once = (i + call) % 2 == 0;
            const auto until =
                at_once && i == 3 ? deadline(60s) : deadline(std::chrono::microseconds(call * 4));
            const auto reply = at_once ? ref.call(echo::now{counted(book, call)}, until)
                                       : ref.call(echo::later{counted(book, call)}, until);
            EXPECT_TRUE(!reply || reply->number() == call);
            ++outcomes[reply ? 0 : 1 + static_cast<std::size_t>(reply.error().kind)];
            ref.cast(echo::let_go{});
            if (call % 5 == 4) yield();
          }
        }));
      }
      for (int i = 0; i < round % 20; ++i) yield();
      if (round % 2 == 0) kill(ref.id());
      for (auto& one : callers) EXPECT_TRUE(one.join().has_value());
      (void)ref.stop();
    }
  });
  EXPECT_EQ(book.alive, 0);
  EXPECT_GT(outcomes[0], 0);
  EXPECT_GT(outcomes[1 + static_cast<std::size_t>(what::timed_out)], 0);
  EXPECT_GT(outcomes[1 + static_cast<std::size_t>(what::noproc)], 0);
}

TEST_P(call_test, of_several_requests_the_first_that_has_an_outcome_is_taken) {
  ledger book;
  run([&book] {
    const auto slow = started();
    const auto fast = started();
    const auto dead = started();
    request_collection<counted, char> asked;
    EXPECT_FALSE(asked.wait_any(60s).has_value()) << "it is empty";
    asked.add(slow.send_request(echo::later{counted(book, 1)}), 's');
    asked.add(dead.send_request(echo::later{counted(book, 2)}), 'd');
    EXPECT_FALSE(asked.wait_any(1ms).has_value());
    kill(dead.id());
    const auto first = asked.wait_any(60s);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->label, 'd');
    EXPECT_EQ(first->outcome.error().kind, what::died);
    asked.add(fast.send_request(echo::now{counted(book, 3)}), 'f');
    const auto second = asked.wait_any(60s);
    EXPECT_EQ(second->label, 'f');
    EXPECT_EQ(second->outcome->number(), 3);
    asked.add(server_ref<echo>().send_request(echo::now{counted(book, 4)}), 'n');
    EXPECT_EQ(asked.wait_any(60s)->outcome.error().kind, what::noproc);
    slow.cast(echo::let_go{});
    EXPECT_EQ(asked.wait_any(60s)->outcome->number(), 1);
    EXPECT_TRUE(asked.empty());
    asked.add(slow.send_request(echo::later{counted(book, 5)}), 's');
    EXPECT_TRUE(slow.stop().has_value());
    EXPECT_TRUE(fast.stop().has_value());
  });
  EXPECT_EQ(book.alive, 0);
}

// Many answer at once while one waits for all of them.
TEST_P(call_test, no_outcome_is_lost_to_who_waits_for_many) {
  ledger book;
  run([&book] {
    std::vector<server_ref<echo>> servers;
    for (int i = 0; i < 4; ++i) servers.push_back(started());
    const auto rounds = test::rounds(50, 2'000);
    for (std::int64_t round = 0; round < rounds; ++round) {
      request_collection<counted> asked;
      for (std::size_t i = 0; i < 16; ++i) {
        asked.add(servers[i % 4].send_request(echo::now{counted(book, 1)}), i);
      }
      std::size_t sum = 0;
      while (auto next = asked.wait_any(60s)) sum += next->label;
      EXPECT_EQ(sum, 120U);
    }
    for (const auto& one : servers) EXPECT_TRUE(one.stop().has_value());
  });
  EXPECT_EQ(book.alive, 0);
}

TEST_P(call_test, an_empty_handle_is_misuse) {
  from<int> none;
  EXPECT_FALSE(none.is_awaited());
  EXPECT_THROW((void)none.reply(1), misuse);
  request<int> nothing;
  EXPECT_THROW((void)nothing.wait_response(1s), misuse);
  EXPECT_EQ(server_ref<echo>().call(echo::nothing{}, 1s).error().kind, what::noproc);
  run([] {});
}

}  // namespace
}  // namespace smarm
