// sanitizer_options turns AddressSanitizer's own search for leaks off: a run that is given up
// leaves what it had allocated on the ordinary heap, and for the code under test it is the arena
// that looks.
//
// Include it in exactly one source file of a program; adopt_new does. No inline function: clang's
// runtime has a weak one of its own, which wins over another weak one.
#pragma once

#include "model/fiber.hpp"

#if defined(MODEL_ASAN)
extern "C" [[gnu::used]] const char* __asan_default_options() { return "detect_leaks=0"; }
#endif
