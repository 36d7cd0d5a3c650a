// model: an exact model checker for the concurrency of C++20. This header is all of it but
// main.hpp, which makes a program of a set of models. See the README beside.
#pragma once

#include "model/atomic.hpp"
#include "model/cell.hpp"
#include "model/check.hpp"
#include "model/fence.hpp"
#include "model/futex.hpp"
#include "model/heap.hpp"
#include "model/mutex.hpp"
#include "model/plain.hpp"
#include "model/thread.hpp"
#include "model/time.hpp"
