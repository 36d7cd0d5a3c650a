// The watchdog of a test process: ends a test that hangs, and says what hung.
//
// A lost wake-up shows as silence. The watchdog turns it into a failure with evidence: the test's
// name, each thread's state and the kernel function it sleeps in, and the command that looks at the
// stacks. It then aborts, so that a core or an attached debugger sees the threads as they stood.
//
// Invariant: a test is watched from its OnTestStart to its OnTestEnd, and its time limit starts
// anew each time.
//
// Threads: the watchdog owns one OS thread with every signal blocked, so that no test's signal
// lands there. extend_watchdog may be called from any thread.
#pragma once

#include <chrono>

namespace smarm::test {

// install_watchdog() starts the watchdog thread and hooks it into GoogleTest; main() calls it once,
// before RUN_ALL_TESTS. The limit per test is SMARM_TEST_TIMEOUT_S seconds, 120 where that is
// unset.
void install_watchdog();

// extend_watchdog(limit) gives the test that now runs `limit` from now on. For tests that are long
// on purpose.
void extend_watchdog(std::chrono::seconds limit);

}  // namespace smarm::test
