// The seed of this test process: one number that every random choice of a test comes from.
//
// It is taken from SMARM_TEST_SEED where that is set and drawn afresh otherwise, and main() prints
// it, so that a failure can be run again with the choices that led to it.
#pragma once

#include <cstdint>
#include <random>

namespace smarm::test {

// seed() returns the seed of this process. Any thread may call it; the first call fixes the value.
[[nodiscard]] std::uint64_t seed();

// make_rng(salt) returns a generator that depends on the seed and on `salt` alone, so that two
// threads of one test can have generators that differ and are still repeatable.
[[nodiscard]] std::mt19937_64 make_rng(std::uint64_t salt = 0);

}  // namespace smarm::test
