// relacy_compare runs litmus programs of the corpus under Relacy Race Detector and prints which of
// the outcomes that the language allows it meets, and which it meets that are not allowed. It is
// built where the package relacy-dev is installed; the README has its answers.
#include <chrono>
#include <cstdio>
#include <cstring>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wall"
#include <relacy/relacy.hpp>

namespace {

// How often each pair of values was met. No container: Relacy takes operator new for its own.
unsigned long met[10][10];

void note(int a, int b) { ++met[a][b]; }

constexpr auto rlx = rl::mo_relaxed;
constexpr auto acq = rl::mo_acquire;
constexpr auto rel = rl::mo_release;
constexpr auto sc = rl::mo_seq_cst;

struct two_words {
  rl::atomic<int> x;
  rl::atomic<int> y;
  int a = 0;
  int b = 0;
  void init() {
    x($).store(0, rlx);
    y($).store(0, rlx);
    a = b = 0;
  }
};

// L03: store buffering with seq_cst; 00 is forbidden.
struct store_buffering : rl::test_suite<store_buffering, 2>, two_words {
  void before() { init(); }
  void thread(unsigned t) {
    (t == 0 ? x : y)($).store(1, sc);
    (t == 0 ? a : b) = (t == 0 ? y : x)($).load(sc);
  }
  void after() { note(a, b); }
};

// L12: message passing; 10 is forbidden.
struct message_passing : rl::test_suite<message_passing, 2>, two_words {
  void before() { init(); }
  void thread(unsigned t) {
    if (t == 0) {
      x($).store(1, rlx);
      y($).store(1, rel);
    } else {
      a = y($).load(acq);
      b = x($).load(rlx);
    }
  }
  void after() { note(a, b); }
};

// L34: 2+2W; 11 is allowed.
struct two_plus_two : rl::test_suite<two_plus_two, 2>, two_words {
  void before() { init(); }
  void thread(unsigned t) {
    (t == 0 ? x : y)($).store(1, rlx);
    (t == 0 ? y : x)($).store(2, rlx);
  }
  void after() { note(x($).load(rlx), y($).load(rlx)); }
};

// L22: a relaxed store after a release store; 20 is allowed since C++20.
struct release_sequence : rl::test_suite<release_sequence, 2>, two_words {
  void before() { init(); }
  void thread(unsigned t) {
    if (t == 0) {
      x($).store(1, rlx);
      y($).store(1, rel);
      y($).store(2, rlx);
    } else {
      a = y($).load(acq);
      b = x($).load(rlx);
    }
  }
  void after() { note(a, b); }
};

// L73: a failed compare_exchange is a load and may be stale; 10 is allowed.
struct failed_exchange : rl::test_suite<failed_exchange, 2>, two_words {
  void before() { init(); }
  void thread(unsigned t) {
    if (t == 0) {
      x($).store(1, rlx);
      y($).store(1, rlx);
    } else {
      a = y($).load(rlx);
      b = 7;
      x($).compare_exchange_strong(b, 8, rlx, rlx);
    }
  }
  void after() { note(a, b); }
};

// run simulates a test twice and prints what was met; `allowed` is pairs of digits with blanks
// between.
template <class Test>
void run(const char* name, const char* allowed) {
  for (const bool full : {false, true}) {
    for (auto& row : met)
      for (unsigned long& count : row) count = 0;
    rl::test_params params;
    params.search_type = full ? rl::fair_full_search_scheduler_type : rl::random_scheduler_type;
    params.iteration_count = 20000;
    const auto began = std::chrono::steady_clock::now();
    rl::simulate<Test>(params);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    unsigned long runs = 0;
    for (const auto& row : met)
      for (const unsigned long count : row) runs += count;
    std::fprintf(stderr, "%-18s %-6s %6lu runs %8.0f runs/s ", name, full ? "full" : "random", runs,
                 static_cast<double>(runs) / took.count());
    for (int a = 0; a < 10; ++a)
      for (int b = 0; b < 10; ++b) {
        const char text[] = {static_cast<char>('0' + a), static_cast<char>('0' + b), '\0'};
        const bool may = std::strstr(allowed, text) != nullptr;
        if (met[a][b] != 0) std::fprintf(stderr, " %s%s", text, may ? "" : " (NOT ALLOWED)");
        if (met[a][b] == 0 && may) std::fprintf(stderr, " %s (MISSED)", text);
      }
    std::fputc('\n', stderr);
  }
}

}  // namespace

int main() {
  run<store_buffering>("L03 SB+sc", "01 10 11");
  run<message_passing>("L12 MP+rel+acq", "00 01 11");
  run<two_plus_two>("L34 2+2W", "11 12 21 22");
  run<release_sequence>("L22 MP+relseq", "00 01 11 20 21");
  run<failed_exchange>("L73 MP+failed-cas", "00 01 10 11");
}
#pragma GCC diagnostic pop
