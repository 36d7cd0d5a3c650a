// sider: a small Redis-compatible server on smarm. Exit status: 0 after SIGTERM, SIGINT or
// SHUTDOWN; 2 for a wrong command line, or where it cannot listen; 1 for a second signal, where the
// shards cannot be kept up, and for anything else; 3 if an actor cannot be unwound after that and
// the process is cut off (run_application).
#include <malloc.h>
#include <signal.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "base/cpu_limit.hpp"
#include "hash.hpp"
#include "options.hpp"
#include "server.hpp"

namespace {

void choose_hash_secret() {
  std::array<std::uint64_t, 2> secret{};
  // Without randomness the table still works; only its defence against chosen keys is gone.
  if (::getrandom(secret.data(), sizeof secret, 0) == sizeof secret) sider::set_hash_secret(secret);
}

// give_memory_back_early keeps glibc from adapting to large buffers. Each large one that is freed
// would raise the size from which memory is mapped by itself, up to 32 MB, and what a heap keeps
// free at its end to twice that. So a few large requests would leave every scheduler's heap with
// tens of megabytes for good; with both settled, what is freed goes back at once.
void give_memory_back_early() {
  constexpr int bytes = 128 << 10;  // where glibc starts, too
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, bytes);
}

// leave_signals_to_the_catcher blocks the signals that end the server in this thread, and so in
// those it starts, but for the one that smarm keeps for catching them. A signal that comes before
// the server listens for it then waits instead of ending the process halfway; and a tool that
// holds handlers back while a thread sleeps in the kernel (ThreadSanitizer) finds one that is
// awake.
void leave_signals_to_the_catcher() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::vector<std::string_view> words(arguments + 1, arguments + count);
    const auto parsed = sider::parse_options(words);
    if (!parsed) {
      std::fprintf(stderr, "sider: %s\n", parsed.error().c_str());
      return 2;
    }
    if (parsed->help) {
      std::fwrite(sider::usage().data(), 1, sider::usage().size(), stdout);
      return 0;
    }
    give_memory_back_early();
    choose_hash_secret();
    leave_signals_to_the_catcher();
    const unsigned schedulers =
        parsed->schedulers == 0 ? smarm::detail::default_schedulers() : parsed->schedulers;
    return sider::server(*parsed, schedulers).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sider: %s\n", error.what());
    return 1;
  }
}
