// What every C++ program of the comparison shares: timing, CPU time, /proc, and the JSON line.
//
// It knows nothing of smarm, so that ours and the peers' are measured by the same code. One process
// measures one workload: a warm-up run, then PEERS_RUNS measured ones. C++17, as the peers are.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace harness {

using clock = std::chrono::steady_clock;

inline double micros_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

// cost is what the whole process, all threads, has used up so far.
struct cost {
  double cpu_us = 0;
  double voluntary = 0;    // context switches because a thread waited
  double involuntary = 0;  // and because the kernel took the CPU away

  static cost now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto micros = [](timeval t) {
      return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return {micros(usage.ru_utime) + micros(usage.ru_stime), static_cast<double>(usage.ru_nvcsw),
            static_cast<double>(usage.ru_nivcsw)};
  }
};

inline long env_or(const char* name, long otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && std::atol(value) > 0 ? std::atol(value) : otherwise;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// check ends the process where a workload's result is wrong: a number measured on wrong work is
// worse than none.
inline void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::_Exit(1);
}

// listed prints the numbers as a JSON list.
inline std::string listed(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.1f", text.size() > 1 ? "," : "", value);
    text += number;
  }
  return text + "]";
}

// measure runs `once` to warm up and then PEERS_RUNS times (7), fewer but at least 4 where
// PEERS_BUDGET_S seconds (12) are used up, and prints the line. `n` is operations in one run.
template <class F>
void measure(const char* peer, const std::string& bench, int threads, double n, F&& once) {
  const long runs = env_or("PEERS_RUNS", 7);
  const double budget_us = static_cast<double>(env_or("PEERS_BUDGET_S", 12)) * 1e6;
  once();
  std::vector<double> wall, cpu, voluntary, involuntary;
  const auto begin = clock::now();
  for (long i = 0; i < runs && (i < 4 || micros_since(begin) < budget_us); ++i) {
    const cost before = cost::now();
    const auto run_begin = clock::now();
    once();
    wall.push_back(micros_since(run_begin));
    const cost after = cost::now();
    cpu.push_back(after.cpu_us - before.cpu_us);
    voluntary.push_back(after.voluntary - before.voluntary);
    involuntary.push_back(after.involuntary - before.involuntary);
  }
  const auto [least, most] = std::minmax_element(wall.begin(), wall.end());
  std::printf(
      "{\"peer\":\"%s\",\"bench\":\"%s\",\"threads\":%d,\"n\":%.0f,\"median_us\":%.1f,"
      "\"min_us\":%.1f,\"max_us\":%.1f,\"runs\":%zu,\"cpu_us\":%.1f,\"ns_per_op\":%.1f,"
      "\"vol_cs\":%.1f,\"invol_cs\":%.1f,\"samples_us\":%s}\n",
      peer, bench.c_str(), threads, n, median(wall), *least, *most, wall.size(), median(cpu),
      median(wall) * 1e3 / n, median(voluntary), median(involuntary), listed(wall).c_str());
  std::fflush(stdout);
}

inline void skip(const char* peer, const std::string& bench, int threads) {
  std::printf("{\"peer\":\"%s\",\"bench\":\"%s\",\"threads\":%d,\"skip\":\"not available\"}\n",
              peer, bench.c_str(), threads);
}

// proc_status returns a kB field of /proc/self/status in bytes.
inline double proc_status(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size() + 1, key + ":") == 0) {
      return std::atof(line.c_str() + key.size() + 1) * 1024;
    }
  }
  return 0;
}

// mapping_count is how many mappings the process has; the kernel allows 65,530 by default.
inline long mapping_count() {
  std::ifstream in("/proc/self/maps");
  long count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

// memory_probe measures n tasks over their lives: construct it, spawn and park them, parked();
// wait a little, settled(); send each one a message, woken(); end them all, stopped(); wait a
// little, report().
class memory_probe {
 public:
  void parked() { parked_us_ = micros_since(begin_); }
  void settled() {
    parked_rss_ = proc_status("VmRSS");
    mappings_ = mapping_count();
    begin_ = clock::now();
  }
  void woken() {
    woken_us_ = micros_since(begin_);
    begin_ = clock::now();
  }
  void stopped() { stopped_us_ = micros_since(begin_); }

  void report(const char* peer, const std::string& bench, int threads, double n) const {
    std::printf(
        "{\"peer\":\"%s\",\"bench\":\"%s\",\"threads\":%d,\"n\":%.0f,\"median_us\":%.1f,"
        "\"min_us\":%.1f,\"max_us\":%.1f,\"runs\":1,\"bytes_per_task\":%.1f,\"rss_before\":%.0f,"
        "\"rss_after\":%.0f,\"vm_hwm\":%.0f,\"mappings\":%ld,\"wake_us\":%.1f,\"stop_us\":%.1f,"
        "\"rss_end\":%.0f}\n",
        peer, bench.c_str(), threads, n, parked_us_, parked_us_, parked_us_,
        (parked_rss_ - before_) / n, before_, parked_rss_, proc_status("VmHWM"), mappings_,
        woken_us_, stopped_us_, proc_status("VmRSS"));
    std::fflush(stdout);
  }

 private:
  double before_ = proc_status("VmRSS");
  clock::time_point begin_ = clock::now();
  double parked_us_ = 0;
  double woken_us_ = 0;
  double stopped_us_ = 0;
  double parked_rss_ = 0;
  long mappings_ = 0;
};

// lcg is a small generator whose numbers are the same in every language of the comparison.
struct lcg {
  std::uint32_t state;

  // next is 16 bits.
  std::uint32_t next() {
    state = state * 1664525U + 1013904223U;
    return state >> 16;
  }
};

// transfers makes the orders of bank_transaction, as Savina does: always from a lower account to a
// higher one. It keeps the books, too: what each account must hold in the end.
class transfers {
 public:
  struct order {
    std::size_t from;
    std::size_t to;
    std::int64_t amount;
  };

  explicit transfers(std::size_t accounts) : balances_(accounts) {}

  order next() {
    const std::size_t size = balances_.size();
    const std::size_t from = random_.next() % (size / 10 * 8);
    const std::size_t to = from + 1 + random_.next() % (size - from - 1);
    const std::int64_t amount = 1 + random_.next() % 1000;
    balances_[from] -= amount;
    balances_[to] += amount;
    moved_ += amount;
    return {from, to, amount};
  }

  std::int64_t balance(std::size_t account) const { return balances_[account]; }
  std::int64_t moved() const { return moved_; }

 private:
  lcg random_{1};
  std::vector<std::int64_t> balances_;
  std::int64_t moved_ = 0;
};

// sleep_millis is task i's pseudo-random but fixed 1 to 10 ms.
inline int sleep_millis(std::uint32_t i) {
  return 1 + static_cast<int>(((i * 2654435761U) >> 16) % 10);
}

// count_primes is the computing workload: trial division in 32 bits, no memory. In 64 bits it would
// compare compilers: some test for small operands and take the CPU's faster division of 32.
inline int count_primes(std::uint32_t below) {
  int count = 0;
  for (std::uint32_t n = 2; n < below; ++n) {
    bool prime = n == 2 || n % 2 == 1;
    for (std::uint32_t d = 3; prime && d * d <= n; d += 2) prime = n % d != 0;
    count += prime ? 1 : 0;
  }
  return count;
}

}  // namespace harness
