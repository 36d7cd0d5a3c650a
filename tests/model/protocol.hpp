// PROTOCOL is MODEL for a protocol of smarm: its loops around weak exchanges do not give up, so a
// failure without a reason only repeats what an ordinary one has shown.
#pragma once

#include "model/runner.hpp"

#define PROTOCOL(name) MODEL_WITH(name, o.weak_failures = false)
#define PROTOCOL_WITH(name, ...) MODEL_WITH(name, o.weak_failures = false; __VA_ARGS__)
