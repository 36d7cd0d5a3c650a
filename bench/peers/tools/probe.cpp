// What the machine itself costs: the context for every other number.
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

using steady = std::chrono::steady_clock;

static double ns_since(steady::time_point t0) {
  return std::chrono::duration<double, std::nano>(steady::now() - t0).count();
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void eventfd_round_trip(int cpu, const char* what) {
  constexpr int n = 30'000;
  int a = eventfd(0, 0), b = eventfd(0, 0);
  pin(0);
  std::thread peer([&] {
    pin(cpu);
    uint64_t v;
    for (int i = 0; i < n; ++i)
      if (read(a, &v, 8) != 8 || write(b, &(v = 1), 8) != 8) return;
  });
  auto t0 = steady::now();
  uint64_t v;
  for (int i = 0; i < n; ++i)
    if (write(a, &(v = 1), 8) != 8 || read(b, &v, 8) != 8) return;
  std::printf("thread round trip, eventfd, %s: %.0f ns\n", what, ns_since(t0) / n);
  peer.join();
}

int main() {
  constexpr int n = 1'000'000;
  auto t0 = steady::now();
  for (int i = 0; i < n; ++i) syscall(SYS_getppid);
  std::printf("syscall: %.0f ns\n", ns_since(t0) / n);
  t0 = steady::now();
  for (int i = 0; i < n; ++i) {
    auto t = steady::now();
    asm volatile("" ::"r"(&t) : "memory");
  }
  std::printf("clock read: %.0f ns\n", ns_since(t0) / n);
  for (int round = 0; round < 2; ++round) {
    constexpr size_t size = 256 << 20;
    auto* p = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    t0 = steady::now();
    for (size_t i = 0; i < size; i += 4096) p[i] = 1;
    std::printf("first touch of a 4 KiB page (%s): %.0f ns\n", round ? "again" : "fresh",
                ns_since(t0) / (size / 4096));
    munmap(p, size);
  }
  eventfd_round_trip(0, "same CPU");
  eventfd_round_trip(1, "two CPUs");
  timespec ts{0, 1'000'000};
  t0 = steady::now();
  for (int i = 0; i < 500; ++i) nanosleep(&ts, nullptr);
  std::printf("nanosleep(1 ms): %.0f us\n", ns_since(t0) / 500 / 1e3);
}
