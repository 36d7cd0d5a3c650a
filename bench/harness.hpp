// What every C++ program of the comparison shares: timing, CPU time, /proc, and the JSON line.
//
// It knows nothing of smarm, so that ours and the peers' are measured by the same code. One process
// measures one workload: a warm-up run, then PEERS_RUNS measured ones.
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

// cpu_micros is the CPU time of the whole process, all threads.
inline double cpu_micros() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](timeval t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

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

// measure runs `once` to warm up and then PEERS_RUNS times (7), fewer but at least 3 where
// PEERS_BUDGET_S seconds (12) are used up, and prints the line. `n` is operations in one run.
template <class F>
void measure(const char* peer, const std::string& bench, int threads, double n, F&& once) {
  const long runs = env_or("PEERS_RUNS", 7);
  const double budget_us = static_cast<double>(env_or("PEERS_BUDGET_S", 12)) * 1e6;
  once();
  std::vector<double> wall;
  std::vector<double> cpu;
  const auto begin = clock::now();
  for (long i = 0; i < runs && (i < 3 || micros_since(begin) < budget_us); ++i) {
    const double cpu_before = cpu_micros();
    const auto run_begin = clock::now();
    once();
    wall.push_back(micros_since(run_begin));
    cpu.push_back(cpu_micros() - cpu_before);
  }
  const auto [least, most] = std::minmax_element(wall.begin(), wall.end());
  std::printf(
      "{\"peer\":\"%s\",\"bench\":\"%s\",\"threads\":%d,\"n\":%.0f,\"median_us\":%.1f,"
      "\"min_us\":%.1f,\"max_us\":%.1f,\"runs\":%zu,\"cpu_us\":%.1f,\"ns_per_op\":%.1f}\n",
      peer, bench.c_str(), threads, n, median(wall), *least, *most, wall.size(), median(cpu),
      median(wall) * 1e3 / n);
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

// memory_probe measures what n parked tasks added to the resident memory: construct, spawn and park
// them, call parked(), wait a little, call report().
struct memory_probe {
  double before = proc_status("VmRSS");
  clock::time_point begin = clock::now();
  double wall_us = 0;

  void parked() { wall_us = micros_since(begin); }

  void report(const char* peer, const std::string& bench, int threads, double n) const {
    const double after = proc_status("VmRSS");
    std::printf(
        "{\"peer\":\"%s\",\"bench\":\"%s\",\"threads\":%d,\"n\":%.0f,\"median_us\":%.1f,"
        "\"min_us\":%.1f,\"max_us\":%.1f,\"runs\":1,\"bytes_per_task\":%.1f,\"rss_before\":%.0f,"
        "\"rss_after\":%.0f,\"vm_hwm\":%.0f}\n",
        peer, bench.c_str(), threads, n, wall_us, wall_us, wall_us, (after - before) / n, before,
        after, proc_status("VmHWM"));
    std::fflush(stdout);
  }
};

// sleep_millis is task i's pseudo-random but fixed 1 to 10 ms.
inline int sleep_millis(std::uint32_t i) {
  return 1 + static_cast<int>(((i * 2654435761U) >> 16) % 10);
}

// count_primes is the computing workload: trial division, 64 bits, no memory.
inline std::uint64_t count_primes(std::uint64_t below) {
  std::uint64_t count = 0;
  for (std::uint64_t n = 2; n < below; ++n) {
    bool prime = n == 2 || n % 2 == 1;
    for (std::uint64_t d = 3; prime && d * d <= n; d += 2) prime = n % d != 0;
    count += prime ? 1 : 0;
  }
  return count;
}

}  // namespace harness
