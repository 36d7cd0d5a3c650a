// PROTOCOL is MODEL for a protocol of smarm: one weak exchange of an execution may fail without a
// reason, whichever it is. One of each thread, the checker's default, takes ten times as long and
// shows only what needs two such failures. A model that is too large even for one says so with
// `o.weak_failures = 0`.
#pragma once

#include "model/runner.hpp"

#define PROTOCOL(name) MODEL_WITH(name, o.weak_failures_in_all = 1)
#define PROTOCOL_WITH(name, ...) MODEL_WITH(name, o.weak_failures_in_all = 1; __VA_ARGS__)

// SAMPLED_IN_THE_SUITE is for a large model of what smaller ones have most of: so many random
// executions, always the same, in the suite, and all of them in the soak (tools/soak).
#define SAMPLED_IN_THE_SUITE o.mode = model::search_mode::random, o.runs = 20'000
